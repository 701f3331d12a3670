// Which fit a prediction takes its constants from, how far it was carried, and what that does to the range.
#include "roofline/predict/calibration.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/predict/execution.hpp"
#include "roofline/predict/kernel_type.hpp"

namespace roofline::predict {
namespace {

using ::testing::ElementsAre;

const KernelClass& gemm() {
    return *kernel_class("gemm");
}

struct Fit {
    double marker = 1.0;  // its first constant, by which a choice is recognised
    std::string type = "bf16";
    std::string stack = "trtllm";
    Scope scope = Scope::device;
    std::string of = "h200-sxm";
    std::vector<std::string> vendors = {};
};

Fitted fitted(const Fit& fit) {
    Fitted result;
    result.kernel_class = &gemm();
    result.type = fit.type;
    result.stack = fit.stack;
    result.scope = fit.scope;
    result.of = fit.of;
    result.vendors = fit.vendors;
    result.constants[0] = fit.marker;
    result.low = 0.9;
    result.high = 1.1;
    result.rows = 100.0 * fit.marker;
    return result;
}

const Fit on_device = {.marker = 1.0};
const Fit on_generation = {.marker = 2.0, .scope = Scope::generation, .of = "hopper"};
const Fit on_everything = {.marker = 3.0, .scope = Scope::everything, .of = ""};

Device device_of(std::string name, std::string generation) {
    Device device;
    device.name = std::move(name);
    device.generation = std::move(generation);
    return device;
}
const Device h200 = device_of("h200-sxm", "hopper");
const Device h100 = device_of("h100-sxm", "hopper");
const Device mi300 = device_of("mi300x", "cdna3");

Device made_by(std::string vendor, Device device) {
    device.vendor = std::move(vendor);
    return device;
}

/// The choice from these fits; the order in which they were added must not matter unless they are equally near.
Choice choose(const std::vector<Fit>& fits, const Device& device = h200, std::string_view type = "bf16",
              const std::vector<std::string>& stacks = {"trtllm", "vllm"}) {
    Calibration forwards;
    Calibration backwards;
    for (const Fit& fit : fits) forwards.add(fitted(fit));
    for (auto fit = fits.rbegin(); fit != fits.rend(); ++fit) backwards.add(fitted(*fit));
    const Choice choice = forwards.choose(gemm(), type, stacks, device);
    EXPECT_EQ(backwards.choose(gemm(), type, stacks, device).constants[0], choice.constants[0]) << "order matters";
    return choice;
}

// ---- scope

TEST(Choose, OwnDeviceBeforeItsGenerationBeforeAllDevices) {
    EXPECT_EQ(choose({on_everything, on_generation, on_device}).constants[0], 1.0);
    EXPECT_EQ(choose({on_everything, on_generation}).constants[0], 2.0);
    EXPECT_EQ(choose({on_everything}).constants[0], 3.0);
}

TEST(Choose, NeverAnotherDevicesOrGenerations) {
    const std::vector<Fit> all = {on_everything, on_generation, on_device};
    EXPECT_EQ(choose(all, h100).constants[0], 2.0);
    EXPECT_EQ(choose(all, mi300).constants[0], 3.0);
    EXPECT_EQ(choose({on_device, on_generation}, mi300).source, "assumed");
    // A device that does not say what it is has no relatives, not even nameless ones.
    Fit nameless = on_generation;
    nameless.of = "";
    EXPECT_EQ(choose({nameless}, device_of("mine", "")).source, "assumed");
}

TEST(Choose, SaysWhereTheConstantsAreFrom) {
    const Choice own = choose({on_device});
    EXPECT_EQ(own.source, "h200-sxm");
    EXPECT_TRUE(own.own);
    EXPECT_EQ(own.kernel_class, &gemm());
    const Choice relative = choose({on_generation}, h100);
    EXPECT_EQ(relative.source, "hopper, transferred");
    EXPECT_FALSE(relative.own);
    EXPECT_EQ(choose({on_everything}, mi300).source, "all devices, transferred");
    EXPECT_FALSE(choose({on_everything}, mi300).own);
    EXPECT_EQ(choose({on_device}, h200, "fp16").source, "h200-sxm, bf16 for fp16");
    EXPECT_EQ(choose({on_generation}, h100, "fp16").source, "hopper, transferred, bf16 for fp16");
}

// ---- type

TEST(Choose, TheTypeItselfBeforeARelative) {
    Fit fp8 = on_device;
    fp8.type = "fp8";
    fp8.marker = 8.0;
    EXPECT_EQ(choose({on_device, fp8}).constants[0], 1.0);
    EXPECT_EQ(choose({on_device, fp8}, h200, "fp8").constants[0], 8.0);
    EXPECT_EQ(choose({on_device, fp8}, h200, "fp8_block").constants[0], 8.0);  // fp8 is nearer than bf16
    EXPECT_EQ(choose({on_device, fp8}, h200, "nvfp4").constants[0], 8.0);
    EXPECT_EQ(choose({on_device, fp8}, h200, "q4_k").constants[0], 1.0);  // unpacked and multiplied in 16 bits
}

TEST(Choose, NeverAnUnrelatedType) {
    Fit int4 = on_device;
    int4.type = "int4";
    EXPECT_EQ(choose({int4}).source, "assumed");
    Fit fp8 = on_device;
    fp8.type = "fp8";
    EXPECT_EQ(choose({fp8}).source, "assumed");  // bf16 kernels do not behave like narrower ones
}

TEST(Choose, AFitToAllTypesForAny) {
    Fit all_types = on_device;
    all_types.type = "";
    const Choice choice = choose({all_types}, h200, "int4");
    EXPECT_EQ(choice.constants[0], 1.0);
    EXPECT_EQ(choice.source, "h200-sxm");
}

TEST(Choose, TheTypeItselfBeforeAFitToTheWholeClassOfTheSameDevice) {
    const Fit whole_class = {.marker = 5.0, .type = "", .stack = ""};
    EXPECT_EQ(choose({whole_class, on_device}).constants[0], 1.0);
}

TEST(Choose, ARelativesTypeOnThisDeviceBeforeAPoolOfAllTypesOfAllDevices) {
    // 16-bit formats behave alike, and this is the very device; the pool is everything that was ever timed.
    const Fit pool = {.marker = 9.0, .type = "", .stack = "", .scope = Scope::everything, .of = ""};
    EXPECT_EQ(choose({pool, on_device}, h200, "fp16").constants[0], 1.0);
}

// ---- stack

TEST(Choose, TheFirstStackBeforeOthers) {
    Fit vllm = on_device;
    vllm.stack = "vllm";
    vllm.marker = 4.0;
    Fit other = on_device;
    other.stack = "somebody";
    other.marker = 5.0;
    EXPECT_EQ(choose({other, vllm, on_device}).constants[0], 1.0);
    EXPECT_EQ(choose({other, vllm}).constants[0], 4.0);
    EXPECT_EQ(choose({other}).constants[0], 5.0);
    EXPECT_EQ(choose({on_device, vllm}, h200, "bf16", {"vllm", "trtllm"}).constants[0], 4.0);
}

TEST(Choose, TheEnginesKernelsElsewhereBeforeAnotherEnginesHere) {
    Fit other = on_device;
    other.stack = "somebody";
    other.marker = 5.0;
    EXPECT_EQ(choose({on_generation, on_everything, other}).constants[0], 2.0);
    EXPECT_EQ(choose({on_everything, other}).constants[0], 3.0);
}

TEST(Choose, AmongStacksThatWereAskedForTheDeviceDecides) {
    Fit second = on_device;
    second.stack = "vllm";
    second.marker = 4.0;
    EXPECT_EQ(choose({on_generation, on_everything, second}).constants[0], 4.0);
}

TEST(Choose, TheSameMakeUnderAnotherCallerBeforeAStranger) {
    Fit same_make = on_generation;
    same_make.stack = "sglang/triton";
    same_make.marker = 6.0;
    Fit stranger = on_device;
    stranger.stack = "somebody";
    stranger.marker = 5.0;
    EXPECT_EQ(choose({stranger, same_make}, h200, "bf16", {"trtllm", "vllm/triton"}).constants[0], 6.0);
    EXPECT_EQ(choose({stranger, same_make}, h200, "bf16", {"trtllm", "vllm/marlin"}).constants[0], 5.0);
    // What was asked for by name comes first all the same.
    EXPECT_EQ(choose({same_make, on_everything}, h200, "bf16", {"trtllm", "vllm/triton"}).constants[0], 3.0);
}

TEST(Choose, AStackMeansItsFamiliesToo) {
    const auto with_stack = [](std::string stack, double marker) {
        Fit fit = on_device;
        fit.stack = std::move(stack);
        fit.marker = marker;
        return fit;
    };
    // The family of a stack that is wanted, before one that only begins like it.
    EXPECT_EQ(choose({with_stack("trtllmx", 6.0), with_stack("trtllm/hopper", 7.0)}).constants[0], 7.0);
    EXPECT_EQ(choose({with_stack("trtllmx", 6.0), with_stack("vllm", 7.0)}).constants[0], 7.0);
    EXPECT_EQ(choose({with_stack("trt", 6.0), with_stack("vllm", 7.0)}).constants[0], 7.0);
    EXPECT_EQ(choose({with_stack("encoder/trtllm", 6.0), with_stack("vllm/triton", 7.0)}).constants[0], 7.0);
    EXPECT_EQ(choose({with_stack("trtllm/hopper", 7.0)}).high, 1.1);
    EXPECT_GT(choose({with_stack("trtllmx", 7.0)}).high, 1.1);
}

TEST(Choose, OfEquallyNearFitsTheFirstThatWasAdded) {
    Calibration calibration;
    calibration.add(fitted({.marker = 1.0, .stack = "trtllm/hopper"}));
    calibration.add(fitted({.marker = 2.0, .stack = "trtllm/fmha"}));
    const std::vector<std::string> stacks = {"trtllm"};
    EXPECT_EQ(calibration.choose(gemm(), "bf16", stacks, h200).constants[0], 1.0);
}

// ---- the range

TEST(Choose, WidensTheRangeForAnotherTypeOrStack) {
    const Choice exact = choose({on_device});
    EXPECT_EQ(exact.low, 0.9);
    EXPECT_EQ(exact.high, 1.1);
    Fit other_stack = on_device;
    other_stack.stack = "somebody";
    const Choice stack = choose({other_stack});
    EXPECT_LT(stack.low, exact.low);
    EXPECT_GT(stack.high, exact.high);
    const Choice type = choose({on_device}, h200, "fp16");
    EXPECT_LT(type.low, exact.low);
    EXPECT_GT(type.high, exact.high);
    const Choice both = choose({other_stack}, h200, "fp16");
    EXPECT_LT(both.low, std::min(type.low, stack.low));
    EXPECT_GT(both.high, std::max(type.high, stack.high));
}

TEST(Choose, AFitToTheWholeClassIsTheLastResort) {
    const Fit pool = {.marker = 9.0, .type = "", .stack = "", .scope = Scope::everything, .of = ""};
    Fit relative = on_everything;
    relative.type = "fp16";
    relative.stack = "somebody";
    EXPECT_EQ(choose({pool, relative}, mi300).constants[0], 3.0);
    const Choice choice = choose({pool}, mi300);
    EXPECT_EQ(choice.constants[0], 9.0);
    EXPECT_LE(choice.low, 0.9);
    EXPECT_GE(choice.high, 1.1);
    EXPECT_EQ(choice.source.substr(0, 24), "all devices, transferred");
}

TEST(Choose, OtherVendorsDevicesComeAfterAnotherEnginesKernels) {
    // The engine that was asked for was timed on an Intel card alone; a Hopper is nearer to what another engine does on
    // NVIDIA's. Where nothing of the vendor was timed, the engine decides as ever.
    const Fit asked = {.marker = 1.0, .stack = "vllm", .scope = Scope::everything, .of = "", .vendors = {"Intel"}};
    const Fit other = {.marker = 2.0, .stack = "somebody", .scope = Scope::everything, .of = "", .vendors = {"NVIDIA"}};
    const Fit both = {
        .marker = 3.0, .stack = "vllm", .scope = Scope::everything, .of = "", .vendors = {"Intel", "NVIDIA"}};
    const Device hopper = made_by("NVIDIA", h200);
    EXPECT_EQ(choose({asked, other}, hopper).constants[0], 2.0);
    EXPECT_EQ(choose({asked, other, both}, hopper).constants[0], 3.0);
    const Device instinct = made_by("AMD", mi300);
    EXPECT_EQ(choose({asked, other}, instinct).constants[0], 1.0);
    // Another type is further off than another vendor.
    Fit narrow = other;
    narrow.type = "fp16";
    EXPECT_EQ(choose({asked, narrow}, hopper).constants[0], 1.0);
}

TEST(Choose, OtherVendorsDevicesWidenTheRange) {
    const Fit fit = {.stack = "vllm", .scope = Scope::everything, .of = "", .vendors = {"NVIDIA"}};
    const Choice own = choose({fit}, made_by("NVIDIA", h200));
    const Choice other = choose({fit}, made_by("AMD", mi300));
    EXPECT_EQ(own.low, 0.9);
    EXPECT_EQ(own.high, 1.1);
    EXPECT_DOUBLE_EQ(other.low, 0.9 / 1.15);
    EXPECT_DOUBLE_EQ(other.high, 1.1 * 1.15);
    // A file that does not say whose devices they were is taken as it is.
    EXPECT_EQ(choose({on_everything}, made_by("AMD", mi300)).low, 0.9);
}

TEST(Choose, WhatHasNoTypeIsNotCarriedFromAnother) {
    // A step has none, so a fit without one is its own.
    const Fit pool = {.marker = 9.0, .type = "", .stack = "", .scope = Scope::everything, .of = ""};
    EXPECT_EQ(choose({pool}, mi300, "").source, "all devices, transferred");
    EXPECT_EQ(choose({pool}, mi300, "").low, 0.9);
}

// ---- nothing to go by

TEST(Choose, WithoutAnyFitTheStartValues) {
    const Calibration none;
    for (const KernelClass* known : kernel_classes()) {
        const Choice choice = none.choose(*known, "bf16", {}, h200);
        EXPECT_EQ(choice.source, "assumed");
        EXPECT_FALSE(choice.own);
        EXPECT_EQ(choice.kernel_class, known);
        EXPECT_LT(choice.low, 1.0);
        EXPECT_GT(choice.high, 1.0);
        for (std::size_t i = 0; i < known->constants.size(); ++i)
            EXPECT_EQ(choice.constants[i], known->constants[i].start) << known->name;
    }
    EXPECT_EQ(choose({}).source, "assumed");
}

TEST(Choose, NeverAnotherClassesFit) {
    Calibration calibration;
    calibration.add(fitted(on_device));
    EXPECT_EQ(calibration.choose(*kernel_class("batched_gemm"), "bf16", {}, h200).source, "assumed");
}

TEST(Calibration, KeepsFitsInTheOrderTheyWereAddedAndListsThemByClass) {
    Calibration calibration;
    Fitted other = fitted({.marker = 9.0});
    other.kernel_class = kernel_classes().back();
    calibration.add(other);
    calibration.add(fitted({.marker = 2.0}));
    calibration.add(fitted({.marker = 1.0}));
    ASSERT_EQ(calibration.fits(gemm()).size(), 2u);
    EXPECT_EQ(calibration.fits(gemm())[0].constants[0], 2.0);
    EXPECT_EQ(calibration.fits(gemm())[1].constants[0], 1.0);
    EXPECT_TRUE(calibration.fits(*kernel_class("elementwise")).empty());
    ASSERT_EQ(calibration.all().size(), 3u);
}

// ---- types

TEST(RelatedTypes, BeginWithTheTypeItselfAndEndWithSixteenBits) {
    for (const std::string_view type : {"bf16", "fp16", "fp8", "fp8_block", "int8", "nvfp4", "mxfp4", "fp4", "int4",
                                        "q4_k", "bf16/fp8", "mxfp4/bf16", "norm", ""}) {
        const std::vector<std::string_view> chain = related_types(type);
        ASSERT_FALSE(chain.empty()) << type;
        EXPECT_EQ(chain.front(), type);
        EXPECT_THAT(chain, ::testing::IsSupersetOf({std::string_view("bf16"), std::string_view("fp16")})) << type;
        EXPECT_EQ(std::set<std::string_view>(chain.begin(), chain.end()).size(), chain.size()) << type << " repeats";
    }
}

TEST(RelatedTypes, FourBitsThenEightThenSixteen) {
    const auto place = [](std::string_view type, std::string_view other) {
        const std::vector<std::string_view> chain = related_types(type);
        return std::find(chain.begin(), chain.end(), other) - chain.begin();
    };
    for (const std::string_view four : {"nvfp4", "mxfp4"}) {
        for (const std::string_view other : {"nvfp4", "mxfp4"}) EXPECT_LT(place(four, other), place(four, "fp8"));
        EXPECT_LT(place(four, "fp8"), place(four, "bf16")) << four;
    }
    EXPECT_LT(place("fp8_block", "fp8"), place("fp8_block", "bf16"));
    EXPECT_LT(place("fp8", "int8"), place("fp8", "bf16"));
}

TEST(RelatedTypes, OfWeightsAndActivationsTheWeights) {
    EXPECT_THAT(related_types("bf16/fp8"), ElementsAre("bf16/fp8", "bf16", "fp16"));
    EXPECT_EQ(related_types("mxfp4/fp8")[1], "fp8_block");
    EXPECT_EQ(related_types("fp8/fp8")[1], "fp8");
}

TEST(RelatedTypes, SixteenBitsHaveNoNarrowerRelatives) {
    EXPECT_THAT(related_types("bf16"), ElementsAre("bf16", "fp16"));
    EXPECT_THAT(related_types("fp16"), ElementsAre("fp16", "bf16"));
    EXPECT_THAT(related_types("norm"), ElementsAre("norm", "bf16", "fp16"));
}

TEST(RelatedTypes, FourBitWeightsAreUnpackedAlike) {
    EXPECT_THAT(related_types("int4"), ::testing::Contains("mxfp4/bf16"));
    EXPECT_THAT(related_types("mxfp4/bf16"), ::testing::Contains("int4"));
    EXPECT_THAT(related_types("nvfp4"), ::testing::Not(::testing::Contains("int4"))) << "multiplied in 4 bits";
}

TEST(RelatedTypes, WhatIsUnpackedHasNoneThatAnEngineMultipliesAsItIs) {
    for (const std::string_view type : {"nvfp4/bf16", "mxfp4/bf16", "mxfp4/fp16", "fp8/bf16", "fp8_block/bf16",
                                        "int8/bf16", "int4", "awq/bf16", "q8_0"}) {
        for (const std::string_view other : related_types(type)) {
            EXPECT_TRUE(other == type || other == "bf16" || other == "fp16" || other == "int4" ||
                        other == "mxfp4/bf16" || other == "awq")
                << type << " leans on " << other;
        }
    }
    // Nor do weights of 4 bits under 8-bit activations behave like those that are multiplied in 4 bits.
    EXPECT_THAT(related_types("nvfp4/fp8"), ElementsAre("nvfp4/fp8", "mxfp4/fp8", "fp8_block", "fp8", "bf16", "fp16"));
}

TEST(Choose, WhatIsUnpackedLeansOnWhatIsUnpackedAlike) {
    const Fit own_product = {.marker = 1.0, .type = "nvfp4", .stack = "trtllm/gen"};
    const Fit unpacked = {
        .marker = 2.0, .type = "mxfp4/bf16", .stack = "trtllm/triton", .scope = Scope::everything, .of = ""};
    const Fit sixteen_bits = {.marker = 3.0, .type = "bf16", .stack = ""};
    const std::vector<std::string> stacks = {"trtllm"};
    EXPECT_EQ(choose({own_product, unpacked, sixteen_bits}, h200, "nvfp4/bf16", stacks).constants[0], 2.0);
    EXPECT_EQ(choose({own_product, sixteen_bits}, h200, "nvfp4/bf16", stacks).constants[0], 3.0);
    EXPECT_EQ(choose({own_product, unpacked, sixteen_bits}, h200, "nvfp4", stacks).constants[0], 1.0);
    const Fit fp8 = {.marker = 4.0, .type = "fp8", .stack = "trtllm"};
    EXPECT_EQ(choose({fp8, sixteen_bits}, h200, "fp8/bf16", stacks).constants[0], 3.0);
    EXPECT_EQ(choose({fp8, sixteen_bits}, h200, "fp8_block/bf16", stacks).constants[0], 3.0);
}

TEST(Choose, UnpackedEightBitsLeanOnSixteenBeforeAnotherVendorsUnpacking) {
    const Fit intels = {
        .marker = 1.0, .type = "fp8/bf16", .stack = "vllm", .scope = Scope::everything, .of = "", .vendors = {"Intel"}};
    const Fit sixteen_bits = {.marker = 2.0,
                              .type = "bf16",
                              .stack = "",
                              .scope = Scope::everything,
                              .of = "",
                              .vendors = {"Intel", "NVIDIA"}};
    const std::vector<std::string> stacks = {"vllm"};
    EXPECT_EQ(choose({intels, sixteen_bits}, made_by("NVIDIA", h200), "fp8/bf16", stacks).constants[0], 2.0);
    EXPECT_EQ(choose({intels, sixteen_bits}, made_by("Intel", mi300), "fp8/bf16", stacks).constants[0], 1.0);
}

TEST(Choose, AWeightOnlyFormatIsWhatItIsUnderSixteenBits) {
    Fit int4 = on_device;
    int4.type = "int4";
    const Choice choice = choose({int4}, h200, "int4/bf16");
    EXPECT_EQ(choice.constants[0], 1.0);
    EXPECT_EQ(choice.low, 0.9);
    EXPECT_EQ(choice.source, "h200-sxm");
}

// ---- what a device does with a type it lacks

Device with_rates(std::initializer_list<DType> types) {
    Device device = h200;
    for (const DType type : types) {
        Figure& rate = device.rates[index(Engine::matrix)][index(type)].emplace();
        rate.value = 1e15;
    }
    return device;
}

TEST(TypeOn, NumbersThatTheEngineLacksAreUnpackedToSixteenBits) {
    const Device ampere = with_rates({DType::bf16, DType::fp16, DType::int8});
    const Device hopper = with_rates({DType::bf16, DType::fp16, DType::int8, DType::fp8});
    const Device blackwell = with_rates({DType::bf16, DType::fp16, DType::fp8, DType::fp4});
    EXPECT_EQ(type_on(ampere, "fp8", DType::fp8), "fp8/bf16");
    EXPECT_EQ(type_on(ampere, "fp8_block", DType::fp8), "fp8_block/bf16");
    EXPECT_EQ(type_on(ampere, "int8", DType::int8), "int8");
    EXPECT_EQ(type_on(hopper, "fp8", DType::fp8), "fp8");
    EXPECT_EQ(type_on(blackwell, "nvfp4", DType::fp4), "nvfp4");
    EXPECT_EQ(type_on(blackwell, "int8", DType::int8), "int8/bf16");
    EXPECT_EQ(type_on(hopper, "mxfp4/fp8", DType::fp8), "mxfp4/fp8");
    EXPECT_EQ(type_on(ampere, "mxfp4/fp8", DType::fp8), "mxfp4/bf16");
    // fp8 stands in for the limit of fp4; kernels unpack all the same.
    EXPECT_EQ(type_on(hopper, "nvfp4", DType::fp4), "nvfp4/bf16");
    EXPECT_EQ(multiplied_in(hopper, DType::fp4), DType::bf16);
    EXPECT_EQ(multiplied_in(blackwell, DType::fp4), DType::fp4);
    // Sixteen bits are sixteen bits.
    EXPECT_EQ(type_on(with_rates({DType::fp16}), "bf16", DType::bf16), "bf16");
    EXPECT_EQ(multiplied_in(with_rates({DType::fp16}), DType::bf16), DType::fp16);
}

TEST(TypeOn, AttentionKeepsTheTypeOfItsCache) {
    const Device ampere = with_rates({DType::bf16, DType::fp16});
    EXPECT_EQ(attention_type_on(ampere, "fp8", DType::fp8), "bf16/fp8");
    EXPECT_EQ(attention_type_on(ampere, "fp8, wide heads", DType::fp8), "bf16/fp8, wide heads");
    EXPECT_EQ(attention_type_on(ampere, "bf16/fp8", DType::bf16), "bf16/fp8");
    EXPECT_EQ(attention_type_on(with_rates({DType::bf16, DType::fp8}), "fp8", DType::fp8), "fp8");
}

TEST(Choose, ATypeThatIsDoneInTheSameWayBeforeAnotherMakeOfKernel) {
    const Fit own = {.marker = 1.0, .type = "int4", .stack = "sglang/gen", .scope = Scope::everything, .of = ""};
    const Fit alike = {.marker = 2.0, .type = "mxfp4/bf16", .stack = "sglang/gen"};
    const Fit other_make = {.marker = 3.0, .type = "int4", .stack = "sglang/marlin"};
    const Fit sixteen_bits = {.marker = 4.0, .type = "bf16", .stack = "sglang/gen"};
    const std::vector<std::string> stacks = {"sglang/gen"};
    EXPECT_EQ(choose({own, alike, other_make, sixteen_bits}, h200, "int4", stacks).constants[0], 1.0);
    EXPECT_EQ(choose({alike, other_make, sixteen_bits}, h200, "int4", stacks).constants[0], 2.0);
    EXPECT_EQ(choose({other_make, sixteen_bits}, h200, "int4", stacks).constants[0], 3.0);
    // Carried over from another type all the same: the range is wider, and the source says so.
    const Choice carried = choose({alike}, h200, "int4", stacks);
    EXPECT_LT(carried.low, 0.9);
    EXPECT_GT(carried.high, 1.1);
    EXPECT_EQ(carried.source, "h200-sxm, mxfp4/bf16 for int4");
}

// ---- under a profile

TEST(Execution, AClassThatDoesTheWorkInAnotherWayWhereTheKernelsAreOfThat) {
    const KernelClass& general = *kernel_class("attention_decode");
    const KernelClass& flash = *kernel_class("flash_decode");
    ASSERT_EQ(flash.instead_of, general.name);
    auto calibration = std::make_shared<Calibration>();
    for (const auto& [known, stack, of] :
         {std::tuple{&general, "cudnn", "h200-sxm"}, std::tuple{&flash, "fa2", "h200-sxm"},
          std::tuple{&flash, "fa2", "h100-sxm"}}) {
        Fitted fit = fitted({.stack = stack, .of = of});
        fit.kernel_class = known;
        calibration->add(fit);
    }
    Execution execution;
    execution.calibration = calibration;
    execution.profile.stacks = {"cudnn", "fa2"};
    EXPECT_EQ(execution.choose(general, "bf16", h200).kernel_class, &general);
    EXPECT_EQ(execution.choose(general, "bf16", h100).kernel_class, &flash);
    execution.profile.stacks = {"fa2"};
    EXPECT_EQ(execution.choose(general, "bf16", h200).kernel_class, &flash);
    // Nothing is known: the general one.
    EXPECT_EQ(execution.choose(general, "bf16", mi300).kernel_class, &general);
    EXPECT_EQ(Execution{}.choose(general, "bf16", h200).kernel_class, &general);
    // A processor's loops are no kernel of a GPU.
    Device processor = h200;
    processor.kind = "cpu";
    EXPECT_EQ(execution.choose(general, "bf16", processor).kernel_class, &general);
}

TEST(Execution, TheProfilesOwnStepBeforeThatOfTheSoftwareItNames) {
    auto calibration = std::make_shared<Calibration>();
    for (const auto& [stack, marker] : {std::pair{"graph+triton", 2.0}, std::pair{"mine", 1.0}, std::pair{"x", 3.0}}) {
        Fitted step = fitted({.marker = marker, .type = "", .stack = stack});
        step.kernel_class = kernel_class("graph_step");
        calibration->add(step);
    }
    Execution execution;
    execution.calibration = calibration;
    execution.profile.name = "mine";
    execution.profile.stacks = {"graph+triton"};
    EXPECT_EQ(execution.choose_step(h200).constants[0], 1.0);
    execution.profile.name = "other";
    EXPECT_EQ(execution.choose_step(h200).constants[0], 2.0);
}

TEST(Execution, WithoutACalibrationEverythingIsAssumed) {
    const Execution execution;
    EXPECT_EQ(execution.choose(gemm(), "bf16", h200).source, "assumed");
    EXPECT_EQ(execution.choose_step(h200).source, "assumed");
}

}  // namespace
}  // namespace roofline::predict
