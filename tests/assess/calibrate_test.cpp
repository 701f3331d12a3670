// Honest numbers: a row never helps to predict itself, ranges hold what they promise, and what is carried from one
// device to another says so. All rows are made here, from known constants.
#include "roofline/assess/calibrate.hpp"

#include <cmath>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "roofline/assess/expect.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::assess {
namespace {

const predict::KernelClass& gemm_class() {
    return *predict::kernel_class("gemm");
}

/// Log-normal scatter of a tenth, the same on every machine: no library's distribution is in it.
class Scatter {
  public:
    double next(double sigma) {
        double sum = 0.0;
        for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_()) / 4294967296.0;
        return std::exp(sigma * (sum - 6.0));  // the sum of twelve has a variance of one
    }

  private:
    std::mt19937 random_{20240607};
};

/// Sets the times to what the constants give, times some scatter, but never faster than what is attainable.
void set_times(std::vector<Measurement>& rows, const Constants& truth, double sigma) {
    Scatter scatter;
    for (Measurement& row : rows) {
        const std::size_t size = row.calls.front().kernel_class->constants.size();
        row.seconds = predicted_seconds(row.calls, std::span(truth.data(), size)) * scatter.next(sigma);
        row.seconds = std::max(row.seconds, row.attainable);
    }
}

std::vector<Measurement> read(const std::string& table) {
    Measurements measured;
    const auto done = read_measured(table, "made.csv", measured);
    EXPECT_TRUE(done.has_value()) << done.error().text;
    EXPECT_TRUE(measured.refused.empty()) << measured.refused.front().reason;
    return std::move(measured.rows);
}

/// Products of every width with every depth and count of rows, on each device; times to be set.
std::vector<Measurement> products(const std::vector<std::string>& devices, const std::vector<int>& widths,
                                  const std::vector<int>& depths, const std::vector<int>& rows,
                                  const std::string& type = "bf16") {
    std::string table = "gpu,op,dtype,m,n,k,time_us\n";
    for (const std::string& device : devices) {
        for (const int n : widths) {
            for (const int k : depths) {
                for (const int m : rows) {
                    table += device + ",gemm," + type + "," + std::to_string(m) + "," + std::to_string(n) + "," +
                             std::to_string(k) + ",1e7\n";
                }
            }
        }
    }
    return read(table);
}

std::vector<Measurement> made_products(const std::vector<std::string>& devices, double sigma) {
    auto rows = products(devices, {1024, 2560, 4096, 7168, 12288}, {1024, 4096, 8192}, {1, 16, 128, 1024, 8192});
    set_times(rows, start_of(gemm_class()), sigma);
    return rows;
}

/// Whole models of several shapes, at several batches and lengths, in graphs and without them.
std::vector<Measurement> made_steps(double sigma) {
    std::string table =
        "gpu,model,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,dtype,execution,attention,stage,batch,tokens,"
        "context,"
        "time_ms,no_graph_ms\n";
    for (const auto& [name, shape] :
         {std::pair{"a", "8,1024,8,8,128,4096,32000"}, std::pair{"b", "16,2048,16,4,128,8192,32000"},
          std::pair{"c", "32,4096,32,8,128,14336,128256"}, std::pair{"d", "24,2048,32,8,64,5632,50304"},
          std::pair{"e", "40,5120,40,8,128,17408,151936"}, std::pair{"f", "28,3072,24,8,128,8192,128256"}}) {
        const std::string start = "h200-sxm," + std::string(name) + "," + shape + ",bf16,graph+fused,cudnn_attention,";
        for (const char* work : {"decode,1,1,512", "decode,8,1,2048", "decode,64,1,1024", "prefill,1,256,256",
                                 "prefill,1,2048,2048", "prefill,4,1024,1024"})
            table += start + work + ",1e5,1e5\n";
    }
    auto rows = read(table);
    const auto assumed = std::make_shared<const predict::Calibration>();
    Scatter scatter;
    for (Measurement& row : rows)
        row.seconds = std::max(1.1 * expect(row, assumed).seconds * scatter.next(sigma), row.attainable);
    return rows;
}

