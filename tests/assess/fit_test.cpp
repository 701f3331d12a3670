// fit() against times made with known constants: whatever formula and data, what was put in must come out.
#include "roofline/assess/fit.hpp"

#include <cmath>
#include <random>
#include <string_view>

#include <gtest/gtest.h>

namespace roofline::assess {
namespace {

using predict::Kernel;
using predict::KernelClass;
using predict::Machine;

const KernelClass& elementwise() {
    return *predict::kernel_class("elementwise");
}
const KernelClass& eager() {
    return *predict::kernel_class("eager_step");
}

std::span<const double> used(const KernelClass& kernel_class, const Constants& constants) {
    return {constants.data(), kernel_class.constants.size()};
}

/// Launches and their times under some constants.
class Made {
  public:
    Made(const KernelClass& kernel_class, const std::vector<Kernel>& kernels, const Machine& machine,
         const Constants& truth) {
        for (const Kernel& kernel : kernels) {
            Call call;
            call.kernel_class = &kernel_class;
            call.machine = machine;
            call.kernel = kernel;
            calls_.push_back(call);
        }
        for (const Call& call : calls_) {
            const std::span<const Call> one(&call, 1);
            samples_.push_back({one, predicted_seconds(one, used(kernel_class, truth))});
        }
    }
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;

    /// Every tenth row is three times as slow, or as fast in turn: what a busy machine or a wrong unit does to a table.
    void spoil_a_tenth() {
        for (std::size_t i = 5; i < samples_.size(); i += 10) samples_[i].seconds *= i % 20 == 5 ? 3.0 : 1.0 / 3.0;
    }
    void slow_a_tenth() {
        for (std::size_t i = 5; i < samples_.size(); i += 10) samples_[i].seconds *= 3.0;
    }

    std::span<const Sample> samples() const { return samples_; }

  private:
    std::vector<Call> calls_;
    std::vector<Sample> samples_;
};

/// Steps from few launches on short kernels (the host is waited for) to many on long ones.
std::vector<Kernel> steps() {
    std::vector<Kernel> kernels;
    for (const double launches : {20.0, 50.0, 120.0, 200.0, 300.0, 450.0, 600.0, 900.0}) {
        for (const double milliseconds : {0.01, 0.05, 0.1, 0.2, 0.3, 20.0}) {
            Kernel kernel;
            kernel.pattern = Pattern::step;
            kernel.launches = launches;
            kernel.kernel_seconds = 1e-3 * milliseconds;
            kernels.push_back(kernel);
        }
    }
    return kernels;
}

constexpr Machine machine{.peak = 1e15, .vector_peak = 6e13, .bandwidth = 4e12, .cache = 5e7, .units = 132.0};

/// From one short row to far beyond the cache, in and out of memory: each of the six constants decides some of them.
std::vector<Kernel> streams() {
    std::vector<Kernel> kernels;
    for (const double rows : {1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 512.0, 1024.0, 2048.0, 4096.0, 32768.0, 262144.0}) {
        for (const double width : {16.0, 128.0, 1024.0, 4096.0, 7168.0, 16384.0}) {
            for (const bool cold : {false, true}) {
                Kernel kernel;
                kernel.rows = rows;
                if (cold) {
                    kernel.weight_bytes = 4.0 * rows * width;
                } else {
                    kernel.input_bytes = kernel.output_bytes = 2.0 * rows * width;
                }
                kernels.push_back(kernel);
            }
        }
    }
    return kernels;
}

const Constants eager_truth = {150.0, 4.0};
// startup, memory, share, unit_rate, row_cost, row_units: each away from where the search starts.
const Constants stream_truth = {1.5, 0.9, 0.5, 50.0, 0.04, 2.0};

void expect_near(const KernelClass& kernel_class, const Constants& found, const Constants& truth, double share) {
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i)
        EXPECT_NEAR(found[i] / truth[i], 1.0, share) << kernel_class.constants[i].name << " is " << found[i];
}

void expect_within_bounds(const KernelClass& kernel_class, const Constants& found) {
    for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) {
        EXPECT_GE(found[i], kernel_class.constants[i].low) << kernel_class.constants[i].name;
        EXPECT_LE(found[i], kernel_class.constants[i].high) << kernel_class.constants[i].name;
    }
}

