#include "roofline/bench/task.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

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
    EXPECT_EQ(gate_up->weights, WeightFormat::bf16);
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
    EXPECT_EQ(find(decode, "layers.attention.qkv")->weights, WeightFormat::int4);
    EXPECT_EQ(find(decode, "head")->weights, WeightFormat::bf16);
}

TEST(Tasks, ATableOfGgufHasAFormatOfItsOwn) {
    // As llama.cpp keeps one that the head shares: in q6_k beside all that have fewer bits.
    for (const auto& [type, inside, table] : {std::tuple{"q4_k", WeightFormat::q4_k, WeightFormat::q6_k},
                                              {"q5_k", WeightFormat::q5_k, WeightFormat::q6_k},
                                              {"q4_0", WeightFormat::q4_0, WeightFormat::q6_k},
                                              {"q8_0", WeightFormat::q8_0, WeightFormat::q8_0}}) {
        const auto asked = scenario("llama-3.2-1b", type);
        const auto decode = plan_tasks(asked, predict::predict(asked).stages[1]);
        EXPECT_EQ(find(decode, "layers.ffn.gate_up")->weights, inside) << type;
        EXPECT_EQ(find(decode, "head")->weights, table) << type;
    }
    // Half of 16 layers have values and the second products of their FFN in q6_k: of 3,072 rows 512 values, of which
    // half; of 2,048 rows half.
    const auto mixed = scenario("llama-3.2-1b", "q4_k_m");
    const auto decode = plan_tasks(mixed, predict::predict(mixed).stages[1]);
    EXPECT_EQ(find(decode, "layers.ffn.gate_up")->others, OtherRows{});
    EXPECT_EQ(find(decode, "layers.attention.qkv")->weights, WeightFormat::q4_k);
    EXPECT_EQ(find(decode, "layers.attention.qkv")->others, (OtherRows{WeightFormat::q6_k, 256}));
    EXPECT_EQ(find(decode, "layers.ffn.down")->others, (OtherRows{WeightFormat::q6_k, 1024}));
    EXPECT_EQ(find(decode, "head")->weights, WeightFormat::q6_k);
    const auto asked = scenario("llama-3.2-1b", "q3_k");
    int refused = 0;
    for (const Planned& one : plan_tasks(asked, predict::predict(asked).stages[1])) {
        if (one.reason.empty()) continue;
        EXPECT_EQ(one.reason,
                  "no kernel reads q3_k weights; of GGUF those in q4_0, q8_0, q4_k, q5_k and q6_k are read");
        ++refused;
    }
    EXPECT_EQ(refused, 3);  // the output is in q4_k there
}

TEST(Tasks, KeepTheFormatOfTheCheckpoint) {
    const auto format_of = [](const char* model, std::string_view name) -> std::string_view {
        const auto asked = scenario(model);
        const auto decode = plan_tasks(asked, predict::predict(asked).stages[1]);
        const Task* task = find(decode, name);
        return task == nullptr ? "not planned" : bench::name(task->weights);
    };
    EXPECT_EQ(format_of("gpt-oss-20b", "layers[full].ffn.experts.down"), "mxfp4");
    EXPECT_EQ(format_of("gpt-oss-20b", "layers[full].attention.qkv"), "bf16");
    EXPECT_EQ(format_of("deepseek-v3", "layers[moe].ffn.experts.down"), "fp8_block");
    EXPECT_EQ(format_of("deepseek-v3", "layers[moe].attention.kv_up"), "fp8_block");
    EXPECT_EQ(format_of("deepseek-v3", "head"), "bf16");
    EXPECT_EQ(format_of("kimi-k2.5", "layers[moe].ffn.experts.down"), "q4_0") << "int4 with a scale for 32";
    EXPECT_EQ(format_of("kimi-k2.5", "head"), "bf16");
    EXPECT_EQ(format_of("qwen3-235b-a22b-nvfp4", "layers.ffn.experts.gate_up"), "nvfp4");
}

TEST(WeightFormats, AreFoundByNameAndNumber) {
    for (const WeightFormatFacts& one : weight_formats) {
        EXPECT_EQ(facts(one.format).format, one.format) << one.name;
        EXPECT_EQ(weight_format_named(one.name), one.format);
        ASSERT_NE(find_format(one.name), nullptr) << one.name;
        // Of GGUF core/dtype.cpp counts scales in.
        EXPECT_EQ(std::floor(find_format(one.name)->element_bits), one.bits) << one.name;
    }
    EXPECT_EQ(weight_format_named("q3_k"), std::nullopt);
    EXPECT_EQ(weight_format(*find_format("awq")), WeightFormat::int4);
    EXPECT_EQ(weight_format(*find_format("int4_g32")), WeightFormat::q4_0);
}