bool same(const Expected& a, const Expected& b) {
    return a.seconds == b.seconds && a.low == b.low && a.high == b.high && a.source == b.source;
}

double coverage(const std::vector<Measurement>& rows, const std::vector<Expected>& expected) {
    double inside = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        inside += rows[i].seconds >= expected[i].low && rows[i].seconds <= expected[i].high ? 1.0 : 0.0;
    return inside / static_cast<double>(rows.size());
}

// ---- folds ----

TEST(Folds, AFamilyIsNeverSplitWhateverTheDeviceOrTheType) {
    auto rows = products({"h100-sxm", "l40s"}, {1024, 2048, 4096, 8192}, {1024, 4096}, {1, 64, 4096});
    for (const Measurement& row : products({"h100-sxm"}, {1024, 2048, 4096, 8192}, {1024, 4096}, {1, 64}, "fp8"))
        rows.push_back(row);
    for (const Measurement& row : made_steps(0.0)) rows.push_back(row);
    for (const int folds : {2, 5}) {
        const std::vector<int> fold = fold_of_rows(rows, folds);
        ASSERT_EQ(fold.size(), rows.size());
        std::map<std::pair<std::string, std::string>, std::set<int>> of_family;
        std::map<std::string, std::set<int>> of_kind;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT_GE(fold[i], 0);
            EXPECT_LT(fold[i], folds);
            of_family[{rows[i].kind, rows[i].family}].insert(fold[i]);
            of_kind[rows[i].kind].insert(fold[i]);
        }
        for (const auto& [family, some] : of_family) EXPECT_EQ(some.size(), 1U) << family.first << " " << family.second;
        for (const auto& [kind, some] : of_kind)
            EXPECT_EQ(some.size(), static_cast<std::size_t>(folds)) << kind << ": every fold holds some of each kind";
    }
}

TEST(Folds, TheOrderOfTheRowsDoesNotMatter) {
    auto rows = products({"h100-sxm"}, {1024, 2048, 4096, 8192}, {1024, 4096}, {1, 64});
    const auto before = fold_of_rows(rows, 5);
    std::reverse(rows.begin(), rows.end());
    auto after = fold_of_rows(rows, 5);
    std::reverse(after.begin(), after.end());
    EXPECT_EQ(before, after);
}

// ---- leaving out ----

/// Each of `changed`, and then its whole family, three times as slow: what is predicted for it must not move by a
/// digit.
void expect_honest(const std::vector<Measurement>& rows, const std::vector<std::size_t>& changed) {
    const auto before = expect_left_out(rows);
    for (const std::size_t i : changed) {
        for (const bool whole_family : {false, true}) {
            SCOPED_TRACE(rows[i].kind + " " + rows[i].label + (whole_family ? ", with its family" : ""));
            std::vector<Measurement> slower = rows;
            for (std::size_t j = 0; j < rows.size(); ++j) {
                const bool relative = rows[j].kind == rows[i].kind && rows[j].family == rows[i].family;
                if (j == i || (whole_family && relative)) slower[j].seconds *= 3.0;
            }
            const auto after = expect_left_out(slower);
            std::size_t moved = 0;
            for (std::size_t j = 0; j < rows.size(); ++j) {
                if (slower[j].seconds != rows[j].seconds) {
                    EXPECT_TRUE(same(before[j], after[j]))
                        << rows[j].label << ": " << before[j].seconds << " became " << after[j].seconds;
                } else {
                    moved += same(before[j], after[j]) ? 0U : 1U;
                }
            }
            EXPECT_GT(moved, 0U) << "it is a row that others learn from";
        }
    }
}