constexpr double hardly = 1e-3;  // a pull that a single row outweighs

TEST(FitOfConstants, FindsTheConstantsThatMadeTheTimes) {
    const Made made_steps(eager(), steps(), {}, eager_truth);
    expect_near(eager(), fit(eager(), made_steps.samples(), start_of(eager()), hardly), eager_truth, 0.01);
    const Made made_streams(elementwise(), streams(), machine, stream_truth);
    expect_near(elementwise(), fit(elementwise(), made_streams.samples(), start_of(elementwise()), hardly),
                stream_truth, 0.01);
}

TEST(FitOfConstants, OneRowInTenThatIsThreeTimesOffHardlyMovesThem) {
    for (const bool both_ways : {false, true}) {
        SCOPED_TRACE(both_ways ? "slower and faster" : "slower");
        Made made_steps(eager(), steps(), {}, eager_truth);
        both_ways ? made_steps.spoil_a_tenth() : made_steps.slow_a_tenth();
        expect_near(eager(), fit(eager(), made_steps.samples(), start_of(eager()), hardly), eager_truth, 0.03);
        Made made_streams(elementwise(), streams(), machine, stream_truth);
        both_ways ? made_streams.spoil_a_tenth() : made_streams.slow_a_tenth();
        expect_near(elementwise(), fit(elementwise(), made_streams.samples(), start_of(elementwise()), hardly),
                    stream_truth, 0.03);
    }
}

TEST(FitOfConstants, TheSameRowsGiveTheSameDigits) {
    Made one(elementwise(), streams(), machine, stream_truth);
    Made two(elementwise(), streams(), machine, stream_truth);
    one.spoil_a_tenth();
    two.spoil_a_tenth();
    for (const Start start : {Start::prior, Start::prior_and_class}) {
        EXPECT_EQ(fit(elementwise(), one.samples(), start_of(elementwise()), 0.1, start),
                  fit(elementwise(), two.samples(), start_of(elementwise()), 0.1, start));
    }
}

TEST(FitOfConstants, EveryClassPredictsItsOwnTimesAgain) {
    // Formulas may trade one constant for another; the times they give must not differ.
    for (const char* name : {"gemm", "attention_prefill", "attention_decode"}) {
        const KernelClass& kernel_class = *predict::kernel_class(name);
        Constants truth = start_of(kernel_class);
        for (std::size_t i = 0; i < kernel_class.constants.size(); ++i) {
            const predict::Constant& constant = kernel_class.constants[i];
            truth[i] = std::clamp(truth[i] * (i % 2 == 0 ? 1.2 : 0.85), constant.low * 1.2, constant.high * 0.95);
        }
        std::mt19937 random(7);
        std::uniform_int_distribution<int> power(0, 6);
        std::vector<Kernel> kernels;
        for (int i = 0; i < 300; ++i) {
            Kernel kernel;
            if (std::string_view(name) == "gemm") {
                kernel.pattern = Pattern::product;
                kernel.rows = std::exp2(power(random) * 2);
                kernel.cols = 256.0 * std::exp2(power(random));
                kernel.inner = 256.0 * std::exp2(power(random));
                kernel.flops = 2.0 * kernel.rows * kernel.cols * kernel.inner;
                kernel.weight_bytes = 2.0 * kernel.cols * kernel.inner;
                kernel.input_bytes = 2.0 * kernel.rows * kernel.inner;
                kernel.output_bytes = 2.0 * kernel.rows * kernel.cols;
            } else {
                const bool decode = std::string_view(name) == "attention_decode";
                kernel.pattern = Pattern::attention;
                kernel.sequences = std::exp2(power(random));
                kernel.keys = 128.0 * std::exp2(power(random));
                kernel.queries = decode ? 1.0 : kernel.keys;
                kernel.kv_heads = 8.0;
                kernel.heads = i % 3 == 0 ? 8.0 : 32.0;
                kernel.key_dim = kernel.value_dim = 128.0;
                const double pairs = decode ? kernel.keys : kernel.keys * (kernel.keys + 1.0) / 2.0;
                kernel.flops = 4.0 * kernel.heads * 128.0 * kernel.sequences * pairs;
                kernel.weight_bytes = 4.0 * kernel.sequences * kernel.keys * kernel.kv_heads * 128.0;
                kernel.input_bytes = 2.0 * kernel.sequences * kernel.queries * kernel.heads * 128.0;
                kernel.output_bytes = kernel.input_bytes;
            }
            kernels.push_back(kernel);
        }
        const Made made(kernel_class, kernels, machine, truth);
        const Constants found = fit(kernel_class, made.samples(), start_of(kernel_class), hardly);
        expect_within_bounds(kernel_class, found);
        double sum = 0.0;
        for (const Sample& sample : made.samples())
            sum += std::fabs(predicted_seconds(sample.calls, used(kernel_class, found)) / sample.seconds - 1.0);
        EXPECT_LT(sum / 300.0, 0.01) << name;
    }
}

