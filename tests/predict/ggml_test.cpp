// The formulas for llama.cpp's kernels: their values by hand, their order, and that prediction and fits use the same
// launches.
#include "roofline/predict/kernels/ggml.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include <gtest/gtest.h>

#include "core/devices.hpp"
#include "model/scenarios.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::predict {
namespace {

using namespace testing;

using Values = std::array<double, max_constants>;

Values start_values(const KernelClass& kernel_class) {
    Values values{};
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) values[i] = kernel_class.constants[i].start;
    return values;
}

void set(const KernelClass& kernel_class, Values& values, std::string_view name, double value) {
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) {
        if (kernel_class.constants[i].name == name) {
            values[i] = value;
            return;
        }
    }
    FAIL() << "no constant " << name;
}

double seconds_of(std::string_view name, const Kernel& kernel, const Machine& machine) {
    const KernelClass& kernel_class = *roofline::predict::kernel_class(name);
    return kernel_class.seconds(kernel, machine, start_values(kernel_class));
}

const Machine plain_machine = {.peak = 100e12, .vector_peak = 25e12, .bandwidth = 500e9, .cache = 24e6, .units = 48};
const Machine apple_machine = {.peak = 25e12, .vector_peak = 25e12, .bandwidth = 500e9, .cache = 24e6, .units = 48};

Kernel dense(double rows, double inner = 4096, double cols = 4096) {
    Kernel kernel;
    kernel.pattern = Pattern::product;
    kernel.flops = 2.0 * rows * inner * cols;
    kernel.weight_bytes = inner * cols * 8.5 / 8.0;
    kernel.rows = rows;
    kernel.inner = inner;
    kernel.cols = cols;
    kernel.tokens = rows;
    return kernel;
}

/// `tokens` that each choose 8 of 128 experts, `copies` of which are counted as touched.
Kernel routed(double tokens, double copies, double inner = 2048, double cols = 768) {
    Kernel kernel = dense(tokens * 8.0 / copies, inner, cols);
    kernel.pattern = Pattern::experts;
    kernel.flops *= copies;
    kernel.weight_bytes *= copies;
    kernel.copies = copies;
    kernel.experts_total = 128;
    kernel.experts_chosen = 8;
    kernel.tokens = tokens;
    return kernel;
}

Kernel decode_attention(double context, double window) {
    Kernel kernel;
    kernel.pattern = Pattern::attention;
    kernel.keys = window > 0.0 ? std::min(context, window) : context;
    kernel.flops = 4.0 * 32 * 128 * kernel.keys;
    kernel.weight_bytes = 2.0 * 8 * 128 * 2 * kernel.keys;
    kernel.sequences = kernel.queries = kernel.tokens = 1;
    kernel.context = context;
    kernel.window = window;
    return kernel;
}

TEST(Ggml, AProductOfOneRowByHand) {
    for (const auto& [name, launch] :
         {std::pair{"ggml_cuda", "graph_launch"}, std::pair{"ggml_metal", "single_launch"}}) {
        const KernelClass& kernel_class = *roofline::predict::kernel_class(name);
        Values values = start_values(kernel_class);
        set(kernel_class, values, launch, 2.0);
        set(kernel_class, values, "stream", 0.5);
        set(kernel_class, values, "dot_product", 0.5);
        set(kernel_class, values, "activations", 1.0);
        Kernel kernel = dense(1, 1000, 1000);
        kernel.weight_bytes = 1e6;
        const Machine machine = {.peak = 1e12, .vector_peak = 1e12, .bandwidth = 1e9};
        // 1 MB at half of 1 GB/s: 2 ms. 2 Mflop at half of 1 Tflop/s: 4 us. 1000 fp32 in and out: 8 us. Launch: 2 us.
        EXPECT_NEAR(kernel_class.seconds(kernel, machine, values), 2.014e-3, 1e-12) << name;
    }
}

