// What stands around the blocks: embedding, norms, residuals, head; stacks of several kinds.
#include <gtest/gtest.h>

#include "model/scenarios.hpp"
#include "roofline/model/parameters_only.hpp"

namespace roofline::model {
namespace {

using testing::lowered;
using testing::one;

LayerKind small_layer() {
    return testing::layer(testing::gqa({.heads = 4, .kv_heads = 2, .head_dim = 16, .reach = Reach::full()}),
                          testing::dense({.width = 96}));
}
Architecture small(int layers = 2) {
    return testing::stack(64, 1000, small_layer(), layers);
}

std::vector<std::string> names_ending(const Lowered& model, std::string_view end) {
    std::vector<std::string> names;
    for (const Operator& op : model.operators) {
        if (op.name.ends_with(end)) names.push_back(op.name);
    }
    return names;
}

TEST(Embedding, ReadsRowsAndNotTheTable) {
    const Lowered model = lowered(small());
    EXPECT_EQ(one(model, "embedding", decode_step(1, 10)).weights, 128.0);  // 64 x 2 B
    EXPECT_EQ(one(model, "embedding", decode_step(5, 10)).weights, 640.0);
    EXPECT_EQ(one(model, "embedding", prefill_step(2, 30)).weights, 60.0 * 128.0);
    EXPECT_EQ(one(model, "embedding", prefill_step(2, 30)).flops, 0.0) << "a gather is no product";
    EXPECT_EQ(one(model, "embedding", prefill_step(5, 1000)).weights, 128000.0) << "no more than there is";
    EXPECT_EQ(one(model, "embedding", prefill_step(5, 1000)).activations, 5000.0 * 128.0);
    EXPECT_EQ(testing::op_of(model, "embedding").stored_bytes, 128000.0) << "but all of it needs memory";
}

TEST(Embedding, LearnedPositionsAreASecondTable) {
    Architecture architecture = small();
    architecture.positions = 2048;
    const Lowered model = lowered(architecture);
    EXPECT_EQ(testing::op_of(model, "positions").parameters, 2048.0 * 64.0);
    EXPECT_EQ(one(model, "positions", decode_step(3, 10)).weights, 3.0 * 128.0);
    EXPECT_EQ(count_parameters(model).total - count_parameters(lowered(small())).total, 2048.0 * 64.0);
}

TEST(Embedding, ANarrowerTableIsProjectedInAndOut) {
    Architecture architecture = small();
    architecture.embedding_width = 32;  // OPT-350m does this
    const Lowered model = lowered(architecture);
    EXPECT_EQ(testing::op_of(model, "embedding").parameters, 1000.0 * 32.0);
    EXPECT_EQ(testing::op_of(model, "embedding_projection").parameters, 32.0 * 64.0);
    EXPECT_EQ(testing::op_of(model, "head_projection").parameters, 64.0 * 32.0);
    EXPECT_EQ(testing::op_of(model, "head").parameters, 32.0 * 1000.0);
}

TEST(Head, IsComputedOnlyWhereLogitsAreNeeded) {
    const Lowered model = lowered(small());
    EXPECT_EQ(one(model, "head", prefill_step(1, 500)).flops, 128000.0);  // 2 x 64 x 1000, once
    EXPECT_EQ(one(model, "head", prefill_step(3, 500)).flops, 3.0 * 128000.0);
    EXPECT_EQ(one(model, "head", decode_step(7, 500)).flops, 7.0 * 128000.0);
    EXPECT_EQ(one(model, "head", mixed_step(7, 500, 100, 0, false)).flops, 7.0 * 128000.0);
    // Speculative verification asks for several positions.
    EXPECT_EQ(one(model, "head", {{Phase::decode, 2.0, 4.0, 100.0, 4.0}}).flops, 8.0 * 128000.0);
}

TEST(Head, TiedToTheEmbeddingIsStoredOnceButRead) {
    Architecture tied = small();
    tied.tied = true;
    const Lowered model = lowered(tied);
    EXPECT_EQ(count_parameters(lowered(small())).total - count_parameters(model).total, 64000.0);
    EXPECT_EQ(count_parameters(lowered(small())).stored_bytes - count_parameters(model).stored_bytes, 128000.0);
    EXPECT_EQ(count_parameters(lowered(small())).active, count_parameters(model).active);
    EXPECT_EQ(one(model, "head", decode_step(1, 10)).weights, 128000.0);
    EXPECT_EQ(one(model, "head", decode_step(1, 10)).flops, 128000.0);
}

TEST(Head, MayHaveABiasThatIsNotTied) {
    Architecture tied = small();
    tied.tied = true;
    tied.head_bias = true;
    const Lowered model = lowered(tied);
    EXPECT_EQ(testing::op_of(model, "head").parameters, 1000.0);
    EXPECT_EQ(one(model, "head", decode_step(1, 10)).weights, 128000.0 + 2000.0);
}

TEST(Head, SamplingCanBeLeftOut) {
    EXPECT_EQ(testing::find(lowered(small(), {.sampling = false}), "sampling"), nullptr);
    EXPECT_NE(testing::find(lowered(small()), "sampling"), nullptr);
}

TEST(Layer, ASequentialOneHasTwoResidualsAndAParallelOneOne) {
    EXPECT_EQ(names_ending(lowered(small()), "residual").size(), 2U);
    Architecture parallel = small();
    parallel.kinds[0].parallel = true;
    parallel.kinds[0].norm_before_ffn = false;
    const Lowered model = lowered(parallel);
    EXPECT_EQ(names_ending(model, "residual"), std::vector<std::string>{"layers.ffn.residual"});
    // x + attention + ffn: two additions; three read and one written
    EXPECT_EQ(one(model, "layers.ffn.residual", decode_step(1, 5)).flops, 128.0);
    EXPECT_EQ(one(model, "layers.ffn.residual", decode_step(1, 5)).activations, 4.0 * 64.0 * 2.0);
    EXPECT_EQ(count_parameters(lowered(small())).total - count_parameters(model).total, 2.0 * 64.0) << "a norm a layer";
}

TEST(Layer, NormsBeforeAndAfterAreCountedAsAsked) {
    Architecture sandwich = small();  // Gemma: four norms a layer
    sandwich.kinds[0].norm_after_mixer = true;
    sandwich.kinds[0].norm_after_ffn = true;
    EXPECT_EQ(count_parameters(lowered(sandwich)).total - count_parameters(lowered(small())).total, 2.0 * 2.0 * 64.0);
}

TEST(Norm, LayerNormHasAGainAndABias) {
    // 2 layers x 2 norms and a last one
    Architecture other = small();
    other.norm = NormKind::layer_norm;
    EXPECT_EQ(count_parameters(lowered(other)).total - count_parameters(lowered(small())).total, 5.0 * 64.0);
    other.norm = NormKind::layer_norm_without_bias;
    EXPECT_EQ(count_parameters(lowered(other)).total, count_parameters(lowered(small())).total);
    other = small();
    other.final_norm = false;
    EXPECT_EQ(count_parameters(lowered(small())).total - count_parameters(lowered(other)).total, 64.0);
    other = small();
    other.embedding_norm = true;
    EXPECT_EQ(count_parameters(lowered(other)).total - count_parameters(lowered(small())).total, 64.0);
}

TEST(Ffn, GatedHasThreeMatricesAndPlainTwo) {
    const auto parameters = [](bool gated, bool bias) {
        Architecture model = small(1);
        model.kinds[0].ffn = testing::dense({.width = 96, .gated = gated, .bias = bias});
        return count_parameters(lowered(model)).total;
    };
    EXPECT_EQ(parameters(true, false) - parameters(false, false), 64.0 * 96.0);
    EXPECT_EQ(parameters(false, true) - parameters(false, false), 96.0 + 64.0);
    EXPECT_EQ(parameters(true, true) - parameters(true, false), 192.0 + 64.0);
}

TEST(Stack, LayersOfOneBlockAreFine) {
    // Nemotron-H: a layer is a mixer or an FFN, never both.
    Architecture model = small(1);
    LayerKind mixer = small_layer();
    mixer.ffn = nullptr;
    mixer.label = "attention";
    LayerKind ffn = small_layer();
    ffn.mixer = nullptr;
    ffn.label = "ffn";
    model.kinds = {mixer, ffn};
    model.layers = {0, 1, 1};
    const Lowered split = lowered(model);
    EXPECT_EQ(testing::op_of(split, "layers[attention].attention.qkv").count, 1.0);
    EXPECT_EQ(testing::op_of(split, "layers[ffn].ffn.down").count, 2.0);
    EXPECT_EQ(names_ending(split, "residual").size(), 2U);
}

TEST(Stack, TheOrderOfKindsDoesNotMatter) {
    Architecture model = small(1);
    LayerKind wide = small_layer();
    wide.ffn = testing::dense({.width = 128});
    wide.label = "wide";
    model.kinds.push_back(wide);
    model.layers = {0, 1, 0, 1, 1};
    const double alternating = count_parameters(lowered(model)).total;
    model.layers = {1, 1, 1, 0, 0};
    EXPECT_EQ(count_parameters(lowered(model)).total, alternating);
}

TEST(Stack, LayersInOtherNumberTypesArePricedApart) {
    // Checkpoints keep a first layer in bf16: it computes in bf16, the others in fp8, and the bytes add up.
    const Architecture model = small(3);
    TypePlan plan = testing::plan_for(model, "fp8", DType::fp8);
    plan.layers[0] = testing::plan_for(model).layers[0];
    const Lowered mixed = lower(model, plan);
    EXPECT_EQ(testing::op_of(mixed, "layers[@0].ffn.down").type, DType::bf16);
    EXPECT_EQ(testing::op_of(mixed, "layers[@0].ffn.down").count, 1.0);
    EXPECT_EQ(testing::op_of(mixed, "layers[@1].ffn.down").type, DType::fp8);
    EXPECT_EQ(testing::op_of(mixed, "layers[@1].ffn.down").count, 2.0);
    EXPECT_EQ(count_parameters(mixed).total, count_parameters(lowered(model)).total);
    EXPECT_EQ(one(mixed, "layers[@0].ffn.down", decode_step(1, 1)).weights, 96.0 * 64.0 * 2.0);
    EXPECT_EQ(one(mixed, "layers[@1].ffn.down", decode_step(1, 1)).weights, 96.0 * 64.0);
}

TEST(Stack, FilesThatStoreALayerDifferentlyKeepTheirTotal) {
    const Architecture model = small(2);
    TypePlan plan = testing::plan_for(model, "q4_k", DType::bf16);
    plan.layers[1][static_cast<std::size_t>(Role::ffn_down)].file_bits = 6.5625;
    const Lowered both = lower(model, plan);
    // 6144 weights a layer: one in 4.5 and one in 6.5625 bits
    EXPECT_DOUBLE_EQ(testing::op_of(both, "layers.ffn.down").stored_bytes * 2.0, 6144.0 * (4.5 + 6.5625) / 8.0);
}

TEST(ParametersOnly, TwoFlopsAParameterAndTokenAndEveryByteOnce) {
    const TypePlan plan = uniform_plan(1, testing::format("fp16"), DType::fp16, testing::format("fp16"));
    const Lowered model = lower_parameters_only(30e9, plan);
    EXPECT_EQ(testing::totals(model, decode_step(1, 100)).flops, 60e9);
    EXPECT_EQ(testing::totals(model, decode_step(8, 100)).flops, 480e9);
    EXPECT_EQ(testing::totals(model, decode_step(8, 100)).weights, 60e9);
    EXPECT_EQ(count_parameters(model).total, 30e9);
}

}  // namespace
}  // namespace roofline::model
