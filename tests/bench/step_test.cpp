// A whole step of a toy model against the same model written down plainly in fp64.
#include "roofline/bench/step.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bench/plain_model.hpp"
#include "roofline/bench/kernels/routing.hpp"

namespace roofline::bench {
namespace {

using testing::Plain;
using testing::Row;

/// Two layers of a Llama-like model.
StackShape toy(WeightFormat weights) {
    StackShape shape;
    shape.hidden = 128;
    shape.vocabulary = 300;
    shape.head = {.n = 300, .k = 128, .type = weights == WeightFormat::fp32 ? WeightFormat::fp32 : WeightFormat::bf16};
    shape.kv = weights == WeightFormat::fp32 ? DType::fp32 : DType::bf16;
    LayerShape layer;
    layer.count = 2;
    layer.norm_before_attention = layer.norm_before_ffn = true;
    layer.attention.query_heads = 4;
    layer.attention.kv_heads = 2;
    layer.attention.head_dim = layer.attention.value_dim = 32;
    layer.attention.rotary = true;
    layer.attention.qkv = {.n = 256, .k = 128, .type = weights};
    layer.attention.out = {.n = 128, .k = 128, .type = weights};
    layer.ffn.up = {.n = 512, .k = 128, .type = weights};
    layer.ffn.down = {.n = 128, .k = 256, .type = weights};
    shape.kinds = {layer};
    return shape;
}

/// Six experts of 64, of which each token goes to two.
FfnShape mixture() {
    FfnShape ffn;
    ffn.experts = 6;
    ffn.chosen = 2;
    ffn.router = {.n = 6, .k = 128, .type = WeightFormat::fp32};
    ffn.up = {.n = 128, .k = 128, .type = WeightFormat::fp32};
    ffn.down = {.n = 128, .k = 64, .type = WeightFormat::fp32};
    return ffn;
}

/// Four heads of 64 + 32 with values of 32, over entries of 128 + 32.
AttentionShape over_entries(WeightFormat weights) {
    AttentionShape attention;
    attention.query_heads = 4;
    attention.kv_heads = 1;
    attention.head_dim = 96;
    attention.value_dim = 32;
    attention.rotary = true;
    attention.rank = 128;
    attention.rope_dim = 32;
    attention.q = {.n = 4 * 96, .k = 128, .type = weights};
    attention.kv_down = {.n = 160, .k = 128, .type = weights};
    attention.kv_up = {.n = 4 * 96, .k = 128, .type = weights};
    attention.out = {.n = 128, .k = 128, .type = weights};
    return attention;
}

/// How far the logits of a prompt of seven tokens are off.
double error_of(const StackShape& shape, bool expanded = false) {
    const auto threads = std::move(*Threads::start(2));
    const StepWork work{.prefill = true, .batch = 1, .tokens = 7, .context = 7, .expanded = expanded};
    const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
    EXPECT_TRUE(model) << model.error().text;
    if (!model) return 1e300;
    (*model)->step(work);
    const Row expected = Plain(**model, shape).prefill(7);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < expected.size(); ++i) samples.push_back({static_cast<std::int64_t>(i), expected[i]});
    EXPECT_GT(largest_error(samples, std::vector<float>(expected.size(), 0.0F)), 1.0) << "the answer is not trivial";
    return largest_error(samples, (*model)->logits());
}

TEST(Step, ThePrefillOfAToyModelGivesTheLogitsOfPlainArithmetic) {
    // Rounding of activations grows over two layers: three percent in bf16, ten in the integer types.
    for (const auto& [type, allowed] : {std::pair{WeightFormat::fp32, 1e-3},
                                        {WeightFormat::bf16, 3e-2},
                                        {WeightFormat::int8, 0.1},
                                        {WeightFormat::int4, 0.1}})
        EXPECT_LE(error_of(toy(type)), allowed) << name(type);
}

TEST(Step, ThePrefillOfAMixtureOfExpertsGivesTheLogitsOfPlainArithmetic) {
    // In fp32 alone: what rounding does to scores may change which experts are chosen.
    StackShape shape = toy(WeightFormat::fp32);
    shape.kinds[0].ffn = mixture();
    EXPECT_LE(error_of(shape), 1e-3);
    // Beside them a shared one, with a gate of its own and without, as in Qwen2 and DeepSeek.
    shape.kinds[0].ffn.shared_up = {.n = 192, .k = 128, .type = WeightFormat::fp32};
    shape.kinds[0].ffn.shared_down = {.n = 128, .k = 96, .type = WeightFormat::fp32};
    EXPECT_LE(error_of(shape), 1e-3);
    shape.kinds[0].ffn.shared_gate = {.n = 1, .k = 128, .type = WeightFormat::fp32};
    EXPECT_LE(error_of(shape), 1e-3);
    shape.kinds[0].ffn.router.bias = true;
    EXPECT_LE(error_of(shape), 1e-3);
}

TEST(Step, ExpertsMayWorkOnNarrowerRows) {
    // As in Nemotron 3 Super: without gates, the shared one beside them as wide as the model.
    StackShape shape = toy(WeightFormat::fp32);
    FfnShape& ffn = shape.kinds[0].ffn;
    ffn = mixture();
    ffn.gated = false;
    ffn.latent_down = {.n = 32, .k = 128, .type = WeightFormat::fp32};
    ffn.latent_up = {.n = 128, .k = 32, .type = WeightFormat::fp32};
    ffn.up = {.n = 64, .k = 32, .type = WeightFormat::fp32};
    ffn.down = {.n = 32, .k = 64, .type = WeightFormat::fp32};
    EXPECT_LE(error_of(shape), 1e-3);
    ffn.shared_up = {.n = 96, .k = 128, .type = WeightFormat::fp32};
    ffn.shared_down = {.n = 128, .k = 96, .type = WeightFormat::fp32};
    EXPECT_LE(error_of(shape), 1e-3);
}

TEST(Step, ADenseFfnMayStandBesideExpertsWithNormsOfTheirOwn) {
    // As in Gemma 4, where keys are values too.
    StackShape shape = toy(WeightFormat::fp32);
    LayerShape& layer = shape.kinds[0];
    layer.norm_after_attention = layer.norm_after_ffn = true;
    layer.attention.norm = HeadNorm::each_head;
    layer.attention.keys_as_values = true;
    layer.attention.qkv.n = (4 + 2) * 32;
    EXPECT_LE(error_of(shape), 1e-3);
    layer.ffn = mixture();
    layer.ffn.norms_apart = true;
    layer.ffn.shared_up = {.n = 192, .k = 128, .type = WeightFormat::fp32};
    layer.ffn.shared_down = {.n = 128, .k = 96, .type = WeightFormat::fp32};
    EXPECT_LE(error_of(shape), 1e-3);
    layer.attention.gated = true;
    layer.attention.qkv.n += 4 * 32;
    EXPECT_LE(error_of(shape), 1e-3);
}

TEST(Step, LatentEntriesGiveTheLogitsOfPlainArithmeticAbsorbedAndExpanded) {
    for (const auto& [type, allowed] : {std::pair{WeightFormat::fp32, 1e-3}, {WeightFormat::bf16, 3e-2}}) {
        for (const bool expanded : {false, true}) {
            StackShape shape = toy(type);
            shape.kinds[0].attention = over_entries(type);
            EXPECT_LE(error_of(shape, expanded), allowed) << name(type) << expanded;
            // Values as wide as keys, as in GLM 4.7 Flash.
            StackShape even = shape;
            even.kinds[0].attention.value_dim = 96;
            even.kinds[0].attention.kv_up.n = 4 * (64 + 96);
            even.kinds[0].attention.out.k = 4 * 96;
            EXPECT_LE(error_of(even, expanded), allowed) << name(type) << expanded;
            shape.kinds[0].attention.q_down = {.n = 64, .k = 128, .type = type};
            shape.kinds[0].attention.q.k = 64;
            EXPECT_LE(error_of(shape, expanded), allowed) << name(type) << expanded;
        }
    }
}

TEST(Step, KindsOfLayersFollowEachOther) {
    // As in DeepSeek: a dense layer, then two of experts beside a shared one.
    StackShape shape = toy(WeightFormat::fp32);
    shape.kinds[0].attention = over_entries(WeightFormat::fp32);
    shape.kinds[0].count = 1;
    shape.kinds.push_back(shape.kinds[0]);
    shape.kinds[1].count = 2;
    shape.kinds[1].ffn = mixture();
    shape.kinds[1].ffn.shared_up = {.n = 192, .k = 128, .type = WeightFormat::fp32};
    shape.kinds[1].ffn.shared_down = {.n = 128, .k = 96, .type = WeightFormat::fp32};
    EXPECT_EQ(shape.layers(), 3);
    EXPECT_LE(error_of(shape), 1e-3);
}

TEST(Step, NormsBiasesAndPositionsAreWhereAModelHasThem) {
    // GPT-2: means taken off, biases everywhere, positions from a table, no gate.
    StackShape gpt = toy(WeightFormat::fp32);
    gpt.layer_norms = true;
    gpt.positions = 16;
    LayerShape& plain = gpt.kinds[0];
    plain.attention.rotary = false;
    plain.attention.qkv.bias = plain.attention.out.bias = true;
    plain.ffn.gated = false;
    plain.ffn.up = {.n = 256, .k = 128, .type = WeightFormat::fp32, .bias = true};
    plain.ffn.down.bias = true;
    EXPECT_LE(error_of(gpt), 1e-3);
    // GPT-OSS: an entry without a value.
    StackShape sinks = toy(WeightFormat::fp32);
    sinks.kinds[0].attention.sinks = true;
    EXPECT_LE(error_of(sinks), 1e-3);
    // Falcon, side by side with one norm and with two; BLOOM, a norm of the embedding.
    gpt.positions = 0;
    gpt.embedding_norm = true;
    plain.parallel = true;
    EXPECT_LE(error_of(gpt), 1e-3);
    plain.norm_before_ffn = false;
    EXPECT_LE(error_of(gpt), 1e-3);
    // OLMo 2: norms behind blocks and over all heads; Gemma: before and behind; Qwen3: of each head.
    StackShape norms = toy(WeightFormat::fp32);
    LayerShape& layer = norms.kinds[0];
    layer.norm_after_attention = layer.norm_after_ffn = true;
    EXPECT_LE(error_of(norms), 1e-3);
    layer.norm_before_attention = layer.norm_before_ffn = false;
    layer.attention.norm = HeadNorm::whole_width;
    EXPECT_LE(error_of(norms), 1e-3);
    layer.attention.norm = HeadNorm::each_head;
    EXPECT_LE(error_of(norms), 1e-3);
}

/// Step after step held against fp64, each of two sequences with the same token again and again.
void expect_states_to_go_on(const StackShape& shape, Threads& threads) {
    const StepWork work{.prefill = false, .batch = 2, .tokens = 1, .context = 9};
    const auto model = CpuModel::make(shape, work, 1LL << 30, threads);
    ASSERT_TRUE(model) << model.error().text;
    for (std::int64_t steps = 1; steps <= 6; ++steps) {
        (*model)->step(work);
        const Row expected = Plain(**model, shape).prefill(steps, true);
        std::vector<Sample> samples;
        for (std::size_t i = 0; i < expected.size(); ++i)
            samples.push_back({static_cast<std::int64_t>(i), expected[i]});
        EXPECT_LE(largest_error(samples, (*model)->logits()), 1e-3) << steps;
    }
}

/// A prompt leaves what its tokens leave one by one.
void expect_prompts_to_be_the_same(const StackShape& shape, Threads& threads) {
    const StepWork prompt{.prefill = true, .batch = 2, .tokens = 7, .context = 7};
    const auto model = CpuModel::make(shape, prompt, 1LL << 30, threads);
    ASSERT_TRUE(model) << model.error().text;
    (*model)->step(prompt);
    const Row expected = Plain(**model, shape).prefill(7);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < expected.size(); ++i) samples.push_back({static_cast<std::int64_t>(i), expected[i]});
    EXPECT_LE(largest_error(samples, (*model)->logits()), 1e-3);
}

