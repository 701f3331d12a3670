// Every chart against a picture of it that somebody looked at. script/golden-charts draws them anew; look before you
// commit what it wrote.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "places.hpp"
#include "render/sample_accounts.hpp"
#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/figure.hpp"
#include "roofline/render/chart/landscape.hpp"
#include "roofline/render/chart/pareto.hpp"
#include "roofline/render/chart/scatter.hpp"
#include "roofline/render/chart/throughput_latency.hpp"
#include "roofline/render/chart/timeline.hpp"
#include "roofline/render/chart/tornado.hpp"
#include "roofline/render/chart/waterfall.hpp"
#include "roofline/render/terminal_chart.hpp"

namespace roofline::render::chart {
namespace {

using testing::sample_account;
using testing::slower_account;

void expect_golden(const std::string& name, const std::string& drawn) {
    const std::string path = std::string(ROOFLINE_SOURCE_DIR) + "/tests/render/golden/" + name;
    if (std::getenv("ROOFLINE_REWRITE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << drawn;
        return;
    }
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path << " is missing: script/golden-charts draws it";
    std::stringstream golden;
    golden << file.rdbuf();
    // Not EXPECT_EQ: two charts printed in full help nobody.
    const std::string kept = golden.str();
    std::size_t at = 0;
    while (at < kept.size() && at < drawn.size() && kept[at] == drawn[at]) ++at;
    EXPECT_TRUE(kept == drawn) << name << " differs from byte " << at << ": golden \"" << kept.substr(at, 80)
                               << "\", drawn \"" << drawn.substr(at, 80) << "\"";
}

TEST(Golden, Roofline) {
    const std::vector<Account> accounts = {sample_account()};
    expect_golden("roofline.svg", roofline_chart(accounts));
}

TEST(Golden, RooflineWithGaps) {
    const std::vector<Account> accounts = {sample_account()};
    RooflineOptions options;
    options.gaps = true;
    options.title = "How far below the roof";
    expect_golden("roofline-gaps.svg", roofline_chart(accounts, options));
}

TEST(Golden, RooflineOfTwoReports) {
    const std::vector<Account> accounts = {sample_account(), slower_account()};
    expect_golden("roofline-two.svg", roofline_chart(accounts));
}

TEST(Golden, RooflineOfTwoNumberTypes) {
    const std::vector<Account> accounts = {testing::account_in_two_types()};
    expect_golden("roofline-types.svg", roofline_chart(accounts));
}

TEST(Golden, TimeAndIntensity) {
    const std::vector<Account> accounts = {sample_account()};
    for (const char* name : {"time", "intensity"})
        expect_golden(std::string(name) + ".svg", find_account_chart(name)->draw(accounts, {}));
}

TEST(Golden, ThroughputAgainstLatency) {
    LoadCurve curve{"sample-1", {}, 100.0};
    for (double batch = 1.0; batch <= 512.0; batch *= 2.0) {
        const double seconds = 4e-3 + 2e-5 * batch;
        curve.points.push_back(
            {batch, seconds, batch / seconds, seconds * 0.7, batch / (seconds * 0.7), batch >= 256.0, batch <= 100.0});
    }
    LoadCurve other = curve;
    other.name = "sample-half";
    other.largest = 600.0;
    for (LoadPoint& point : other.points) {
        point.seconds *= 2.0;
        point.rate /= 2.0;
        point.limit_seconds *= 2.0;
        point.limit_rate /= 2.0;
        point.fits = true;
    }
    expect_golden("throughput-latency.svg",
                  throughput_latency_chart({curve, other}, "Throughput against latency: sample-8b", "batch"));
}

TEST(Golden, Pareto) {
    std::vector<ParetoPoint> points = {{"2 x TP4 on sample-1", "sample-1", 60.0, 900.0, 1},
                                       {"1 x TP8 on sample-1", "sample-1", 95.0, 640.0, 2}};
    for (int i = 0; i < 8; ++i) {
        points.push_back({"a plan", "sample-1", 30.0 + 12.0 * i, 1300.0 - 120.0 * i, 0});
        points.push_back({"a plan", "sample-half", 20.0 + 8.0 * i, 700.0 - 60.0 * i, 0});
    }
    expect_golden("pareto.svg",
                  pareto_chart(points, "Plans for sample-8b", "what none beats, of those that meet the targets"));
}

TEST(Golden, TornadoAndWaterfall) {
    const std::string tornado =
        tornado_chart({{"HBM9 bandwidth", 1.72, ""},
                       {"bf16 compute", 1.0, ""},
                       {"launch overhead", 1.15, ""},
                       {"link", 0.9, ""},
                       {"int4 weights", 1.0, "", "does not fit"}},
                      "What twice as much of it buys", "times better time per output token; now 6.620 ms");
    const std::string waterfall = waterfall_chart({{"as asked", 6.62e-3, "6.620 ms"},
                                                   {"weights in fp8", 4.1e-3, "4.100 ms"},
                                                   {"speculative decoding", 2.3e-3, "2.300 ms"},
                                                   {"two devices", 1.5e-3, "1.500 ms"}},
                                                  "sample-8b on sample-1: 4.41 times better",
                                                  "time per output token, expected, after each change");
    expect_golden("tornado.svg", tornado);
    expect_golden("waterfall.svg", waterfall);
    expect_golden("advice.svg", stacked({waterfall, tornado}, "Advice"));
}

TEST(Golden, Timeline) {
    // 10 us of idle time between two kernels, and 4 more before the last: 14 of 100.
    expect_golden("timeline.svg", timeline_chart({{"layers.attention.qkv", Group::attention, 0.0, 20e-6, 0},
                                                  {"layers.attention.core", Group::attention, 30e-6, 50e-6, 0},
                                                  {"all_reduce", Group::communication, 45e-6, 60e-6, 1},
                                                  {"layers.ffn.gate_up", Group::ffn, 60e-6, 86e-6, 0},
                                                  {"layers.norm", Group::norm, 90e-6, 100e-6, 0}},
                                                 {{"stream 7"}, {"stream 13"}}, "One decode step"));
}

TEST(Golden, Scatter) {
    ScatterSeries gemm{"gemm", {}};
    ScatterSeries step{"step decode", {}};
    for (int i = 1; i < 60; ++i) {
        const double seconds = 1e-6 * i * i;
        gemm.points.push_back({seconds, seconds * (i % 5 == 0 ? 1.3 : 0.95)});
        step.points.push_back({seconds * 4.0, seconds * 4.0 * (i % 7 == 0 ? 0.7 : 1.05)});
    }
    expect_golden("scatter.svg", scatter_chart({gemm, step}, "Predicted against measured", "made up"));
}

TEST(Golden, Landscape) {
    std::vector<LandscapePoint> points = {{"unknown", "one", 0.0, 1e12, ""}};
    for (int i = 1; i <= 9; ++i) {
        points.push_back({"one-" + std::to_string(i), "one", 1e11 * i * i, 2e13 * i * i, ""});
        points.push_back({"two-" + std::to_string(i), "two", 1.1e11 * i * i, 1.2e12 * i * i, ""});
    }
    points.back().ringed = true;
    expect_golden(
        "landscape.svg",
        landscape_chart(
            points,
            {"Machines", "made up", "bandwidth (B/s)", "rate (FLOP/s)", {{10.0, "ridge 10"}, {100.0, "ridge 100"}}}));
}

TEST(Golden, TerminalOfADeviceAlone) {
    Account account;
    account.device = testing::sample_device();
    account.device.levels[index(Level::cache)].emplace().bandwidth = Figure{2e13, "made up", ""};
    expect_golden("terminal-device.txt", terminal_roofline(std::vector{account}, {false, 80}));
}

TEST(Golden, Terminal) {
    const std::vector<Account> accounts = {sample_account()};
    expect_golden("terminal.txt",
                  terminal_roofline(accounts, {false, 80}) + "\n" + terminal_bars(accounts, {false, 80}));
}

}  // namespace
}  // namespace roofline::render::chart