TEST(Ggml, AProductInTilesByHand) {
    const KernelClass& kernel_class = *roofline::predict::kernel_class("ggml_cuda");
    Values values = start_values(kernel_class);
    set(kernel_class, values, "plain_launch", 2.0);
    set(kernel_class, values, "tile", 0.5);
    set(kernel_class, values, "activations", 1.0);
    Kernel kernel = dense(256, 1000, 1000);
    kernel.weight_bytes = 1e6;
    // Two tiles of 128 rows read 2 MB at half of 1 TB/s, 4 us; 260 rows of 2 Mflop at 0.6 of 1 Tflop/s, 866.7 us;
    // 256 x 2000 fp32 at 1 TB/s, 2.048 us; launch 2 us.
    const Machine machine = {.peak = 1e12, .vector_peak = 1e12, .bandwidth = 1e12};
    EXPECT_NEAR(kernel_class.seconds(kernel, machine, values), 260 * 2e6 / 0.6e12 + 2.048e-6 + 2e-6, 1e-12);
}

TEST(Ggml, TimesArePositiveWhateverIsUnknown) {
    for (const std::string_view name : {"ggml_cuda", "ggml_metal"}) {
        for (const Pattern pattern : {Pattern::stream, Pattern::product, Pattern::experts, Pattern::attention,
                                      Pattern::latent, Pattern::scan, Pattern::step}) {
            for (const Kernel& sizes :
                 {Kernel{}, dense(0.5), routed(0.25, 2), routed(3, 20), decode_attention(10, 4)}) {
                for (const Machine& machine : {plain_machine, Machine{}, Machine{.bandwidth = 1e9}}) {
                    Kernel kernel = sizes;
                    kernel.pattern = pattern;
                    const double seconds = seconds_of(name, kernel, machine);
                    EXPECT_TRUE(std::isfinite(seconds) && seconds > 0.0) << name << " " << static_cast<int>(pattern);
                }
            }
        }
    }
}

TEST(Ggml, MoreRowsAndMoreBytesTakeLonger) {
    for (const auto& [name, machine] :
         {std::pair{"ggml_cuda", plain_machine}, std::pair{"ggml_metal", apple_machine}}) {
        double before = 0.0;
        for (double rows = 1; rows <= 4096; rows += rows < 40 ? 1 : 37) {
            const double seconds = seconds_of(name, dense(rows), machine);
            // Beyond 8 rows tiles take over: other code, which may be faster where the two meet.
            if (rows != 9) {
                EXPECT_GT(seconds, before) << name << ", " << rows << " rows";
            }
            Kernel heavier = dense(rows);
            heavier.weight_bytes *= 1.5;
            EXPECT_GE(seconds_of(name, heavier, machine), seconds) << name;
            before = seconds;
        }
        before = 0.0;
        for (double context = 100; context < 100000; context *= 1.5) {
            const double seconds = seconds_of(name, decode_attention(context, 0.0), machine);
            EXPECT_GT(seconds, before);
            before = seconds;
        }
    }
    double before = 0.0;
    for (double tokens = 1; tokens <= 4096; ++tokens) {
        const double seconds = seconds_of("ggml_cuda", routed(tokens, 128), plain_machine);
        EXPECT_GE(seconds, before) << tokens;
        before = seconds;
    }
}

TEST(Ggml, NoFasterThanDatasheetsAllow) {
    for (const std::string_view name : {"ggml_cuda", "ggml_metal"}) {
        for (const double rows : {1.0, 4.0, 8.0, 9.0, 100.0, 3000.0}) {
            const Kernel kernel = dense(rows);
            EXPECT_GE(seconds_of(name, kernel, plain_machine), kernel.flops / plain_machine.peak);
            EXPECT_GE(seconds_of(name, kernel, plain_machine), kernel.weight_bytes / plain_machine.bandwidth);
        }
    }
}

TEST(Ggml, TouchedExpertsLieBetweenOneTokensAndAll) {
    EXPECT_EQ(experts_touched(1, 128, 8, 0.5), 8.0);
    double before = 0.0;
    for (double tokens = 1; tokens < 1e6; tokens *= 2) {
        const double touched = experts_touched(tokens, 128, 8, 0.5);
        EXPECT_GE(touched, std::max(before, 8.0));
        EXPECT_LE(touched, 128.0);
        EXPECT_GE(experts_touched(tokens, 128, 8, 0.1), touched);  // less alike, more experts
        before = touched;
    }
    EXPECT_GT(before, 120.0);
}