TEST(Step, StatesGoOnFromTokenToToken) {
    // Six heads of 8 with states of 32 in two groups; a layer of that alone, one with an FFN, and an FFN alone.
    const auto threads = std::move(*Threads::start(2));
    StackShape shape = toy(WeightFormat::fp32);
    LayerShape layer = shape.kinds[0];
    layer.attention = {};
    layer.count = 1;
    layer.state.heads = 6;
    layer.state.groups = 2;
    layer.state.key_dim = 32;
    layer.state.value_dim = 8;
    layer.state.taps = 4;
    layer.state.in = {.n = 48 + 48 + 128 + 6, .k = 128, .type = WeightFormat::fp32};
    layer.state.out = {.n = 128, .k = 48, .type = WeightFormat::fp32};
    shape.kinds = {layer, layer, layer};
    shape.kinds[0].ffn = {};
    shape.kinds[2].state = {};
    expect_states_to_go_on(shape, *threads);
    expect_prompts_to_be_the_same(shape, *threads);
    // The same of a gated delta net, which has a share for each head besides.
    for (LayerShape& kind : shape.kinds) {
        if (kind.state.heads == 0) continue;
        kind.state.delta = true;
        kind.state.in.n = kind.state.made();
        EXPECT_EQ(kind.state.in.n, 128 + 48 + 48 + 12);
    }
    expect_states_to_go_on(shape, *threads);
    expect_prompts_to_be_the_same(shape, *threads);
}