TEST(FitOfConstants, StaysWithinTheBoundsWhateverTheTimesSay) {
    for (const double factor : {1e-6, 1e-2, 1e2, 1e6}) {
        SCOPED_TRACE(factor);
        const Made made(elementwise(), streams(), machine, stream_truth);
        std::vector<Sample> scaled(made.samples().begin(), made.samples().end());
        for (Sample& sample : scaled) sample.seconds *= factor;
        expect_within_bounds(elementwise(), fit(elementwise(), scaled, start_of(elementwise()), hardly));
        expect_within_bounds(elementwise(),
                             fit(elementwise(), scaled, start_of(elementwise()), hardly, Start::prior_and_class));
    }
}

TEST(FitOfConstants, WithoutRowsThePriorIsAllThereIs) {
    EXPECT_EQ(fit(elementwise(), {}, stream_truth, 0.1), stream_truth);
    EXPECT_EQ(fit(elementwise(), {}, stream_truth, 0.1, Start::prior_and_class), stream_truth);
}

TEST(FitOfConstants, AStrongPullStaysNearThePriorAndAWeakOneDoesNot) {
    const Made made(eager(), steps(), {}, eager_truth);
    const Constants prior = {300.0, 8.0};
    expect_near(eager(), fit(eager(), made.samples(), prior, 100.0), prior, 0.01);
    expect_near(eager(), fit(eager(), made.samples(), prior, hardly), eager_truth, 0.01);
    const Constants far = {900.0, 30.0};
    expect_near(eager(), fit(eager(), made.samples(), far, 100.0, Start::prior_and_class), far, 0.01);
    const Constants between = fit(eager(), made.samples(), prior, 1.0);
    EXPECT_GT(between[0], eager_truth[0]);
    EXPECT_LT(between[0], prior[0]);
}

TEST(FitOfConstants, ConstantsThatNoRowShowsStayAtThePrior) {
    // One long kernel in each step: the host is never waited for.
    std::vector<Kernel> kernels = steps();
    for (Kernel& kernel : kernels) kernel.kernel_seconds = 1.0;
    const Made made(eager(), kernels, {}, eager_truth);
    const Constants prior = {200.0, 5.0};
    expect_near(eager(), fit(eager(), made.samples(), prior, 0.1), prior, 1e-9);
}

TEST(FitOfConstants, CallsOfOneSampleAddUp) {
    Call once;
    once.kernel_class = &eager();
    once.kernel = steps().front();
    Call thrice = once;
    thrice.count = 3.0;
    const Call calls[] = {once, thrice};
    EXPECT_DOUBLE_EQ(predicted_seconds(calls, used(eager(), eager_truth)),
                     4.0 * predicted_seconds(std::span(calls, 1), used(eager(), eager_truth)));
    // 150 us for the step and 20 launches of 4 us, over a kernel of 10 us.
    EXPECT_DOUBLE_EQ(predicted_seconds(std::span(calls, 1), used(eager(), eager_truth)), 230e-6);
}

}  // namespace
}  // namespace roofline::assess
