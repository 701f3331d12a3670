// Every backend in all that it says it can do, and the operands it is given.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "bench/tasks.hpp"
#include "bench/team.hpp"
#include "roofline/bench/backend.hpp"
#include "roofline/bench/kernels/products.hpp"

namespace roofline::bench {
namespace {

using testing::attention;
using testing::product;
using testing::team;

TEST(Backends, EveryOneThatIsHereIsRightInAllItSaysItCanDo) {
    const auto threads = team(2);
    std::vector<Task> tasks;
    for (const WeightFormat type :
         {WeightFormat::fp32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4, WeightFormat::mxfp4,
          WeightFormat::nvfp4, WeightFormat::fp8, WeightFormat::fp8_block, WeightFormat::q4_0, WeightFormat::q8_0,
          WeightFormat::q4_k, WeightFormat::q5_k, WeightFormat::q6_k}) {
        tasks.push_back(product(1, 40, 256, type));
        tasks.push_back(product(9, 40, 256, type));
        tasks.push_back(product(7, 40, 256, type));
        tasks.back().experts = 3;  // with two rows, two and three
        tasks.push_back(product(40, 24, 256, type));
        tasks.back().experts = 4;  // with whole panels and a rest
        Task absorption = attention(1, 1, 1, DType::bf16);
        absorption.kind = TaskKind::absorption;
        absorption.name = "absorption";
        absorption.weights = type;
        absorption.rows = 5;
        absorption.query_heads = 3;
        absorption.head_dim = std::max<std::int64_t>(128, grain_of(type));
        absorption.value_dim = 96;
        absorption.k = 256;
        tasks.push_back(absorption);
    }
    tasks.push_back(attention(2, 1, 100, DType::bf16));
    tasks.push_back(attention(1, 20, 20, DType::bf16));
    for (const TaskKind kind :
         {TaskKind::norm, TaskKind::layer_norm, TaskKind::add, TaskKind::add_two, TaskKind::activation,
          TaskKind::output_gate, TaskKind::plain_activation, TaskKind::rotary, TaskKind::kv_write, TaskKind::embedding,
          TaskKind::sampling, TaskKind::choice, TaskKind::expert_sum}) {
        Task task = attention(3, 1, 17, DType::bf16);
        task.name = std::string(name(kind));
        task.kind = kind;
        task.rows = 3;
        task.width = 96;
        task.chosen = 5;
        tasks.push_back(task);
        if (kind != TaskKind::rotary && kind != TaskKind::kv_write) continue;
        task.latent = true;
        task.kv_heads = 1;
        if (kind == TaskKind::kv_write) task.query_heads = 0;
        tasks.push_back(task);
    }
    tasks.push_back(attention(2, 1, 100, DType::bf16));
    tasks.back().kv_heads = 1;
    tasks.back().value_dim = 32;
    tasks.back().latent = true;
    // States of heads that share keys, and that do not, by one token and by several; a convolution of one token and of
    // several, of fewer than its taps; norms of a row and of each head, with a gate.
    for (const TaskKind kind : {TaskKind::state_space, TaskKind::delta_rule}) {
        for (const std::int64_t groups : {2, 6}) {
            const std::int64_t tokens = groups == 2 ? 1 : 5;
            Task task = attention(3, tokens, tokens, DType::fp32);
            task.name = std::string(name(kind));
            task.kind = kind;
            task.rows = 3 * tokens;
            task.kv_heads = groups;
            task.head_dim = 40;
            task.value_dim = groups == 2 ? 24 : 72;
            task.width = 6 * task.value_dim;
            tasks.push_back(task);
        }
    }
    // States of channels, of which there are no more than one thread would take, and more.
    for (const std::int64_t channels : {48, 304}) {
        const std::int64_t tokens = channels == 48 ? 1 : 5;
        Task task = attention(3, tokens, tokens, DType::fp32);
        task.name = "selective_scan";
        task.kind = TaskKind::selective_scan;
        task.rows = 3 * tokens;
        task.query_heads = task.width = channels;
        task.kv_heads = task.value_dim = 1;
        task.head_dim = 16;
        tasks.push_back(task);
    }
    for (const std::int64_t tokens : {1, 2, 9}) {
        Task task = attention(2, tokens, tokens, DType::bf16);
        task.name = "convolution";
        task.plain = tokens == 2;
        task.kind = TaskKind::convolution;
        task.rows = 2 * tokens;
        task.width = 600;
        task.taps = 4;
        tasks.push_back(task);
    }
    tasks.push_back(attention(3, 1, 1, DType::bf16));
    tasks.back().name = "multiply";
    tasks.back().kind = TaskKind::multiply;
    tasks.back().rows = 3;
    tasks.back().width = 100;
    for (const std::int64_t run : {96, 32}) {
        Task task = attention(3, 1, 1, DType::bf16);
        task.name = "gated_norm";
        task.kind = TaskKind::gated_norm;
        task.rows = 3;
        task.width = 96;
        task.run = run;
        tasks.push_back(task);
        task.name = "output_gate";
        task.kind = TaskKind::output_gate;
        tasks.push_back(task);
    }
    // Entries that tokens choose: by scores of small keys, which are written, and attention to 32 of 100 (a token of
    // two sequences) or five of up to nine (a prompt).
    for (const std::int64_t tokens : {1, 9}) {
        const std::int64_t context = tokens == 1 ? 100 : tokens;
        Task task = attention(2, tokens, context, DType::bf16);
        task.prefill = tokens > 1;
        task.rows = 2 * tokens;
        task.kv_heads = 1;
        task.value_dim = 32;
        task.latent = true;
        task.chosen = tokens == 1 ? 32 : 5;
        tasks.push_back(task);
        task.chosen = 0;
        task.latent = false;
        task.width = task.query_heads * (task.head_dim + 1);
        task.name = "index_scores";
        task.kind = TaskKind::index_scores;
        tasks.push_back(task);
        task.name = "index_write";
        task.kind = TaskKind::index_write;
        task.context = tokens;
        task.width = task.head_dim;
        tasks.push_back(task);
    }
    Pace pace;
    pace.rotate_past = 1 << 16;
    pace.budget.seconds = 1e-4;
    pace.budget.window = 1e-5;
    for (const auto& backend : cpu_backends()) {
        if (!backend->available()) continue;
        for (const Task& task : tasks) {
            if (backend->refuses(task)) continue;
            auto operands = make_operands(task, pace.rotate_past, *threads);
            ASSERT_TRUE(operands);
            const Outcome outcome = run_task(*backend, *operands, *threads, pace);
            // A library may lack a type on some processors; it may not be wrong.
            EXPECT_EQ(outcome.problem.find("wrong"), std::string::npos)
                << backend->name() << " " << task.name << ": " << outcome.problem;
            if (backend->name() == "own") {
                EXPECT_EQ(outcome.problem, "") << task.name;
            }
        }
    }
}

class Liar final : public Backend {
  public:
    std::string name() const override { return "liar"; }
    std::string describe() const override { return ""; }
    Result<void> available() override { return {}; }
    std::optional<std::string> refuses(const Task&) const override { return std::nullopt; }
    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads&) override {
        struct Zero final : Kernel {
            explicit Zero(Operands& given) : operands(given) {}
            void run(std::size_t) override { std::fill(operands.y.begin(), operands.y.end(), 0.0F); }
            Operands& operands;
        };
        return std::make_unique<Zero>(operands);
    }
};

TEST(Backends, OneThatIsWrongHasNoTime) {
    const auto threads = team(1);
    auto operands = make_operands(product(1, 32, 128, WeightFormat::bf16), 0, *threads);
    ASSERT_TRUE(operands);
    Liar liar;
    const Outcome outcome = run_task(liar, *operands, *threads, {});
    EXPECT_FALSE(outcome.measured());
    EXPECT_TRUE(outcome.problem.starts_with("wrong")) << outcome.problem;
    EXPECT_EQ(outcome.timing.calls, 0);
}

TEST(Operands, CopiesTogetherReachTheBytesToRotatePast) {
    const auto threads = team(1);
    // 64 x 256 bf16 are 32,768 bytes: 100,000 take four copies.
    const auto operands = make_operands(product(1, 64, 256, WeightFormat::bf16), 100'000, *threads);
    ASSERT_TRUE(operands);
    EXPECT_EQ(operands->copies(), 4U);
}

TEST(Operands, MoreThanTheMemoryThereIsIsRefusedInOneLine) {
    const auto threads = team(1);
    const auto operands = make_operands(product(1, 1 << 24, 1 << 20, WeightFormat::fp32), 0, *threads);
    ASSERT_FALSE(operands);
    EXPECT_TRUE(operands.error().unavailable);
    EXPECT_NE(operands.error().text.find("GB of memory"), std::string::npos) << operands.error().text;
}

}  // namespace
}  // namespace roofline::bench
