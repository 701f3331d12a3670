// What the program claims about itself, held against the tables it ships: each row predicted by a fit that has not seen
// its family of shapes or its model. The bounds are the project's targets, not what a fit happened to reach.
#include "roofline/assess/shipped.hpp"

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/assess/calibrate.hpp"
#include "roofline/assess/expect.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::assess {
namespace {

/// Mean |expected / measured - 1| of some rows, by any name that they are grouped by.
class ErrorsBy {
  public:
    void add(const std::string& name, double error) {
        auto& [sum, count] = sums_[name];
        sum += error;
        ++count;
    }
    /// Every group stays below `most`, and there are at least `least` groups: a target nobody is held to is none.
    void expect_at_most(double most, std::size_t least) const {
        EXPECT_GE(sums_.size(), least);
        for (const auto& [name, found] : sums_)
            EXPECT_LE(found.first / found.second, most) << name << ", " << found.second << " rows";
    }

  private:
    std::map<std::string, std::pair<double, int>> sums_;
};

// Under a sanitizer every sixteenth row has to do: the code is the same, and targets mean nothing for so few.
#ifdef ROOFLINE_SANITIZED
constexpr std::size_t stride = 16;
#else
constexpr std::size_t stride = 1;
#endif

// About ten seconds, all of it for the fits: one test that looks at everything.
TEST(ShippedTables, RowsThatTheFitHasNotSeenArePredictedAsWellAsWeSay) {
    Measurements measured;
    for (const ShippedTable& table : shipped_tables()) {
        const auto done = read_measured(table.text, std::string(table.name), measured);
        ASSERT_TRUE(done.has_value()) << done.error().text;
    }
    ASSERT_GT(measured.rows.size(), 10000U);
    std::vector<Measurement> rows;
    for (std::size_t i = 0; i < measured.rows.size(); i += stride) rows.push_back(std::move(measured.rows[i]));
    const std::vector<Expected> expected = expect_left_out(rows);
    ASSERT_EQ(expected.size(), rows.size());

    std::size_t inside = 0;
    ErrorsBy h200_decode;
    ErrorsBy h200_prefill;
    ErrorsBy bf16_products;
    ErrorsBy narrow_products;
    ErrorsBy attention;
    ErrorsBy h200_kernels;
    ErrorsBy h200_prefill_kernels;
    ErrorsBy experts_latent_linear;
    ErrorsBy llama_cpp;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement& row = rows[i];
        const Expected& found = expected[i];
        const std::string where = row.file + ":" + std::to_string(row.line);
        const std::string& device = row.device->name;
        const double error = std::fabs(found.seconds / row.seconds - 1.0);
        if (row.seconds >= found.low && row.seconds <= found.high) ++inside;

        ASSERT_GE(found.seconds, row.attainable) << where;
        ASSERT_GE(row.attainable, row.limit) << where;
        ASSERT_LE(found.low, found.seconds) << where;
        ASSERT_GE(found.high, found.seconds) << where;
        ASSERT_TRUE(std::isfinite(found.high)) << where;

        if (row.kind == "step" && device == "h200-sxm") {
            (row.stage == "decode" ? h200_decode : h200_prefill).add("H200 " + row.stage, error);
            EXPECT_TRUE(error <= 0.15 || stride > 1) << where << ", " << row.label << ": " << error;
        }
        if (row.kind == "step" && (device == "gb10" || device == "m2-ultra"))
            llama_cpp.add(device + " " + row.stage, error);
        if (row.kind == "gemm" && row.type == "bf16" &&
            (device == "a100-sxm-80gb" || device == "h100-sxm" || device == "h200-sxm" || device == "b200-sxm"))
            bf16_products.add(row.kind + " bf16 " + device, error);
        if (row.kind == "gemm" && (row.type == "fp8" || row.type == "fp8_block" || row.type == "nvfp4"))
            narrow_products.add(row.kind + " " + row.type + " " + device, error);
        if (row.kind == "attention_prefill" || row.kind == "attention_decode")
            attention.add(row.kind + " " + device, error);
        // Encoders have no rows of their own in the targets: vision towers, beside the models that are predicted. With
        // the other two they count.
        if (row.kind.starts_with("attention_")) attention.add("attention of all kinds " + device, error);
        if (row.type == "bf16" && row.file.find("/h200_") != std::string::npos) {
            if (row.kind == "gemm" || row.kind == "attention_decode") h200_kernels.add(row.kind, error);
            if (row.kind == "attention_prefill") h200_prefill_kernels.add(row.kind, error);
        }
        if (row.kind.starts_with("moe")) experts_latent_linear.add("routed experts, " + row.kind, error);
        if (row.kind.starts_with("mla_")) experts_latent_linear.add("latent attention, " + row.kind, error);
        if (row.kind.starts_with("gdn_") || row.kind.starts_with("mamba2_")) {
            experts_latent_linear.add("linear attention of all kinds", error);
            // Not promised by itself: 33 rows on two devices, one of them 3.4 times as fast as expected.
            if (row.kind != "gdn_prefill:chunk_gated_delta_rule_triton")
                experts_latent_linear.add("linear attention, " + row.kind, error);
        }
    }

    if (stride > 1) return;
    const double coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
    EXPECT_GE(coverage, 0.75) << "ranges are meant to hold eight of ten";
    EXPECT_LE(coverage, 0.86) << "wider than they need to be";
    h200_decode.expect_at_most(0.03, 1);
    h200_prefill.expect_at_most(0.05, 1);
    bf16_products.expect_at_most(0.08, 4);
    narrow_products.expect_at_most(0.15, 10);
    attention.expect_at_most(0.15, 15);
    h200_kernels.expect_at_most(0.05, 2);
    h200_prefill_kernels.expect_at_most(0.08, 1);
    experts_latent_linear.expect_at_most(0.20, 7);
    llama_cpp.expect_at_most(0.15, 4);
}