TEST(WeightFormats, OfFewBitsMeetActivationsInInt8) {
    for (const char* types : {"q4_k + q6_k + f32", "q4_k_m", "q8_0", "int4 + bf16", "mxfp4 + bf16"})
        EXPECT_TRUE(rounds_activations(types)) << types;
    for (const char* types : {"bf16", "f16 + f32", "fp8_block + bf16", "int8", ""})
        EXPECT_FALSE(rounds_activations(types)) << types;
}

TEST(WeightFormats, ThatABackendDoesNotReadNameTheNearest) {
    EXPECT_EQ(unread_by("processor", WeightFormat::mxfp4),
              "no processor kernel reads mxfp4 weights; --dtype int4 asks for the nearest that one does");
    EXPECT_EQ(unread_by("CUDA", WeightFormat::fp8_block),
              "no CUDA kernel reads fp8_block weights; --dtype int8 asks for the nearest that one does");
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
    EXPECT_FALSE(gate_up->settled) << "the router's scores go before it";
    EXPECT_EQ(gate_up->n, 2 * 768);
    EXPECT_EQ(gate_up->k, 2048);
    EXPECT_DOUBLE_EQ(gate_up->rotated, 8 * 1536.0 * 2048 * 2);
    // Eight tokens touch 128 (1 - (120 / 128)^8) = 51.6 of them on the mean.
    const auto eight = planned(8.0);
    const Task* down = find(eight, "layers.ffn.experts.down");
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->m, 64);
    EXPECT_EQ(down->experts, 52);
    EXPECT_TRUE(down->settled);
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

TEST(Tasks, OfChannelsHaveAStateOrAConvolutionBetweenGates) {
    // Mamba 2.8B: 5,120 channels with states of 16, read and written in fp32.
    const auto of = [](const char* model, const char* name) {
        const auto asked = scenario(model, nullptr, 2.0);
        for (const Planned& one : plan_tasks(asked, predict::predict(asked).stages[1])) {
            if (one.task && one.task->name == name) return *one.task;
        }
        ADD_FAILURE() << model << " has no " << name;
        return Task{};
    };
    const Task scan = of("mamba-2.8b", "layers.attention.core");
    EXPECT_EQ(scan.kind, TaskKind::selective_scan);
    EXPECT_EQ(describe(scan), "2 x 5120 states of 16");
    EXPECT_EQ(scan.rotated, 2.0 * 2 * 5120 * 16 * 4);
    EXPECT_FALSE(of("mamba-2.8b", "layers.attention.convolution").plain);
    const std::string lfm2 = "layers[convolution].attention.";
    EXPECT_EQ(of("lfm2-1.2b", (lfm2 + "gate").c_str()).kind, TaskKind::multiply);
    EXPECT_EQ(of("lfm2-1.2b", (lfm2 + "out_gate").c_str()).width, 2048);
    const Task convolution = of("lfm2-1.2b", (lfm2 + "convolution").c_str());
    EXPECT_TRUE(convolution.plain);
    EXPECT_EQ(describe(convolution), "2 x 2048, 3 taps");
}

TEST(Tasks, OfGatesSayHowManyNumbersShareOne) {
    const auto gate = [](const char* model, const char* name) {
        const auto asked = scenario(model);
        const auto planned = plan_tasks(asked, predict::predict(asked).stages[1]);
        const Task* task = find(planned, name);
        return task != nullptr ? *task : Task{};
    };
    // Step 3.7: 64 heads of 128 that see all tokens, 96 of those with a window. Qwen3-Next: 16 of 256.
    const Task full = gate("step-3.7-flash-fp8", "layers[full,moe].attention.gate");
    EXPECT_EQ(full.kind, TaskKind::output_gate);
    EXPECT_EQ(full.width, 64 * 128);
    EXPECT_EQ(full.run, 128);
    EXPECT_EQ(gate("step-3.7-flash-fp8", "layers[sliding,moe].attention.gate").width, 96 * 128);
    const Task each = gate("qwen3-next-80b-a3b", "layers[full].attention.gate");
    EXPECT_EQ(each.width, 16 * 256);
    EXPECT_EQ(each.run, 1);
}