TEST(Step, ChannelsGoOnFromTokenToToken) {
    // 48 channels with states of 8, steps made of 32 numbers; with an FFN behind them and without.
    const auto threads = std::move(*Threads::start(2));
    StackShape shape = toy(WeightFormat::fp32);
    LayerShape layer = shape.kinds[0];
    layer.attention = {};
    layer.count = 1;
    layer.channels.channels = 48;
    layer.channels.key_dim = 8;
    layer.channels.taps = 4;
    layer.channels.in = {.n = 96, .k = 128, .type = WeightFormat::fp32};
    layer.channels.select = {.n = 32 + 16, .k = 48, .type = WeightFormat::fp32};
    layer.channels.step = {.n = 48, .k = 32, .type = WeightFormat::fp32, .bias = true};
    layer.channels.out = {.n = 128, .k = 48, .type = WeightFormat::fp32};
    shape.kinds = {layer, layer};
    shape.kinds[0].ffn = {};
    for (const bool norms : {false, true}) {
        for (LayerShape& kind : shape.kinds) kind.channels.norms = norms;
        expect_states_to_go_on(shape, *threads);
        expect_prompts_to_be_the_same(shape, *threads);
    }
    // No states, but gates before and behind the convolution.
    for (LayerShape& kind : shape.kinds) {
        kind.channels.key_dim = 0;
        kind.channels.taps = 3;
        kind.channels.norms = false;
        kind.channels.in.n = kind.channels.made();
        EXPECT_EQ(kind.channels.in.n, 144);
        kind.channels.select = kind.channels.step = {};
    }
    expect_states_to_go_on(shape, *threads);
    expect_prompts_to_be_the_same(shape, *threads);
}