TEST(Ggml, TheFormulaCountsTouchedExpertsItself) {
    // The same rows and the same weights of one expert, counted for 8 or for 128 of them.
    for (const std::string_view name : {"ggml_cuda", "ggml_metal"}) {
        for (const double tokens : {1.0, 7.0, 40.0, 2048.0}) {
            EXPECT_NEAR(seconds_of(name, routed(tokens, 8), plain_machine),
                        seconds_of(name, routed(tokens, 128), plain_machine), 1e-15)
                << name << ", " << tokens;
        }
    }
}

TEST(Ggml, ASlidingWindowWorksOnAllItsCacheHolds) {
    for (const std::string_view name : {"ggml_cuda", "ggml_metal"}) {
        const auto time = [&](double context, double window) {
            return seconds_of(name, decode_attention(context, window), plain_machine);
        };
        EXPECT_NEAR(time(1024, 128), time(1024, 0), 1e-12) << name;         // 1024 entries are there, all are visited
        EXPECT_NEAR(time(65536, 128), time(2048 + 128, 0), 1e-12) << name;  // no more than a micro-batch beside it
    }
}

TEST(Ggml, AStepIsItsKernelsAndTheHost) {
    for (const std::string_view name : {"ggml_cuda", "ggml_metal"}) {
        Kernel step;
        step.pattern = Pattern::step;
        step.kernel_seconds = 0.25;
        EXPECT_NEAR(seconds_of(name, step, step_machine()), 0.25015, 1e-12);
    }
}

TEST(Ggml, ListedLaunchesAddUpToTheExpectedTime) {
    const Architecture architecture =
        stack(2048, 32000,
              layer(gqa({.heads = 32, .kv_heads = 4, .head_dim = 128, .reach = Reach::window(512)}),
                    moe({.experts = 64, .chosen = 4, .width = 768})),
              12);
    const TypePlan plan =
        model::ggml_plan(architecture.layers.size(), model::gguf_formats(format("mxfp4")), format("fp16"));
    const Lowered lowered = model::lower(architecture, plan);
    Execution execution;
    execution.profile.kernels = execution.profile.step = "ggml_cuda";
    execution.profile.even_routing = false;
    execution.profile.rules = {{"qkv", "", 3.0, 1.0}, {"core", "", 1.5, 1.0}, {"gate_up", "", 2.0, 1.0}};
    const Prepared prepared(lowered, h100(), execution);
    const KernelClass& kernel_class = *roofline::predict::kernel_class("ggml_cuda");
    for (const Step& step :
         {model::decode_step(1, 900), model::decode_step(16, 3000), model::prefill_step(2, 700, 300)}) {
        std::vector<OperatorTime> times(prepared.size());
        const StageTime stage = prepared.evaluate(step, times);
        std::vector<Launch> launches;
        prepared.list(step, 3.0, launches);
        double sum = 0.0;
        for (const Launch& launch : launches) {
            EXPECT_EQ(launch.kernel_class, &kernel_class);
            sum += launch.count * kernel_class.seconds(launch.kernel, launch.machine, start_values(kernel_class));
        }
        EXPECT_NEAR(sum, 3.0 * stage.expected, 1e-9 * sum);
        EXPECT_LE(stage.limit, stage.expected);
    }
}

TEST(Ggml, UnevenRoutingCountsOneTokensExperts) {
    const Lowered lowered = testing::lowered(mixtral_8x7b());
    Execution uneven;
    uneven.profile.even_routing = false;
    std::vector<OperatorTime> times(lowered.operators.size());
    const double even = Prepared(lowered, h100()).evaluate(model::decode_step(64, 100), times).weight_bytes;
    const double least = Prepared(lowered, h100(), uneven).evaluate(model::decode_step(64, 100), times).weight_bytes;
    const double one = Prepared(lowered, h100()).evaluate(model::decode_step(1, 100), times).weight_bytes;
    EXPECT_LT(least, even);
    EXPECT_NEAR(least, one, 1e-3 * one);  // all but 64 rows of the embedding in place of one
}

}  // namespace
}  // namespace roofline::predict