TEST(Tasks, OfSparseAttentionHaveAnIndexer) {
    // DeepSeek V3.2 at 8,192: 2,048 entries for a token, chosen by 64 heads of 128.
    const auto asked = scenario("deepseek-v3.2", nullptr, 2.0, 8192.0, 8192.0);
    const auto report = predict::predict(asked);
    const auto decode = plan_tasks(asked, report.stages[1]);
    const Task* scores = find(decode, "layers[moe].attention.index_scores");
    ASSERT_NE(scores, nullptr);
    EXPECT_EQ(scores->kind, TaskKind::index_scores);
    EXPECT_EQ(scores->rotated, 2.0 * static_cast<double>(scores->context) * (128 + 4));
    const Task* core = find(decode, "layers[moe].attention.core_absorbed");
    ASSERT_NE(core, nullptr);
    EXPECT_EQ(core->chosen, 2048);
    EXPECT_EQ(core->rotated, 2.0 * 2048 * 576 * 2);
    const Task* write = find(decode, "layers[moe].attention.index_write");
    ASSERT_NE(write, nullptr);
    EXPECT_EQ(write->width, 128);
    const auto prefill = plan_tasks(asked, report.stages[0]);
    EXPECT_EQ(describe(*find(prefill, "layers[moe].attention.core_absorbed")),
              "2 x 8192 of 8192, the best 2048, 128/1 heads of 576, 512");
    EXPECT_EQ(describe(*find(prefill, "layers[moe].attention.index_scores")), "2 x 8192 of 8192, 64 heads of 128");
    // A short prompt sees all there is.
    const auto small = scenario("deepseek-v3.2", nullptr, 1.0, 512.0);
    const auto of_short = plan_tasks(small, predict::predict(small).stages[0]);
    EXPECT_EQ(find(of_short, "layers[moe].attention.core_expanded")->chosen, 0);
    // MiniMax M3's heads have no shares.
    const auto other = scenario("minimax-m3");
    EXPECT_EQ(find(plan_tasks(other, predict::predict(other).stages[1]), "layers[sparse,moe].attention.index_scores"),
              nullptr);
}

TEST(Tasks, EveryOperatorHasATaskOrAReason) {
    for (const char* model : {"llama-3.1-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3", "mamba2-2.7b", "gpt2",
                              "mamba-2.8b", "lfm2-1.2b"}) {
        const auto asked = scenario(model);
        for (const auto& stage : predict::predict(asked).stages) {
            const auto planned = plan_tasks(asked, stage);
            ASSERT_EQ(planned.size(), stage.records.size());
            for (const Planned& one : planned) EXPECT_NE(one.task.has_value(), !one.reason.empty()) << model;
        }
    }
}

/// Elements that a row-wise kernel reads and writes for each token, as one writes such a kernel.
double elements_of_a_token(const Task& task, double tokens) {
    const auto heads = [&](std::int64_t some) { return static_cast<double>(some * task.head_dim); };
    const double all = static_cast<double>(task.rows) * static_cast<double>(task.width) / tokens;
    switch (task.kind) {
        case TaskKind::norm:
        case TaskKind::layer_norm:
        case TaskKind::plain_activation:
            return 2.0 * all;
        case TaskKind::convolution:
            return 2.0 * all;
        case TaskKind::state_space:  // values in and out, keys, queries, and a step
            return 2.0 * all + 2.0 * heads(task.kv_heads) + static_cast<double>(task.query_heads);
        case TaskKind::delta_rule:  // and a share
            return 2.0 * all + 2.0 * heads(task.kv_heads) + 2.0 * static_cast<double>(task.query_heads);
        case TaskKind::selective_scan:  // values, steps and gates in and values out, keys and queries
            return 4.0 * all + 2.0 * static_cast<double>(task.head_dim);
        case TaskKind::add:
        case TaskKind::activation:
        case TaskKind::multiply:
        case TaskKind::gated_norm:
            return 3.0 * all;
        case TaskKind::output_gate:  // of each number or of a head
            return 2.0 * all + all / static_cast<double>(task.run);
        case TaskKind::add_two:
            return 4.0 * all;
        case TaskKind::rotary:
            return 2.0 * heads(task.query_heads + task.kv_heads);
        case TaskKind::kv_write:
            return heads(fused_heads(task) - task.query_heads);  // what is written lies in the cache
        case TaskKind::embedding:
            return all;
        case TaskKind::choice:
            return all + 2.0 * static_cast<double>(task.chosen);
        case TaskKind::expert_sum:
            return all * static_cast<double>(task.chosen + 1);
        default:
            return 0.0;
    }
}