TEST(Step, AttentionMayHaveGatesBehindIt) {
    StackShape shape = toy(WeightFormat::fp32);
    AttentionShape& attention = shape.kinds[0].attention;
    attention.gated = true;
    attention.qkv.n += attention.query_heads * attention.head_dim;
    EXPECT_LE(error_of(shape), 1e-3);
    attention.norm = HeadNorm::each_head;
    EXPECT_LE(error_of(shape), 1e-3);
    attention.gate_a_head = true;
    attention.qkv.n -= attention.query_heads * (attention.head_dim - 1);
    EXPECT_LE(error_of(shape), 1e-3);
}

TEST(Step, ATokenMayChooseTheEntriesThatItSees) {
    // DeepSeek V3.2's kind: three of up to seven entries, by two heads of 64.
    constexpr WeightFormat fp32 = WeightFormat::fp32;
    StackShape shape = toy(fp32);
    AttentionShape& attention = shape.kinds[0].attention;
    attention = over_entries(fp32);
    attention.q_down = {.n = 64, .k = 128, .type = fp32};
    attention.q.k = 64;
    EXPECT_LE(error_of(shape), 1e-3);
    const auto threads = std::move(*Threads::start(2));
    const StepWork prompt{.prefill = true, .batch = 1, .tokens = 7, .context = 7};
    const auto logits = [&](const StackShape& of) {
        const auto model = std::move(*CpuModel::make(of, prompt, 1LL << 30, *threads));
        model->step(prompt);
        return model->logits();
    };
    const std::vector<float> all = logits(shape);
    attention.chosen = 3;
    attention.indexer = {2, 64, {.n = 128, .k = 64, .type = fp32}, {.n = 66, .k = 128, .type = fp32}};
    EXPECT_LE(error_of(shape), 1e-3);
    EXPECT_NE(logits(shape), all);
    // As in GLM 5.2, layers that see what one before them has chosen; nobody chooses for those alone.
    shape.kinds.push_back(shape.kinds[0]);
    shape.kinds[1].attention.indexer = {};
    EXPECT_LE(error_of(shape), 1e-3);
    std::swap(shape.kinds[0], shape.kinds[1]);
    EXPECT_FALSE(CpuModel::make(shape, prompt, 1LL << 30, *threads));
    shape.kinds.erase(shape.kinds.begin());
    // Where nothing is left out, entries may be expanded.
    shape.kinds[0].attention.chosen = 7;
    EXPECT_LE(error_of(shape, true), 1e-3);
    // A token of each of two sequences, on as many threads as there are.
    shape.kinds[0].attention.chosen = 16;
    const StepWork decode{.batch = 2, .tokens = 1, .context = 50};
    std::vector<std::vector<float>> found;
    for (const int count : {1, 3}) {
        const auto team = std::move(*Threads::start(count));
        const auto model = CpuModel::make(shape, decode, 1LL << 30, *team);
        ASSERT_TRUE(model);
        (*model)->step(decode);
        found.push_back((*model)->logits());
    }
    for (std::size_t i = 0; i < found[0].size(); ++i) EXPECT_NEAR(found[0][i], found[1][i], 1e-3) << i;
}