TEST(LeavingOut, AKernelRowDoesNotHelpToPredictItself) {
    const auto rows = made_products({"h100-sxm", "h200-sxm"}, 0.05);
    expect_honest(rows, {3, 77, 120});
}

TEST(LeavingOut, AStepDoesNotHelpToPredictItself) {
    auto rows = made_steps(0.03);
    const std::size_t steps = rows.size();
    for (const Measurement& row : made_products({"h200-sxm"}, 0.03)) rows.push_back(row);
    expect_honest(rows, {0, 1, 26, steps + 5});
}

TEST(LeavingOut, PredictionsComeNearAllTheSame) {
    const auto rows = made_products({"h100-sxm", "h200-sxm"}, 0.02);
    const auto expected = expect_left_out(rows);
    double sum = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        sum += std::fabs(expected[i].seconds / rows[i].seconds - 1.0);
        EXPECT_GE(expected[i].seconds, rows[i].attainable);
        EXPECT_GE(expected[i].low, rows[i].attainable);
        EXPECT_LE(expected[i].low, expected[i].seconds);
        EXPECT_GE(expected[i].high, expected[i].seconds);
        EXPECT_EQ(expected[i].source, rows[i].device->name);
    }
    EXPECT_LT(sum / static_cast<double>(rows.size()), 0.03);
}

TEST(LeavingOut, ADeviceNobodyMeasuredLeansOnItsRelatives) {
    const auto rows = made_products({"h100-sxm", "h200-sxm", "b200-sxm"}, 0.02);
    const auto expected = expect_left_out(rows, LeftOut::device);
    std::vector<Measurement> slower = rows;
    for (Measurement& row : slower) {
        if (row.device->name == "h200-sxm") row.seconds *= 3.0;
    }
    const auto after = expect_left_out(slower, LeftOut::device);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        // A Hopper has the other Hopper; nobody else is of Blackwell's generation.
        const bool alone = rows[i].device->name == "b200-sxm";
        EXPECT_EQ(expected[i].source, alone ? "all devices, transferred" : "hopper, transferred");
        EXPECT_LE(expected[i].low, expected[i].seconds);
        EXPECT_GE(expected[i].high, expected[i].seconds);
        if (rows[i].device->name == "h200-sxm") {
            EXPECT_TRUE(same(expected[i], after[i])) << "a device does not help to predict itself";
        } else {
            moved += same(expected[i], after[i]) ? 0U : 1U;
        }
    }
    EXPECT_GT(moved, 0U) << "others learn from it";
}

TEST(LeavingOut, AFitOverAllDevicesSaysWhoseTheyWere) {
    const auto rows = made_products({"h100-sxm", "mi300x"}, 0.02);
    for (const predict::Fitted& fitted : calibrate(rows).all()) {
        if (fitted.scope != predict::Scope::everything) {
            EXPECT_TRUE(fitted.vendors.empty());
        } else {
            EXPECT_EQ(fitted.vendors, (std::vector<std::string>{"AMD", "NVIDIA"}));
        }
    }
}

TEST(LeavingOut, NoRowsAreNoPredictions) {
    EXPECT_TRUE(expect_left_out({}).empty());
    EXPECT_TRUE(expect_left_out({}, LeftOut::device).empty());
    EXPECT_TRUE(calibrate({}).all().empty());
}

// ---- calibrations ----

TEST(Calibrate, TheSameRowsGiveTheSameDigits) {
    auto rows = made_products({"h100-sxm", "a100-sxm-80gb"}, 0.1);
    for (const Measurement& row : made_steps(0.05)) rows.push_back(row);
    const auto one = calibrate(rows).all();
    const auto two = calibrate(rows).all();
    ASSERT_EQ(one.size(), two.size());
    ASSERT_GT(one.size(), 5U);
    for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_EQ(one[i].kernel_class, two[i].kernel_class);
        EXPECT_EQ(one[i].of, two[i].of);
        EXPECT_EQ(one[i].constants, two[i].constants);
        EXPECT_EQ(one[i].low, two[i].low);
        EXPECT_EQ(one[i].high, two[i].high);
        EXPECT_EQ(one[i].error, two[i].error);
    }
}