TEST(Tasks, OfEveryModelMoveWhatPredictCountsForThem) {
    int checked = 0;
    for (const std::string& model : io::builtin_model_names()) {
        const auto asked = scenario(model);
        double bytes = 0.0;  // of an element: what the first has, 16 bits or 32
        for (const auto& stage : predict::predict(asked).stages) {
            const auto planned = plan_tasks(asked, stage);
            for (std::size_t i = 0; i < planned.size(); ++i) {
                if (!planned[i].task) continue;
                const Task& task = *planned[i].task;
                const double elements = elements_of_a_token(task, stage.tokens);
                if (elements == 0.0) continue;
                const auto& form = asked.lowered.operators[stage.operators[i]].activation_bytes;
                ASSERT_EQ(form.size, 1) << model << ": " << task.name;
                if (bytes == 0.0) bytes = form.terms[0].factor / elements;
                EXPECT_TRUE(bytes == 2.0 || bytes == 4.0) << model << ": " << task.name;
                EXPECT_EQ(form.terms[0].factor, bytes * elements) << model << ": " << task.name;
                ++checked;
            }
        }
    }
    EXPECT_GT(checked, 3000);
}

TEST(Tasks, OfLayersThatDifferAreEachTheirOwn) {
    // DeepSeek V2 Lite: entries of 512 that are normed, a dense FFN of 10,944 in the first layer, experts of 1,408 and
    // two shared ones, as wide as 2,816, in the others.
    const auto lite = scenario("deepseek-v2-lite");
    const auto decode = plan_tasks(lite, predict::predict(lite).stages[1]);
    EXPECT_EQ(find(decode, "layers[moe].attention.kv_norm")->width, 512);
    EXPECT_EQ(find(decode, "layers[moe].attention.norm")->width, 2048);
    EXPECT_EQ(find(decode, "layers[dense].ffn.activation")->width, 10944);
    EXPECT_EQ(find(decode, "layers[moe].ffn.shared.activation")->width, 2816);
    EXPECT_EQ(find(decode, "layers[moe].ffn.experts.activation")->width, 1408);
    // 16 heads of 128 + 64 and 128, over entries of 512 + 64; decoding absorbs what would expand them, a prompt does
    // not.
    const Task* absorbed = find(decode, "layers[moe].attention.core_absorbed");
    EXPECT_TRUE(absorbed->latent);
    EXPECT_EQ(absorbed->query_heads, 16);
    EXPECT_EQ(absorbed->kv_heads, 1);
    EXPECT_EQ(absorbed->head_dim, 576);
    EXPECT_EQ(absorbed->value_dim, 512);
    const auto prefill = plan_tasks(lite, predict::predict(lite).stages[0]);
    const Task* expanded = find(prefill, "layers[moe].attention.core_expanded");
    EXPECT_FALSE(expanded->latent);
    EXPECT_EQ(expanded->kv_heads, 16);
    EXPECT_EQ(expanded->head_dim, 192);
    EXPECT_EQ(expanded->value_dim, 128);
    EXPECT_EQ(find(prefill, "layers[moe].attention.kv_up")->n, 16 * 256);
    const Task* into_and_out = find(decode, "layers[moe].attention.kv_up");
    EXPECT_EQ(into_and_out->kind, TaskKind::absorption);
    EXPECT_EQ(describe(*into_and_out), "1 x 16 heads, 128 to 512, 512 to 128 bf16");
    EXPECT_EQ(into_and_out->rotated, 16 * 512 * 256 * 2.0);
    EXPECT_EQ(find(decode, "layers[moe].attention.rotary")->head_dim, 64);
    EXPECT_EQ(find(decode, "layers[moe].attention.kv_write")->width, 576);
    // Falcon adds up what attention and FFN make of the same input.
    const auto falcon = scenario("falcon-7b");
    const auto both = plan_tasks(falcon, predict::predict(falcon).stages[1]);
    EXPECT_EQ(find(both, "layers.ffn.residual")->kind, TaskKind::add_two);
    // GPT-2 takes off the mean, and has no gate in its FFN of 3,072.
    const auto gpt2 = scenario("gpt2");
    const auto plain = plan_tasks(gpt2, predict::predict(gpt2).stages[1]);
    EXPECT_EQ(find(plain, "layers.attention.norm")->kind, TaskKind::layer_norm);
    EXPECT_EQ(find(plain, "layers.ffn.activation")->kind, TaskKind::plain_activation);
    EXPECT_EQ(find(plain, "layers.ffn.activation")->width, 3072);
    EXPECT_EQ(find(plain, "positions")->kind, TaskKind::embedding);
}