TEST(Step, AWindowIsAllThatIsKept) {
    const auto threads = std::move(*Threads::start(1));
    StackShape shape = toy(WeightFormat::bf16);
    const StepWork work{.prefill = false, .batch = 2, .tokens = 1, .context = 4096};
    const std::int64_t all = step_bytes(shape, work).layers[0];
    shape.kinds[0].attention.window = 1024;
    // Keys and values of two heads of 32 in two sequences, in bf16.
    EXPECT_EQ(all - step_bytes(shape, work).layers[0], 3072 * 2 * 2 * 2 * 32 * 2);
    const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
    ASSERT_TRUE(model);
    for (const float logit : ((*model)->step(work), (*model)->logits())) EXPECT_TRUE(std::isfinite(logit));
    // A prompt of seven tokens of which each sees four.
    StackShape narrow = toy(WeightFormat::fp32);
    narrow.kinds[0].attention.window = 4;
    EXPECT_LE(error_of(narrow), 1e-3);
}

TEST(Step, AMixtureTakesTheMemoryOfAllItsExperts) {
    const StepWork work{.prefill = false, .batch = 1, .tokens = 1, .context = 4};
    StackShape shape = toy(WeightFormat::fp32);
    const std::int64_t dense = step_bytes(shape, work).layers[0];
    shape.kinds[0].ffn = mixture();
    // Six FFNs of 3 x 64 x 128 in fp32 and a router of 6 x 128, for one FFN of 3 x 256 x 128.
    EXPECT_EQ(step_bytes(shape, work).layers[0] - dense, (6 * 3 * 64 + 6 - 3 * 256) * 128 * 4);
}