/// How many rows of a table of tests lie in the range that the program as it is gives them.
double share_inside(const std::string& name, std::size_t rows) {
    std::ifstream file(std::string(ROOFLINE_SOURCE_DIR "/data/measured/tests/") + name);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Measurements measured;
    EXPECT_TRUE(read_measured(text, name, measured).has_value());
    auto carried = io::builtin_calibration();
    EXPECT_TRUE(carried.has_value());
    const auto calibration = std::make_shared<const predict::Calibration>(std::move(*carried));
    std::size_t steps = 0;
    std::size_t inside = 0;
    for (const Measurement& row : measured.rows) {
        if (row.kind != "step") continue;
        const Expected found = expect(row, calibration);
        ++steps;
        if (row.seconds >= found.low && row.seconds <= found.high) ++inside;
    }
    EXPECT_EQ(steps, rows) << name;
    return static_cast<double>(inside) / static_cast<double>(rows);
}

TEST(ShippedTables, StepsThatNothingWasFittedToLieInTheRange) {
    // Neither the models nor the author of the small kernels are known: 86%.
    const double unknown_author = share_inside("h200_steps_plain.csv", 230);
    EXPECT_GE(unknown_author, 0.75);
    EXPECT_LE(unknown_author, 0.90) << "wider than they need to be";
    // Models that are not known, by code that was timed on others: 44 of 48.
    const double unknown_models = share_inside("h200_steps_modules.csv", 48);
    EXPECT_GE(unknown_models, 0.75);
    EXPECT_LE(unknown_models, 0.95) << "wider than they need to be";
}

TEST(ShippedTables, ARelativeWithLessOfEverythingIsNotFasterAtStreams) {
    const auto carried = io::builtin_calibration();
    ASSERT_TRUE(carried.has_value()) << carried.error().text;
    std::vector<Device> devices;
    for (const std::string& name : io::builtin_device_names()) {
        const auto device = io::builtin_device(name);
        ASSERT_TRUE(device.has_value()) << name;
        if (device->kind == "gpu" && !device->generation.empty()) devices.push_back(*device);
    }
    const predict::KernelClass& known = *predict::kernel_class("elementwise");
    predict::Kernel kernel;
    kernel.rows = 65536.0;
    kernel.input_bytes = kernel.output_bytes = 2.0 * 65536.0 * 16384.0;
    std::size_t pairs = 0;
    for (const Device& less : devices) {
        for (const Device& more : devices) {
            const predict::Machine small = predict::machine_of(less, Engine::vector, DType::fp32);
            const predict::Machine large = predict::machine_of(more, Engine::vector, DType::fp32);
            if (less.vendor != more.vendor || less.generation != more.generation || less.name == more.name ||
                small.bandwidth > 0.9 * large.bandwidth || small.units > large.units || small.cache > large.cache)
                continue;
            ++pairs;
            for (const predict::Fitted& fit : carried->fits(known)) {
                if (fit.scope != predict::Scope::everything || fit.type.empty()) continue;
                const std::vector<std::string> stacks = {fit.stack};
                const auto seconds = [&](const Device& device, const predict::Machine& machine) {
                    return known.seconds(kernel, machine, carried->choose(known, fit.type, stacks, device).constants);
                };
                // Where multiprocessors hold them back, both are as fast, but for what was measured on each.
                EXPECT_GE(seconds(less, small), 0.95 * seconds(more, large))
                    << less.name << " against " << more.name << ", " << fit.type << " of " << fit.stack;
            }
        }
    }
    EXPECT_GE(pairs, 10U);
}

TEST(ShippedTables, TheConstantsTheProgramCarriesAreWhatCalibrateMakesOfThem) {
    if (stride > 1) GTEST_SKIP() << "compares whole fits";
    Measurements measured;
    for (const ShippedTable& table : shipped_tables())
        ASSERT_TRUE(read_measured(table.text, std::string(table.name), measured));
    const std::vector<predict::Fitted> fresh = calibrate(measured.rows).all();
    const auto carried = io::builtin_calibration();
    ASSERT_TRUE(carried.has_value()) << carried.error().text;
    const std::vector<predict::Fitted> shipped = carried->all();
    ASSERT_EQ(fresh.size(), shipped.size()) << "roofline calibrate -o data/calibrations/shipped.json";
    std::size_t moved = 0;
    for (std::size_t f = 0; f < fresh.size(); ++f) {
        const std::string what =
            std::string(fresh[f].kernel_class->name) + " " + fresh[f].type + " " + fresh[f].stack + " " + fresh[f].of;
        ASSERT_EQ(fresh[f].kernel_class, shipped[f].kernel_class) << what;
        ASSERT_EQ(fresh[f].type, shipped[f].type) << what;
        ASSERT_EQ(fresh[f].stack, shipped[f].stack) << what;
        ASSERT_EQ(fresh[f].of, shipped[f].of) << what;
        EXPECT_EQ(fresh[f].rows, shipped[f].rows) << what;
        for (std::size_t i = 0; i < fresh[f].kernel_class->constants.size(); ++i)
            if (std::fabs(fresh[f].constants[i] / shipped[f].constants[i] - 1.0) > 0.02) ++moved;
    }
    // Another compiler may take another last step where a constant hardly matters.
    EXPECT_LE(moved, fresh.size() / 10) << "roofline calibrate -o data/calibrations/shipped.json";
}

}  // namespace
}  // namespace roofline::assess
