// What one device of a deployment holds and does: what is split adds up to the whole, what is copied is copied by rule,
// and what is exchanged is counted by hand.
#include "roofline/model/deployment.hpp"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/embedded.hpp"

namespace roofline::model {
namespace {

using namespace roofline::testing;

Lowered on_one_device(const Architecture& whole, const Deployment& deployment) {
    const auto rank = on_rank(whole, deployment);
    EXPECT_TRUE(rank.has_value()) << (rank ? "" : rank.error().text);
    if (!rank) return {};
    LoweringOptions options;
    options.deployment = deployment;
    return lowered(*rank, options);
}

double value(const Form& form, const Lowered& of, const Step& step) {
    FeatureValues values{};
    for (std::size_t i = 0; i < of.features.size(); ++i) values[i] = evaluate(of.features[i], step);
    return form(values);
}

const Operator* find(const Lowered& in, std::string_view name) {
    for (const Operator& op : in.operators) {
        if (op.name == name) return &op;
    }
    return nullptr;
}

double flops_of_products(const Lowered& of, const Step& step) {
    double sum = 0.0;
    for (const Operator& op : of.operators) {
        if (op.engine == Engine::matrix) sum += op.count * value(op.flops, of, step);
    }
    return sum;
}

TEST(Deployment, OfOneDeviceChangesNothing) {
    const Lowered before = lowered(llama_3_8b());
    const Lowered after = on_one_device(llama_3_8b(), {});
    ASSERT_EQ(before.operators.size(), after.operators.size());
    for (std::size_t i = 0; i < before.operators.size(); ++i) {
        EXPECT_EQ(before.operators[i].name, after.operators[i].name);
        EXPECT_EQ(before.operators[i].stored_bytes, after.operators[i].stored_bytes);
    }
}

TEST(Deployment, TensorRanksShareHeadsColumnsAndVocabulary) {
    // Llama 3 8B over 4: 8 heads and 2 KV heads of 128: (8 + 2 x 2) x 128 = 1536 columns of QKV; 14336 / 4 = 3584.
    const Lowered quarter = on_one_device(llama_3_8b(), {.tensor = 4});
    EXPECT_EQ(find(quarter, "layers.attention.qkv")->extent.cols, 1536);
    EXPECT_EQ(find(quarter, "layers.attention.out")->extent.inner, 1024);
    EXPECT_EQ(find(quarter, "layers.ffn.gate_up")->extent.cols, 2 * 3584);
    EXPECT_EQ(find(quarter, "layers.ffn.down")->extent.inner, 3584);
    EXPECT_EQ(find(quarter, "head")->extent.cols, 32064);
    // 2 KV heads x 2 x 128 x 2 B a layer.
    EXPECT_EQ(kv_bytes_per_token(quarter), 32 * 1024);
}

TEST(Deployment, NormsAreCopied) {
    const Lowered whole = lowered(llama_3_8b());
    const Lowered quarter = on_one_device(llama_3_8b(), {.tensor = 4});
    for (const char* name : {"layers.attention.norm", "layers.ffn.norm", "final_norm"}) {
        EXPECT_EQ(find(whole, name)->stored_bytes, find(quarter, name)->stored_bytes) << name;
        EXPECT_EQ(value(find(whole, name)->flops, whole, decode_step(4, 100)),
                  value(find(quarter, name)->flops, quarter, decode_step(4, 100)))
            << name;
    }
}

TEST(Deployment, KeysAndValuesBeyondTheHeadsAreCopied) {
    // 8 KV heads over 8, 16 and 32 devices: one head each, so each device keeps as much.
    const double at_8 = kv_bytes_per_token(on_one_device(llama_3_8b(), {.tensor = 8}));
    EXPECT_EQ(at_8, 32.0 * 2 * 128 * 2);
    EXPECT_EQ(kv_bytes_per_token(on_one_device(llama_3_8b(), {.tensor = 16})), at_8);
    EXPECT_EQ(kv_bytes_per_token(on_one_device(llama_3_8b(), {.tensor = 32})), at_8);
}

TEST(Deployment, EachLayerAddsUpTwice) {
    // A token is 4096 x 2 B; 5 tokens.
    const Lowered half = on_one_device(llama_3_8b(), {.tensor = 2});
    for (const char* name : {"layers.attention.all_reduce", "layers.ffn.all_reduce"}) {
        const Operator* sum = find(half, name);
        ASSERT_NE(sum, nullptr) << name;
        EXPECT_EQ(sum->count, 32);
        EXPECT_EQ(sum->extent.collective, Collective::all_reduce);
        EXPECT_EQ(value(sum->message_bytes, half, decode_step(5, 100)), 5 * 4096 * 2);
    }
    EXPECT_EQ(value(find(half, "head_all_gather")->message_bytes, half, decode_step(5, 100)), 5 * 128256 * 2);
    EXPECT_EQ(value(find(half, "embedding_all_reduce")->message_bytes, half, decode_step(5, 100)), 5 * 4096 * 2);
}

TEST(Deployment, SplitNormsScatterAndGatherInsteadOfAdding) {
    const Lowered parts = on_one_device(llama_3_8b(), {.tensor = 4, .sequence_parallel = true});
    EXPECT_EQ(find(parts, "layers.ffn.all_reduce"), nullptr);
    ASSERT_NE(find(parts, "layers.ffn.reduce_scatter"), nullptr);
    ASSERT_NE(find(parts, "layers.ffn.all_gather"), nullptr);
    const Lowered whole = lowered(llama_3_8b());
    const Step step = prefill_step(1, 1024);
    EXPECT_EQ(4 * value(find(parts, "layers.ffn.norm")->flops, parts, step),
              value(find(whole, "layers.ffn.norm")->flops, whole, step));
}

TEST(Deployment, ExpertsAreSpreadWholeOrCut) {
    // Mixtral over 4 tensor ranks. Cut: 8 experts of 3584 columns; spread: 2 experts of 14336. The same bytes.
    const Lowered cut = on_one_device(mixtral_8x7b(), {.tensor = 4});
    const Lowered spread = on_one_device(mixtral_8x7b(), {.tensor = 4, .experts = 4});
    const Operator* narrow = find(cut, "layers.ffn.experts.gate_up");
    const Operator* few = find(spread, "layers.ffn.experts.gate_up");
    EXPECT_EQ(narrow->extent.cols, 2 * 3584);
    EXPECT_EQ(few->extent.cols, 2 * 14336);
    EXPECT_EQ(narrow->stored_bytes, few->stored_bytes);
    // FLOPs of a device: 2 tokens x 2 experts x 2 x 4096 x 28672, a quarter of it, either way.
    const double flops = 2 * 2 * 2.0 * 4096 * 28672 / 4;
    EXPECT_DOUBLE_EQ(value(narrow->flops, cut, decode_step(2, 10)), flops);
    EXPECT_DOUBLE_EQ(value(few->flops, spread, decode_step(2, 10)), flops);
    // One token touches 2 of 8 experts: half an expert on each of four devices.
    EXPECT_NEAR(value(few->weight_bytes, spread, decode_step(1, 10)), 0.5 * few->stored_bytes / 2, 1.0);
}

TEST(Deployment, GroupsThatAttendApartShareTheirExperts) {
    // Mixtral, 4 groups with 2 experts each; every group decodes 3 tokens, so 12 tokens meet all experts.
    const Lowered one = on_one_device(mixtral_8x7b(), {.groups = 4, .experts = 4});
    const Operator* up = find(one, "layers.ffn.experts.gate_up");
    // A device's own share: 12 tokens x 2 experts / 4 devices = 6 rows.
    EXPECT_DOUBLE_EQ(value(up->flops, one, decode_step(3, 10)), 6 * 2.0 * 4096 * 28672);
    // Experts touched: 2 (1 - (6/8)^12).
    EXPECT_NEAR(value(up->weight_bytes, one, decode_step(3, 10)) / (up->stored_bytes / 2), 2 * (1 - std::pow(0.75, 12)),
                1e-9);
    // Attention is whole: all heads, all KV heads.
    EXPECT_EQ(find(one, "layers.attention.core")->extent.heads, 32);
    EXPECT_EQ(find(one, "layers.attention.all_reduce"), nullptr);
    // A token goes to the devices that hold its two experts: 4 (1 - 6/8 x 5/7) = 13/7 of them; 8192 B each.
    const Operator* dispatch = find(one, "layers.ffn.dispatch");
    ASSERT_NE(dispatch, nullptr);
    EXPECT_NEAR(value(dispatch->message_bytes, one, decode_step(3, 10)), 3 * 13.0 / 7 * 8192, 1e-6);
    // In 8 bits it is half of that on the way there; what comes back is not.
    const Lowered narrow = on_one_device(mixtral_8x7b(), {.groups = 4, .experts = 4, .dispatch = DType::fp8});
    EXPECT_NEAR(value(find(narrow, "layers.ffn.dispatch")->message_bytes, narrow, decode_step(3, 10)),
                3 * 13.0 / 7 * 4096, 1e-6);
    EXPECT_NEAR(value(find(narrow, "layers.ffn.return")->message_bytes, narrow, decode_step(3, 10)),
                3 * 13.0 / 7 * 8192, 1e-6);
}

TEST(Deployment, TokensMayBeGatheredForSpreadExperts) {
    // Every device ends up with the 3 tokens of all 4 groups, 8192 B each, and adds up sums of as many.
    const Deployment spread{.groups = 4, .experts = 4, .exchange = ExpertExchange::gather};
    const Lowered one = on_one_device(mixtral_8x7b(), spread);
    EXPECT_EQ(find(one, "layers.ffn.dispatch"), nullptr);
    for (const char* name : {"layers.ffn.gather_tokens", "layers.ffn.scatter_tokens"}) {
        const Operator* found = find(one, name);
        ASSERT_NE(found, nullptr) << name;
        EXPECT_DOUBLE_EQ(value(found->message_bytes, one, decode_step(3, 10)), 12 * 8192.0);
    }
    // What is computed is the same: a token is worked on where its experts are.
    const Lowered sent = on_one_device(mixtral_8x7b(), {.groups = 4, .experts = 4});
    EXPECT_EQ(value(find(one, "layers.ffn.experts.down")->flops, one, decode_step(3, 10)),
              value(find(sent, "layers.ffn.experts.down")->flops, sent, decode_step(3, 10)));
    EXPECT_EQ(describe(spread), "attention DP4, EP4 (gather)");
}

TEST(Deployment, ImbalanceMakesTheBusiestDeviceWorkMore) {
    const Deployment even{.groups = 4, .experts = 4};
    Deployment uneven = even;
    uneven.imbalance = 1.5;
    const Lowered a = on_one_device(mixtral_8x7b(), even);
    const Lowered b = on_one_device(mixtral_8x7b(), uneven);
    const Step step = decode_step(8, 10);
    EXPECT_DOUBLE_EQ(1.5 * value(find(a, "layers.ffn.experts.down")->flops, a, step),
                     value(find(b, "layers.ffn.experts.down")->flops, b, step));
}

TEST(Deployment, RedundantExpertsTakeMemory) {
    // 8 + 4 experts over 4 devices: three on each instead of two.
    const Lowered two = on_one_device(mixtral_8x7b(), {.groups = 4, .experts = 4});
    const Lowered three = on_one_device(mixtral_8x7b(), {.groups = 4, .experts = 4, .redundant_experts = 4});
    EXPECT_DOUBLE_EQ(find(three, "layers.ffn.experts.down")->stored_bytes,
                     1.5 * find(two, "layers.ffn.experts.down")->stored_bytes);
}

TEST(Deployment, DevicesThatShareAContextSplitPromptAndCache) {
    const Lowered whole = lowered(llama_3_8b());
    const Lowered half = on_one_device(llama_3_8b(), {.context = 2});
    const Step prompt = prefill_step(1, 1024);
    const Step token = decode_step(8, 1024);
    // Prefill: half of the tokens and pairs; all keys are read.
    EXPECT_DOUBLE_EQ(2 * flops_of_products(half, prompt) - value(find(half, "head")->flops, half, prompt),
                     flops_of_products(whole, prompt));
    EXPECT_EQ(value(find(half, "layers.attention.core")->cache_bytes, half, prompt),
              value(find(whole, "layers.attention.core")->cache_bytes, whole, prompt));
    // Decode: half of the cache; the products are those of all tokens.
    EXPECT_DOUBLE_EQ(2 * value(find(half, "layers.attention.core")->cache_bytes, half, token),
                     value(find(whole, "layers.attention.core")->cache_bytes, whole, token));
    EXPECT_EQ(value(find(half, "layers.ffn.down")->flops, half, token),
              value(find(whole, "layers.ffn.down")->flops, whole, token));
    EXPECT_EQ(2 * kv_bytes_per_token(half), kv_bytes_per_token(whole));
    // Keys and values of all 1024 tokens are gathered: 2 x 8 x 128 x 2 B each.
    EXPECT_DOUBLE_EQ(value(find(half, "layers.attention.kv_all_gather")->message_bytes, half, prompt), 1024 * 4096.0);
    // So are those of earlier chunks, half of which lie with the other: 3,000 and 500 new ones.
    const Step chunk = {{Phase::prefill, 1.0, 500.0, 3000.0, 0.0}};
    EXPECT_DOUBLE_EQ(value(find(half, "layers.attention.kv_all_gather")->message_bytes, half, chunk), 3500 * 4096.0);
    EXPECT_EQ(value(find(half, "layers.attention.kv_all_gather")->message_bytes, half, token), 0.0);
}

TEST(Deployment, LayersAreDealtEvenlyToStages) {
    const auto ranges = pipeline_ranges(10, 4);
    ASSERT_EQ(ranges.size(), 4U);
    EXPECT_EQ(ranges[0], (LayerRange{0, 3}));
    EXPECT_EQ(ranges[1], (LayerRange{3, 6}));
    EXPECT_EQ(ranges[2], (LayerRange{6, 8}));
    EXPECT_EQ(ranges[3], (LayerRange{8, 10}));
}

TEST(Deployment, StagesTogetherAreTheModel) {
    const Architecture model = llama_3_8b();
    const Deployment four{.pipeline = 4};
    const auto rank = on_rank(model, four);
    ASSERT_TRUE(rank.has_value());
    LoweringOptions options;
    options.deployment = four;
    double stored = 0.0;
    double sends = 0.0;
    for (const LayerRange& range : pipeline_ranges(32, 4)) {
        options.layers = range;
        const Lowered stage = lowered(*rank, options);
        stored += count_parameters(stage).stored_bytes;
        if (const Operator* send = find(stage, "pipeline.send")) sends += send->count;
    }
    EXPECT_DOUBLE_EQ(stored, count_parameters(lowered(model)).stored_bytes);
    EXPECT_EQ(sends, 3.0);
    options.layers.reset();
    EXPECT_EQ(find(lowered(*rank, options), "pipeline.send")->count, 3.0);
}

TEST(Deployment, NeighboursAreInOneNodeAsLongAsItHoldsThem) {
    Deployment d{.tensor = 8, .pipeline = 4};
    d.node = 8;
    EXPECT_EQ(d.tensor_group(), (RankGroup{8, 1}));
    EXPECT_EQ(d.hops_between_nodes(), 3.0);
    d = {.tensor = 4, .pipeline = 4};
    d.node = 8;
    EXPECT_EQ(d.hops_between_nodes(), 1.0);  // two stages a node: the middle hand-over leaves it
    d = {.tensor = 16};
    d.node = 8;
    EXPECT_EQ(d.tensor_group(), (RankGroup{16, 2}));
    d = {.tensor = 8, .context = 2};
    d.node = 8;
    EXPECT_EQ(d.context_group(), (RankGroup{2, 2}));  // each partner is in the other node
}

TEST(Deployment, ImpossibleCutsAreRefusedWithWhatWorks) {
    const auto problem = [](const Architecture& model, const Deployment& deployment) {
        const auto rank = on_rank(model, deployment);
        return rank ? std::string("no problem") : rank.error().text;
    };
    EXPECT_EQ(problem(llama_3_8b(), {.tensor = 3}),
              "32 attention heads cannot be shared evenly by 3 devices; tensor parallelism can be 1, 2, 4, 8, 16, 32");
    EXPECT_EQ(problem(llama_3_8b(), {.pipeline = 33}),
              "pipeline parallelism of 33 is more than the 32 layers of test: expected 1 to 32");
    EXPECT_EQ(problem(mixtral_8x7b(), {.tensor = 16, .experts = 16}),
              "8 experts cannot be shared evenly by 16 devices; expert parallelism can be 1, 2, 4, 8");
    EXPECT_EQ(
        problem(mixtral_8x7b(), {.tensor = 4, .experts = 8}),
        "expert parallelism of 8 does not divide the 4 devices of tensor and data parallelism; it can be 1, 2, 4");
}

// Roles of which every device has a part, and those of which every device has all (by rule).
bool is_split(const Operator& op) {
    static const std::set<Role> copied = {Role::norm,       Role::latent_q_down, Role::latent_kv_down,
                                          Role::indexer,    Role::compressor,    Role::router,
                                          Role::moe_latent, Role::other,         Role::position};
    return !copied.contains(op.role);
}

/// On every built-in model that two devices can share: matrices that are split add up to the whole.
TEST(Deployment, WhatIsSplitAddsUpOnEveryModel) {
    int tried = 0;
    for (const io::EmbeddedFile& file : io::embedded_models()) {
        const auto model = io::builtin_model(file.name);
        ASSERT_TRUE(model.has_value()) << file.name;
        for (const Deployment& deployment :
             {Deployment{.tensor = 2}, Deployment{.tensor = 2, .experts = 2}, Deployment{.groups = 2, .experts = 2}}) {
            const auto rank = on_rank(model->architecture, deployment);
            if (!rank) continue;
            ++tried;
            LoweringOptions options;
            options.deployment = deployment;
            const Lowered whole = lower(model->architecture, model->types);
            const Lowered half = lower(*rank, model->types, options);
            const Step step = decode_step(16, 300);
            for (const Operator& part : half.operators) {
                const Operator* all = find(whole, part.name);
                if (part.kind == Kind::collective) continue;
                ASSERT_NE(all, nullptr) << file.name << ": " << part.name;
                // Where groups attend apart everything but the experts is whole on each.
                const bool expert = part.role == Role::expert_gate_up || part.role == Role::expert_down;
                const bool split = deployment.groups > 1.0 ? expert : is_split(part);
                if (part.engine != Engine::matrix || part.kind == Kind::scan || part.role == Role::other) continue;
                const double parts = split ? 2.0 : 1.0;
                // KV heads and state-space groups that are copied, and rows the vocabulary is padded by, are more.
                const bool copies =
                    part.name.ends_with(".qkv") || part.role == Role::head || part.role == Role::mixer_in;
                const double flops = value(all->flops, whole, step) * (deployment.groups > 1.0 && expert ? 2.0 : 1.0);
                EXPECT_GE(parts * value(part.flops, half, step), flops * (1 - 1e-12)) << file.name << ": " << part.name;
                if (!copies) {
                    EXPECT_NEAR(parts * value(part.flops, half, step), flops, 1e-9 * flops)
                        << file.name << ": " << part.name;
                }
                if (!copies) {
                    EXPECT_NEAR(parts * part.parameters, all->parameters, 0.002 * all->parameters + 20000)
                        << file.name << ": " << part.name;
                }
            }
        }
    }
    EXPECT_GT(tried, 250);
}

}  // namespace
}  // namespace roofline::model
