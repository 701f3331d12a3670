#include "roofline/predict/fit.hpp"

#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "predict/random_scenarios.hpp"

namespace roofline::predict {
namespace {

using namespace testing;

Workload chat(double batch, double prompt, double generate) {
    Workload workload;
    workload.batch = batch;
    workload.prompt = prompt;
    workload.generate = generate;
    return workload;
}

double or_unlimited(const std::optional<double>& value) {
    return value.value_or(std::numeric_limits<double>::infinity());
}

TEST(Fit, Llama3OnAnH100ByHand) {
    // weights 8,030,261,248 x 2 B; KV of 8 x (1000 + 24) tokens x 131,072 B; activations of the largest step: 8 x 1000
    // tokens x 86,016 B and 8 rows of logits x 256,512 B.
    const Fit result = fit(lowered(llama_3_8b()), h100(), chat(8, 1000, 24), 8192);
    EXPECT_EQ(result.weights.value, 16060522496.0);
    EXPECT_EQ(result.kv.value, 8.0 * 1024.0 * 131072.0);
    EXPECT_EQ(result.activations.value, 8000.0 * 86016.0 + 8.0 * 256512.0);
    EXPECT_EQ(result.total().value, result.weights.value + result.kv.value + result.activations.value);
    EXPECT_TRUE(result.fits);
    EXPECT_EQ(result.capacity->value, 80e9);
    // free 63,939,477,504; a sequence 1024 x 131,072 + 1000 x 86,016 + 256,512 = 220,490,240 B: 289.99
    EXPECT_EQ(result.largest_batch, 289.0);
    EXPECT_EQ(result.longest_context, 8192.0) << "capped by what the model was made for";
}

TEST(Fit, ABigModelDoesNotFitASmallDevice) {
    Device small = h100();
    set_capacity(small, Level::memory, 16e9);  // Llama-3-8B needs 16.06 GB for its weights alone
    const Fit result = fit(lowered(llama_3_8b()), small, chat(1, 10, 10), 8192);
    EXPECT_FALSE(result.fits);
    EXPECT_EQ(result.largest_batch, 0.0);
    EXPECT_EQ(result.longest_context, 0.0);
}

TEST(Fit, QuantisedWeightsAndCacheTakeLessRoom) {
    const Fit wide = fit(lowered(llama_3_8b()), h100(), chat(8, 1000, 24), 0);
    const Fit narrow = fit(lowered(llama_3_8b(), {}, "awq", DType::bf16, "fp8"), h100(), chat(8, 1000, 24), 0);
    EXPECT_EQ(narrow.kv.value, wide.kv.value / 2.0);
    // layers 6,979,321,856 x 4.15625 / 8, tables and norms in bf16
    EXPECT_EQ(narrow.weights.value, 6979321856.0 * 4.15625 / 8.0 + 2.0 * (2.0 * 525336576.0 + 266240.0));
}

TEST(Fit, WithoutAKnownCapacityThereIsNoVerdict) {
    Device device = exact_device();
    const Fit result = fit(lowered(llama_3_8b()), device, chat(1, 10, 10), 0);
    EXPECT_FALSE(result.capacity.has_value());
    EXPECT_FALSE(result.largest_batch.has_value());
    EXPECT_FALSE(result.longest_context.has_value());
    EXPECT_TRUE(result.fits);
}

TEST(Fit, AStateThatDoesNotGrowPutsNoLimitOnTheContext) {
    LayerKind kind;
    kind.label = "only";
    kind.mixer = block<model::Mamba2>(model::Mamba2Shape{.heads = 8, .head_dim = 64, .groups = 1, .state_size = 128});
    const Fit result = fit(lowered(stack(256, 1000, kind, 4)), h100(), chat(1, 100, 100), 0);
    EXPECT_TRUE(result.fits);
    EXPECT_FALSE(result.longest_context.has_value());
    EXPECT_TRUE(result.largest_batch.has_value()) << "but every sequence has one";
}

TEST(Fit, IsMonotoneInBatchPromptAndContext) {
    Random random(21);
    for (int i = 0; i < 200; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        Device device = random_device(random);
        set_capacity(device, Level::memory, random.scale(1e8, 1e12));
        const Workload base = chat(random.whole(1, 50), random.whole(1, 2000), random.whole(1, 500));
        const Fit before = fit(model, device, base, 0);
        for (int which = 0; which < 4; ++which) {
            Workload more = base;
            if (which == 0) more.batch += 1.0;
            if (which == 1) more.prompt += 100.0;
            if (which == 2) more.context = base.prompt + base.generate + 1000.0;
            if (which == 3) more.generate += 100.0;
            const Fit after = fit(model, device, more, 0);
            EXPECT_GE(after.total().value, before.total().value);
            EXPECT_EQ(after.weights.value, before.weights.value);
            EXPECT_TRUE(before.fits || !after.fits) << "asking for more made it fit";
            if (which != 0) {
                EXPECT_LE(or_unlimited(after.largest_batch), or_unlimited(before.largest_batch));
            }
        }
        Device larger = device;
        larger.levels[index(Level::memory)]->capacity->value *= 2.0;
        const Fit roomy = fit(model, larger, base, 0);
        EXPECT_GE(or_unlimited(roomy.largest_batch), or_unlimited(before.largest_batch));
        EXPECT_GE(or_unlimited(roomy.longest_context), or_unlimited(before.longest_context));
        EXPECT_TRUE(roomy.fits || !before.fits);
    }
}

void expect_largest_batch_is_largest(const Lowered& model, const Device& device, Workload workload) {
    const double largest = *fit(model, device, workload, 0).largest_batch;
    if (largest >= 1.0) {
        workload.batch = largest;
        EXPECT_TRUE(fit(model, device, workload, 0).fits) << largest;
    }
    workload.batch = largest + 1.0;
    EXPECT_FALSE(fit(model, device, workload, 0).fits) << largest;
}

TEST(Fit, TheLargestBatchFitsAndOneMoreDoesNot) {
    expect_largest_batch_is_largest(lowered(llama_3_8b()), h100(), chat(1, 1000, 24));
    expect_largest_batch_is_largest(lowered(llama_3_8b()), h100(), chat(37, 1000, 24));
    expect_largest_batch_is_largest(lowered(mixtral_8x7b(), {}, "awq"), h100(), chat(1, 100, 900));
}

TEST(Fit, TheLargestBatchFitsAndOneMoreDoesNotUnderChunkedPrefill) {
    // The chunk's activations are there once, however many sequences decode beside it.
    for (const double batch : {1.0, 64.0}) {
        Workload workload = chat(batch, 1000, 24);
        workload.chunk = 8192;
        expect_largest_batch_is_largest(lowered(llama_3_8b()), h100(), workload);
    }
}

TEST(Fit, TheLongestContextFitsAndOneMoreDoesNot) {
    const Lowered model = lowered(llama_3_8b());
    Workload workload = chat(4, 100, 1);
    const double longest = *fit(model, h100(), workload, 0).longest_context;
    workload.context = longest;
    EXPECT_TRUE(fit(model, h100(), workload, 0).fits);
    workload.context = longest + 1.0;
    EXPECT_FALSE(fit(model, h100(), workload, 0).fits);
}

}  // namespace
}  // namespace roofline::predict