TEST(Calibrate, FitsTheDeviceItsGenerationAndAllDevices) {
    const auto calibration = calibrate(made_products({"h100-sxm", "h200-sxm", "a100-sxm-80gb"}, 0.02));
    std::map<std::string, double> rows;
    for (const predict::Fitted& fitted : calibration.fits(gemm_class())) {
        rows[std::string(name(fitted.scope)) + " " + fitted.of] = fitted.rows;
        EXPECT_EQ(fitted.type, "bf16");
        EXPECT_LE(fitted.low, 1.0);
        EXPECT_GE(fitted.high, 1.0);
    }
    EXPECT_EQ(rows, (std::map<std::string, double>{{"everything ", 225.0},
                                                   {"generation hopper", 150.0},
                                                   {"generation ampere", 75.0},
                                                   {"device h100-sxm", 75.0},
                                                   {"device h200-sxm", 75.0},
                                                   {"device a100-sxm-80gb", 75.0}}));
}

TEST(Calibrate, AHandfulOfRowsSayNothingOfTheirOwn) {
    auto rows = products({"h100-sxm"}, {4096}, {4096}, {1, 2, 4, 8, 16, 32, 64});
    set_times(rows, start_of(gemm_class()), 0.0);
    EXPECT_TRUE(calibrate(rows).all().empty()) << "seven";
    rows.push_back(rows.back());
    EXPECT_FALSE(calibrate(rows).all().empty()) << "eight";
}

// ---- ranges ----

TEST(Ranges, EightOfTenRowsThatAFitHasNotSeenLieInside) {
    auto rows = products({"h100-sxm", "h200-sxm"}, {1024, 1536, 2560, 4096, 5120, 7168, 12288},
                         {1024, 3072, 4096, 8192}, {1, 8, 32, 128, 512, 1024, 4096, 8192});
    // Well above what is attainable, so that no scatter is cut off.
    Constants truth = start_of(gemm_class());
    truth[1] *= 0.7;
    truth[2] *= 0.7;
    set_times(rows, truth, 0.1);
    const double share = coverage(rows, expect_left_out(rows));
    EXPECT_GE(share, 0.75);
    EXPECT_LE(share, 0.85);
    const predict::Calibration calibration = calibrate(rows);
    for (const predict::Fitted& fitted : calibration.fits(gemm_class())) {
        if (fitted.scope != predict::Scope::device) continue;
        // A tenth of a normal distribution lies beyond 1.28 standard deviations; its mean distance from 0 is 0.80.
        EXPECT_NEAR(fitted.low, std::exp(-0.128), 0.025) << fitted.of;
        EXPECT_NEAR(fitted.high, std::exp(0.128), 0.035) << fitted.of;
        EXPECT_NEAR(fitted.error, 0.080, 0.015) << fitted.of;
    }
}

TEST(Ranges, RestOnFamiliesNotOnRows) {
    // The same scatter and about as many rows, in two families of shapes or in thirty.
    const auto width_of = [](const std::vector<int>& widths, const std::vector<int>& depths,
                             const std::vector<int>& m) {
        auto rows = products({"h200-sxm"}, widths, depths, m);
        set_times(rows, start_of(gemm_class()), 0.1);
        const predict::Calibration fitted = calibrate(rows);
        const std::vector<std::string> stacks = {""};
        const predict::Choice choice = fitted.choose(gemm_class(), "bf16", stacks, *rows.front().device);
        EXPECT_TRUE(choice.own);
        return choice.high / choice.low;
    };
    std::vector<int> many_rows;
    for (int m = 1; m < 75; ++m) many_rows.push_back(m * m);
    const double few = width_of({4096, 12288}, {4096}, many_rows);
    const double many =
        width_of({1024, 2560, 3072, 4096, 7168, 12288}, {1024, 2048, 4096, 6144, 8192}, {1, 16, 128, 1024, 8192});
    EXPECT_GT(few, 1.1 * many);
}