TEST(Routing, SendsEveryRowToItsBestExpertsAndPutsTheirResultsTogether) {
    const auto threads = std::move(*Threads::start(2));
    // Three rows, four experts, two chosen. By hand: row 0 goes to 1 and 3, row 1 to 0 and 1 (a tie: the first), row 2
    // to 3 and 0.
    const std::vector<float> scores = {0, 2, 1, 2, 5, 5, 1, 5, 1, 0, -1, 3};
    Routing routing;
    route(scores.data(), 3, 4, 2, routing, *threads);
    EXPECT_EQ(routing.begins, (std::vector<std::int64_t>{0, 2, 4, 4, 6}));
    EXPECT_EQ(routing.rows, (std::vector<std::int64_t>{1, 2, 0, 1, 0, 2}));
    EXPECT_EQ(routing.places, (std::vector<std::int64_t>{2, 4, 0, 3, 5, 1}));
    EXPECT_FLOAT_EQ(routing.shares[0], 0.5F);
    EXPECT_FLOAT_EQ(routing.shares[4], 1.0F / (1.0F + std::exp(-2.0F)));
    EXPECT_FLOAT_EQ(routing.shares[4] + routing.shares[5], 1.0F);
    // An expert that gives back what it took: every row comes back as it was.
    const std::vector<float> x = {1, -2, 3, 4, -5, 6};
    std::vector<float> taken(12);
    std::vector<float> back(6);
    scatter_rows(x.data(), routing, taken.data(), 2, *threads);
    EXPECT_EQ(taken[0], 3.0F);
    EXPECT_EQ(taken[3], 6.0F);
    combine_rows(taken.data(), routing, back.data(), 2, *threads);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(back[i], x[i]);
}

TEST(Step, DecodeChoosesATokenForEachSequence) {
    const auto threads = std::move(*Threads::start(2));
    const StackShape shape = toy(WeightFormat::bf16);
    const StepWork work{.prefill = false, .batch = 3, .tokens = 1, .context = 20};
    const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
    ASSERT_TRUE(model);
    const auto& chosen = (*model)->step(work);
    ASSERT_EQ(chosen.size(), 3U);
    for (const std::int32_t token : chosen) {
        EXPECT_GE(token, 0);
        EXPECT_LT(token, 300);
    }
    Pace pace;
    pace.budget.seconds = 1e-3;
    const StepOutcome outcome = run_step(**model, work, pace);
    EXPECT_EQ(outcome.layers_distinct, 2);
    EXPECT_NEAR(outcome.attention + outcome.ffn + outcome.other, outcome.timing.median, 1e-9);
}

TEST(Step, LayersShareWeightsWhereMemoryIsShort) {
    const auto threads = std::move(*Threads::start(1));
    const StackShape shape = toy(WeightFormat::bf16);
    const StepWork work{.prefill = false, .batch = 1, .tokens = 1, .context = 4};
    const StepBytes bytes = step_bytes(shape, work);
    const auto one = CpuModel::make(shape, work, bytes.least() + bytes.layers[0] / 2, *threads);
    ASSERT_TRUE(one);
    EXPECT_EQ((*one)->distinct_layers(), 1);
    const auto none = CpuModel::make(shape, work, bytes.outside, *threads);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().unavailable);
}

}  // namespace
}  // namespace roofline::bench