TEST(Tasks, OfLayersWithAStateUpdateIt) {
    // Mamba-2 2.7B: 80 heads of 64 with states of 128, one group, a convolution of 4 taps over 5,120 + 2 x 128.
    const auto mamba = scenario("mamba2-2.7b", nullptr, 4.0);
    const auto decode = plan_tasks(mamba, predict::predict(mamba).stages[1]);
    EXPECT_EQ(describe(*find(decode, "layers.attention.core_recurrent")), "4 x 80 states of 128 x 64");
    EXPECT_EQ(find(decode, "layers.attention.core_recurrent")->kv_heads, 1);
    EXPECT_EQ(find(decode, "layers.attention.core_recurrent")->kind, TaskKind::state_space);
    EXPECT_EQ(describe(*find(decode, "layers.attention.convolution")), "4 x 5376, 4 taps");
    EXPECT_EQ(find(decode, "layers.attention.gated_norm")->run, 5120);
    const auto prompt = plan_tasks(mamba, predict::predict(mamba).stages[0]);
    const Task* chunked = find(prompt, "layers.attention.core_chunked");
    ASSERT_NE(chunked, nullptr);
    EXPECT_EQ(chunked->kind, TaskKind::state_space);
    EXPECT_EQ(chunked->rows, 4 * chunked->tokens);
    EXPECT_EQ(describe(*chunked), "4 x 80 states of 128 x 64, " + std::to_string(chunked->tokens) + " tokens");
    // Qwen3-Next: 32 states of 128 x 128, 16 heads of keys; norms of each head.
    const auto qwen = scenario("qwen3-next-80b-a3b");
    const auto linear = plan_tasks(qwen, predict::predict(qwen).stages[1]);
    const Task* delta = find(linear, "layers[linear].attention.core_recurrent");
    ASSERT_NE(delta, nullptr);
    EXPECT_EQ(delta->kind, TaskKind::delta_rule);
    EXPECT_EQ(describe(*delta), "1 x 32 states of 128 x 128");
    EXPECT_EQ(delta->kv_heads, 16);
    EXPECT_EQ(find(linear, "layers[linear].attention.gated_norm")->run, 128);
}

TEST(Tasks, OfALongPromptSeeItsWindow) {
    // Gemma 3: 1,024 positions in five layers of six.
    const auto asked = scenario("gemma-3-4b", nullptr, 1.0, 3000.0);
    const auto prefill = plan_tasks(asked, predict::predict(asked).stages[0]);
    const Task* sliding = find(prefill, "layers[sliding].attention.core");
    ASSERT_NE(sliding, nullptr);
    EXPECT_EQ(sliding->window, 1024);
    EXPECT_EQ(describe(*sliding), "1 x 3000 of 3000, the last 1024, 8/4 heads of 256");
    const Task* full = find(prefill, "layers[full].attention.core");
    ASSERT_NE(full, nullptr);
    EXPECT_EQ(full->window, 0);
    EXPECT_FALSE(same_work(*sliding, *full));
}

TEST(Tasks, ThatOurKernelsDoOtherwiseAreRefused) {
    // DeepSeek V4 attends to pooled entries beside its window, and keeps one vector for key and value.
    const auto refused = [](const char* model, std::string_view name) -> std::string {
        const auto asked = scenario(model);
        const auto stage = predict::predict(asked).stages[1];
        const auto planned = plan_tasks(asked, stage);
        for (std::size_t i = 0; i < planned.size(); ++i) {
            if (stage.records[i].name == name) return planned[i].reason;
        }
        return "no such operator";
    };
    EXPECT_EQ(refused("deepseek-v4-flash-fp8", "layers[pool4].attention.core"), "no kernel for this kind of attention");
    EXPECT_EQ(refused("deepseek-v4-flash-fp8", "layers[pool4].attention.kv_write"),
              "no kernel for this kind of attention");
    EXPECT_EQ(refused("deepseek-v4-flash-fp8", "layers[pool4].ffn.residual"), "no kernel for several residual streams");
    EXPECT_EQ(refused("gemma-3-4b", "layers[sliding].attention.core"), "");
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
                    EXPECT_TRUE(task.rows > 0 && (task.width > 0 || task.kind == TaskKind::attention));
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

TEST(SameWork, IsThatOfTheSameKernelOnTheSameSizes) {
    Task a;
    a.name = "layers.attention.qkv";
    a.m = 1;
    a.n = 6144;
    a.k = 4096;
    a.weights = WeightFormat::fp8;
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
