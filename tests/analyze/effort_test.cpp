// FLOPs and bytes of single operators, each derived by hand.
#include "roofline/analyze/effort.hpp"

#include <gtest/gtest.h>

namespace roofline::analyze {
namespace {

Argument tensor(std::vector<std::int64_t> dims, const char* type, std::vector<std::int64_t> strides = {}) {
    Argument argument;
    argument.type = type;
    argument.tensors.push_back({std::move(dims), std::move(strides)});
    return argument;
}

Argument value(const char* text) {
    Argument argument;
    argument.type = "Scalar";
    argument.value = text;
    argument.tensors.emplace_back();
    return argument;
}

Effort effort(const char* name, std::vector<Argument> arguments) {
    Signature signature;
    signature.name = name;
    signature.arguments = std::move(arguments);
    signature.has_shapes = true;
    const auto found = effort_of(signature);
    EXPECT_TRUE(found) << name;
    return found.value_or(Effort{});
}

TEST(Effort, AProductCountsTwoForEachMultiplyAddAndReadsItsWeightOnce) {
    const Effort mm = effort("aten::mm", {tensor({4, 2048}, "c10::BFloat16"), tensor({2048, 512}, "c10::BFloat16")});
    EXPECT_EQ(mm.flops, 2.0 * 4 * 2048 * 512);
    EXPECT_EQ(mm.weights, 2.0 * 2048 * 512);
    EXPECT_EQ(mm.activations, 2.0 * (4 * 2048 + 4 * 512));
    EXPECT_EQ(mm.type, DType::bf16);
}

TEST(Effort, ABiasIsPartOfTheWeights) {
    const Effort addmm =
        effort("aten::addmm", {tensor({512}, "float"), tensor({4, 8}, "float"), tensor({8, 512}, "float")});
    EXPECT_EQ(addmm.flops, 2.0 * 4 * 8 * 512);
    EXPECT_EQ(addmm.weights, 4.0 * (512 + 8 * 512));
}

TEST(Effort, EightBitProductsWriteSixteen) {
    const Effort scaled =
        effort("aten::_scaled_mm", {tensor({16, 32}, "c10::Float8_e4m3fn"), tensor({32, 64}, "c10::Float8_e4m3fn")});
    EXPECT_EQ(scaled.type, DType::fp8);
    EXPECT_EQ(scaled.weights, 32.0 * 64);
    EXPECT_EQ(scaled.activations, 16.0 * 32 + 2.0 * 16 * 64);
}

TEST(Effort, ACausalMaskLeavesHalfThePairsAndTheDiagonal) {
    const auto qkv = [](const char* type) {
        return std::vector<Argument>{tensor({2, 8, 16, 64}, type), tensor({2, 2, 16, 64}, type),
                                     tensor({2, 2, 16, 64}, type)};
    };
    auto arguments = qkv("c10::Half");
    for (const char* text : {"", "0.", "True"}) arguments.push_back(value(text));
    const Effort causal = effort("aten::scaled_dot_product_attention", arguments);
    EXPECT_EQ(causal.flops, 2.0 * 2 * 8 * (16 * 17 / 2) * (64 + 64));
    EXPECT_EQ(causal.kv, 2.0 * 2 * (2 * 2 * 16 * 64));  // two heads are shared by eight
    arguments.back() = value("False");
    EXPECT_EQ(effort("aten::scaled_dot_product_attention", arguments).flops, 2.0 * 2 * 8 * 16 * 16 * 128);
}

TEST(Effort, AnExpandedTensorIsReadOnce) {
    const Effort mul = effort("aten::mul", {tensor({4, 128}, "float", {0, 1}), tensor({4, 128}, "float", {128, 1})});
    EXPECT_EQ(mul.activations, 4.0 * (128 + 512 + 512));
    EXPECT_EQ(mul.flops, 512.0);
}

TEST(Effort, AnEmbeddingReadsTheRowsItPicks) {
    const Effort embedding = effort("aten::embedding", {tensor({50000, 64}, "float"), tensor({2, 3}, "long int")});
    EXPECT_EQ(embedding.weights, 6.0 * 64 * 4);
    EXPECT_EQ(embedding.activations, 6.0 * 64 * 4 + 6.0 * 8);
    EXPECT_TRUE(embedding.looks_up_rows);
}

TEST(Effort, AReductionWritesWhatIsLeft) {
    const Effort mean = effort("aten::mean", {tensor({4, 8, 32}, "float"), value("[-1]"), value("True")});
    EXPECT_EQ(mean.activations, 4.0 * (4 * 8 * 32 + 4 * 8));
}

// 2 images, 3x3 window over 8 channels, padded by one: 16 x 16 positions each; 2 * 512 * 4 * 72 FLOPs.
TEST(Effort, AConvolutionIsAProductOverItsWindow) {
    const Effort conv =
        effort("aten::cudnn_convolution", {tensor({2, 8, 16, 16}, "c10::Half"), tensor({4, 8, 3, 3}, "c10::Half"),
                                           value("[1, 1]"), value("[1, 1]"), value("[1, 1]"), value("1")});
    EXPECT_EQ(conv.flops, 2.0 * 2 * 256 * 4 * 8 * 9);
}

// An all-reduce over four ranks sends, in a ring, twice three quarters of its bytes.
TEST(Effort, ACollectiveCountsWhatPassesTheLinks) {
    Signature signature;
    signature.name = "record_param_comms";
    signature.collective = "allreduce";
    signature.type = "BFloat16";
    signature.elements_in = signature.elements_out = 1000;
    signature.ranks = 4;
    EXPECT_EQ(effort_of(signature)->link, 2.0 * 0.75 * 2000);
}

TEST(Effort, NothingIsGuessedForNamesWithoutAFormulaOrShapesThatDoNotFit) {
    Signature unknown;
    unknown.name = "mine::something";
    unknown.has_shapes = true;
    unknown.arguments = {tensor({4}, "float")};
    EXPECT_FALSE(effort_of(unknown));
    unknown.name = "aten::mm";
    EXPECT_FALSE(effort_of(unknown));
    unknown.arguments = {tensor({4, 8}, "float"), tensor({9, 2}, "float")};
    EXPECT_FALSE(effort_of(unknown));
}

}  // namespace
}  // namespace roofline::analyze
