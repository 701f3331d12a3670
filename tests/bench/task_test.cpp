#include "roofline/bench/task.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "bench/scenarios.hpp"

namespace roofline::bench {
namespace {

using testing::scenario;

const Task* find(const std::vector<Planned>& planned, std::string_view name) {
    for (const Planned& one : planned) {
        if (one.task && one.task->name == name) return &*one.task;
    }
    return nullptr;
}

TEST(Tasks, HaveTheShapesOfTheModel) {
    // Llama 3.1 8B: hidden 4,096, 32 heads of 128 over 8 KV heads, FFN 14,336, vocabulary 128,256.
    const auto asked = scenario("llama-3.1-8b", nullptr, 8.0);
    const auto report = predict::predict(asked);
    ASSERT_EQ(report.stages.size(), 2U);
    const auto prefill = plan_tasks(asked, report.stages[0]);
    const auto decode = plan_tasks(asked, report.stages[1]);
    const Task* gate_up = find(decode, "layers.ffn.gate_up");
    ASSERT_NE(gate_up, nullptr);
    EXPECT_EQ(gate_up->m, 8);
    EXPECT_EQ(gate_up->n, 2 * 14336);
    EXPECT_EQ(gate_up->k, 4096);
    EXPECT_EQ(gate_up->weights, DType::bf16);
    EXPECT_DOUBLE_EQ(gate_up->flops, 2.0 * 8 * 28672 * 4096);
    EXPECT_DOUBLE_EQ(gate_up->rotated, 28672.0 * 4096 * 2);
    const Task* core = find(decode, "layers.attention.core");
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(core->kind, TaskKind::attention);
    EXPECT_EQ(core->context, 1024);
    EXPECT_EQ(core->query_heads, 32);
    EXPECT_EQ(core->kv_heads, 8);
    EXPECT_EQ(core->head_dim, 128);
    const Task* prompt = find(prefill, "layers.attention.core");
    ASSERT_NE(prompt, nullptr);
    EXPECT_EQ(prompt->tokens, 512);
    EXPECT_EQ(prompt->batch, 8);
    EXPECT_EQ(find(prefill, "layers.ffn.down")->m, 8 * 512);
    EXPECT_EQ(find(prefill, "head")->m, 8) << "only the last token of a sequence needs logits";
    EXPECT_EQ(find(decode, "layers.ffn.activation")->width, 14336);
}

TEST(Tasks, ATiedHeadKeepsTheTypeOfTheTable) {
    const auto asked = scenario("llama-3.2-1b", "int4");
    const auto report = predict::predict(asked);
    const auto decode = plan_tasks(asked, report.stages[1]);
    EXPECT_EQ(find(decode, "layers.attention.qkv")->weights, DType::int4);
    EXPECT_EQ(find(decode, "head")->weights, DType::bf16);
}

TEST(Tasks, RoutedExpertsAreThoseThatAStepTouches) {
    // Qwen3 30B A3B: 8 of 128 experts of 768 for each token, hidden 2,048.
    const auto planned = [](double batch) {
        const auto asked = scenario("qwen3-30b-a3b", nullptr, batch);
        return plan_tasks(asked, predict::predict(asked).stages[1]);
    };
    const auto one = planned(1.0);
    const Task* gate_up = find(one, "layers.ffn.experts.gate_up");
    ASSERT_NE(gate_up, nullptr);
    EXPECT_EQ(gate_up->m, 8);
    EXPECT_EQ(gate_up->experts, 8);
    EXPECT_EQ(gate_up->n, 2 * 768);
    EXPECT_EQ(gate_up->k, 2048);
    EXPECT_DOUBLE_EQ(gate_up->rotated, 8 * 1536.0 * 2048 * 2);
    // Eight tokens touch 128 (1 - (120 / 128)^8) = 51.6 of them on the mean.
    const auto eight = planned(8.0);
    const Task* down = find(eight, "layers.ffn.experts.down");
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->m, 64);
    EXPECT_EQ(down->experts, 52);
    EXPECT_EQ(describe(*down), "64 x 2048 x 768 bf16, 52 experts");
    EXPECT_EQ(first_row(*down, 0), 0);
    EXPECT_EQ(first_row(*down, 52), 64);
    for (std::int64_t expert = 0; expert < 52; ++expert)
        EXPECT_LT(first_row(*down, expert), first_row(*down, expert + 1));
    EXPECT_EQ(find(eight, "layers.ffn.experts.activation")->rows, 64);
    const Task* choice = find(eight, "layers.ffn.choose");
    EXPECT_EQ(choice->kind, TaskKind::choice);
    EXPECT_EQ(describe(*choice), "8 x 8 of 128");
    const Task* sum = find(eight, "layers.ffn.experts.combine");
    EXPECT_EQ(sum->kind, TaskKind::expert_sum);
    EXPECT_EQ(describe(*sum), "8 x 8 x 2048");
    EXPECT_EQ(find(eight, "layers.ffn.experts.activation")->width, 768);
}

TEST(Tasks, EveryOperatorHasATaskOrAReason) {
    for (const char* model : {"llama-3.1-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3", "mamba2-2.7b", "gpt2"}) {
        const auto asked = scenario(model);
        for (const auto& stage : predict::predict(asked).stages) {
            const auto planned = plan_tasks(asked, stage);
            ASSERT_EQ(planned.size(), stage.records.size());
            for (const Planned& one : planned) EXPECT_NE(one.task.has_value(), !one.reason.empty()) << model;
        }
    }
}

TEST(Tasks, OfEveryModelHaveSizesThatAKernelCanRun) {
    for (const std::string& model : io::builtin_model_names()) {
        const auto asked = scenario(model);
        for (const auto& stage : predict::predict(asked).stages) {
            for (const Planned& one : plan_tasks(asked, stage)) {
                if (!one.task) continue;
                const Task& task = *one.task;
                SCOPED_TRACE(model + ": " + task.name);
                if (task.kind == TaskKind::product) {
                    EXPECT_TRUE(task.m > 0 && task.n > 0 && task.k > 0 && task.experts > 0 && task.experts <= task.m);
                } else {
                    EXPECT_TRUE(task.rows > 0 && task.width > 0);
                }
                if (task.kind == TaskKind::attention || task.kind == TaskKind::kv_write ||
                    task.kind == TaskKind::rotary) {
                    EXPECT_TRUE(task.kv_heads > 0 && task.head_dim > 0 && task.context > 0);
                    EXPECT_EQ(task.query_heads % std::max<std::int64_t>(1, task.kv_heads), 0);
                }
            }
        }
    }
}

TEST(StepShape, IsFoundForLlamaAndItsRelatives) {
    const auto shape = step_shape(scenario("llama-3.1-8b"));
    ASSERT_TRUE(shape) << shape.error().text;
    EXPECT_EQ(shape->layers, 32);
    EXPECT_EQ(shape->ffn_width, 14336);
    EXPECT_EQ(shape->vocabulary, 128256);
    EXPECT_FALSE(shape->qk_norm);
    EXPECT_EQ(shape->experts, 0);
    const auto normed = step_shape(scenario("qwen3-8b"));
    ASSERT_TRUE(normed) << normed.error().text;
    EXPECT_TRUE(normed->qk_norm);
}

TEST(StepShape, IsFoundForMixturesOfExperts) {
    const auto mixtral = step_shape(scenario("mixtral-8x7b"));
    ASSERT_TRUE(mixtral) << mixtral.error().text;
    EXPECT_EQ(mixtral->layers, 32);
    EXPECT_EQ(mixtral->experts, 8);
    EXPECT_EQ(mixtral->experts_chosen, 2);
    EXPECT_EQ(mixtral->ffn_width, 14336);
    const auto qwen = step_shape(scenario("qwen3-30b-a3b"));
    ASSERT_TRUE(qwen) << qwen.error().text;
    EXPECT_EQ(qwen->layers, 48);
    EXPECT_EQ(qwen->experts, 128);
    EXPECT_EQ(qwen->experts_chosen, 8);
    EXPECT_EQ(qwen->ffn_width, 768);
    EXPECT_TRUE(qwen->qk_norm);
    const auto dense = dense_shape(scenario("mixtral-8x7b"), "random weights need");
    ASSERT_FALSE(dense);
    EXPECT_NE(dense.error().text.find("router"), std::string::npos) << dense.error().text;
}

TEST(StepShape, HasAllTheParametersOfTheModel) {
    int found = 0;
    for (const std::string& model : io::builtin_model_names()) {
        const auto asked = scenario(model);
        const auto shape = step_shape(asked);
        if (!shape) continue;
        ++found;
        const double q = static_cast<double>(shape->query_heads * shape->head_dim);
        const double kv = static_cast<double>(shape->kv_heads * shape->head_dim);
        const auto hidden = static_cast<double>(shape->hidden);
        const auto experts = static_cast<double>(shape->experts);
        const double layer = hidden * (2.0 * q + 2.0 * kv) + experts * hidden +
                             std::max(1.0, experts) * 3.0 * hidden * static_cast<double>(shape->ffn_width);
        // Beside the layers there are a table and a head, which may be one. Norms and biases are less than a percent.
        const auto counted = model::count_parameters(asked.lowered);
        double layers = counted.total - counted.embedding;
        for (const model::Operator& op : asked.lowered.operators) {
            if (op.name == "head") layers -= op.parameters;
        }
        EXPECT_NEAR(static_cast<double>(shape->layers) * layer, layers, 0.01 * layers) << model;
    }
    EXPECT_GT(found, 40);
}

TEST(StepShape, OfLayersOfTwoKindsIsRefusedThoughThereAreAsManyOfEach) {
    auto asked = scenario("mixtral-8x7b");
    ASSERT_TRUE(step_shape(asked));
    for (model::Operator& op : asked.lowered.operators) {
        if (op.name == "layers.ffn.norm") {
            model::Operator other = op;
            other.name = "layers[dense].ffn.norm";
            asked.lowered.operators.push_back(other);
            break;
        }
    }
    const auto shape = step_shape(asked);
    ASSERT_FALSE(shape);
    EXPECT_NE(shape.error().text.find("mixes kinds of layers"), std::string::npos) << shape.error().text;
}

TEST(StepShape, OthersAreRefusedInOneLineThatNamesWhatIsMissing) {
    for (const char* model : {"llama-4-scout", "gpt-oss-20b", "deepseek-v3", "mamba2-2.7b", "gpt2"}) {
        const auto shape = step_shape(scenario(model));
        ASSERT_FALSE(shape) << model;
        EXPECT_NE(shape.error().text.find(model), std::string::npos);
        EXPECT_EQ(shape.error().text.find('\n'), std::string::npos);
    }
}

TEST(SameWork, IsThatOfTheSameKernelOnTheSameSizes) {
    Task a;
    a.name = "layers.attention.qkv";
    a.m = 1;
    a.n = 6144;
    a.k = 4096;
    a.weights = DType::fp8;
    Task b = a;
    b.name = "another";
    EXPECT_TRUE(same_work(a, b));
    b.activations = DType::fp8;
    EXPECT_FALSE(same_work(a, b)) << "fp8 by bf16 is another kernel than fp8 by fp8";
    b = a;
    b.m = 2;
    EXPECT_FALSE(same_work(a, b));
    b = a;
    b.experts = 2;
    EXPECT_FALSE(same_work(a, b));
    b = a;
    b.kv = DType::fp8;
    EXPECT_TRUE(same_work(a, b)) << "a product does not touch the cache";
    a.kind = b.kind = TaskKind::kv_write;
    EXPECT_FALSE(same_work(a, b));
}

}  // namespace
}  // namespace roofline::bench