TEST(Ranges, OtherAuthorsSmallKernelsWidenStepsOfWhomNobodyTimed) {
    // A second author, whose element-wise kernels take half as long again; all else is as the first one's.
    std::vector<Measurement> rows;
    const auto first = io::builtin_profile("graph+fused");
    ASSERT_TRUE(first.has_value());
    for (const Measurement& row : made_steps(0.0)) {
        if (row.kind != "step") continue;
        const predict::Prepared prepared(*row.step->model, *row.device, {*first, nullptr});
        std::vector<predict::OperatorTime> times(prepared.size());
        const predict::StageTime stage = prepared.evaluate(row.step->step, times);
        ASSERT_GT(stage.written_seconds, 0.0);
        ASSERT_LT(stage.written_seconds, stage.kernel_seconds);
        Measurement slower = row;
        Step step = *row.step;
        step.profile = "graph+triton";
        slower.step = std::make_shared<const Step>(step);
        slower.seconds *= 1.0 + 0.5 * stage.written_seconds / stage.kernel_seconds;
        rows.push_back(row);
        rows.push_back(slower);
    }
    auto calibration = std::make_shared<predict::Calibration>(calibrate(rows));
    predict::Execution execution{*first, calibration};
    const predict::Choice own = execution.choose_step(*rows.front().device);
    EXPECT_EQ(own.authors_low, 1.0) << "the constants are this author's";
    EXPECT_EQ(own.authors_high, 1.0);
    execution.profile.name = "mine";
    execution.profile.stacks = {"graph+fused"};
    const predict::Choice other = execution.choose_step(*rows.front().device);
    EXPECT_EQ(other.constants, own.constants);
    // Two voices: the 95% quantile of ln 1 and ln 1.5, exp(0.95 x 0.4055) = 1.470, and 1 + 0.3 / 4 = 1.075 either way.
    EXPECT_NEAR(other.authors_high, 1.470 * 1.075, 0.05);
    EXPECT_NEAR(other.authors_low, 1.0 / 1.075, 0.01);
    execution.profile.stacks = {"graph+triton"};
    EXPECT_LT(execution.choose_step(*rows.front().device).authors_low, 0.8) << "the first author is faster";

    // The same step, wider for whom nobody timed, and most where much of it is small kernels.
    const auto width = [&](const std::string& name, const Measurement& row) {
        execution.profile.name = name;
        execution.profile.stacks = {"graph+fused"};
        const predict::Prepared prepared(*row.step->model, *row.device, execution);
        std::vector<predict::OperatorTime> times(prepared.size());
        const predict::StageTime stage = prepared.evaluate(row.step->step, times);
        return (stage.expected_high - stage.expected) / stage.expected;
    };
    const Measurement& small = rows.front();     // eight layers of 1,024
    const Measurement& large = rows[2 * 6 * 4];  // forty of 5,120
    const double small_grows = width("mine", small) - width("graph+fused", small);
    const double large_grows = width("mine", large) - width("graph+fused", large);
    EXPECT_GT(large_grows, 0.0);
    EXPECT_GT(small_grows, 2.0 * large_grows);
}

TEST(Ranges, StepsHaveThemToo) {
    const auto rows = made_steps(0.1);
    const double share = coverage(rows, expect_left_out(rows));
    // 72 rows: a standard deviation is 0.05. No bound above: kernels that nobody measured widen the range.
    EXPECT_GE(share, 0.70);
}

TEST(Ranges, NothingIsExpectedToBeFasterThanAttainable) {
    // As good as constants can be: what is left is a stream at the datasheet's bandwidth, which nobody has seen.
    predict::Fitted best;
    best.kernel_class = &gemm_class();
    best.type = "bf16";
    best.of = "h200-sxm";
    best.scope = predict::Scope::device;
    for (std::size_t i = 0; i < gemm_class().constants.size(); ++i) {
        const predict::Constant& constant = gemm_class().constants[i];
        const bool more_is_faster =
            constant.name == "compute" || constant.name == "memory" || constant.name == "sustained";
        best.constants[i] = more_is_faster ? constant.high : constant.low;
    }
    best.low = 0.5;
    best.high = 2.0;
    predict::Calibration calibration;
    calibration.add(best);
    const Measurement row = products({"h200-sxm"}, {65536}, {65536}, {1}).front();
    ASSERT_GT(row.attainable, row.limit) << "ceilings were measured on this device";
    ASSERT_LT(predicted_seconds(row.calls, best.constants), row.attainable);
    const Expected expected = expect(row, std::make_shared<const predict::Calibration>(calibration));
    EXPECT_EQ(expected.seconds, row.attainable);
    EXPECT_EQ(expected.low, row.attainable);
    EXPECT_EQ(expected.high, 2.0 * row.attainable);
}

// ---- transfers ----

TEST(Transfers, ADeviceThatNobodyMeasuredIsPredictedByItsGenerationAndSaysSo) {
    const auto all = made_products({"h100-sxm", "h200-sxm", "a100-sxm-80gb", "l40s"}, 0.03);
    std::vector<Measurement> others;
    std::vector<Measurement> held_out;
    for (const Measurement& row : all) (row.device->name == "h200-sxm" ? held_out : others).push_back(row);
    ASSERT_EQ(held_out.size(), 75U);
    const auto calibration = std::make_shared<const predict::Calibration>(calibrate(others));
    double sum = 0.0;
    for (const Measurement& row : held_out) {
        const Expected expected = expect(row, calibration);
        EXPECT_EQ(expected.source, "hopper, transferred");
        EXPECT_GE(expected.seconds, row.attainable);
        sum += std::fabs(expected.seconds / row.seconds - 1.0);
    }
    EXPECT_LT(sum / 75.0, 0.06);
    EXPECT_EQ(expect(others.front(), calibration).source, "h100-sxm");
}

TEST(Transfers, WithoutRelativesAllDevicesSpeak) {
    const auto calibration = std::make_shared<const predict::Calibration>(
        calibrate(made_products({"h100-sxm", "h200-sxm", "a100-sxm-80gb"}, 0.03)));
    for (const Measurement& row : made_products({"mi300x"}, 0.0))
        EXPECT_EQ(expect(row, calibration).source, "all devices, transferred");
    const auto nothing = std::make_shared<const predict::Calibration>();
    EXPECT_EQ(expect(made_products({"mi300x"}, 0.0).front(), nothing).source, "assumed");
}

TEST(Transfers, TheRangeOfAGenerationIsThatOfDevicesItHadNotSeen) {
    // One of two relatives is a third slower than the other: each is a bad guess of the other, and the range says so.
    auto rows = made_products({"h100-sxm", "h200-sxm"}, 0.02);
    for (Measurement& row : rows) row.seconds *= row.device->name == "h200-sxm" ? 1.35 : 1.0;
    const predict::Calibration calibration = calibrate(rows);
    for (const predict::Fitted& fitted : calibration.fits(gemm_class())) {
        SCOPED_TRACE(std::string(name(fitted.scope)) + " " + fitted.of);
        if (fitted.scope == predict::Scope::device) {
            EXPECT_LT(fitted.high / fitted.low, 1.2);
            EXPECT_LT(fitted.error, 0.05);
        }
        if (fitted.scope == predict::Scope::generation) {
            EXPECT_GT(fitted.high / fitted.low, 1.6) << "a third slower and a third faster";
            EXPECT_GT(fitted.error, 0.22);
        }
    }
}

}  // namespace
}  // namespace roofline::assess
