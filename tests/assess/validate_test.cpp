// The report card by hand: errors, coverage, size classes and what was refused.
#include "roofline/assess/validate.hpp"

#include <gtest/gtest.h>

#include "core/devices.hpp"

namespace roofline::assess {
namespace {

using namespace testing;

Measurement row_of(const std::string& kind, double seconds, double limit = 0.0, double attainable = 0.0,
                   const std::string& stage = "", const std::string& type = "bf16") {
    static const auto device = std::make_shared<const Device>(exact_device());
    Measurement row;
    row.device = device;
    row.kind = kind;
    row.type = type;
    row.stage = stage;
    row.seconds = seconds;
    row.limit = limit;
    row.attainable = attainable;
    return row;
}

const Card* find(const std::vector<Card>& cards, const std::string& kind, const std::string& other = "") {
    for (const Card& card : cards) {
        if (card.kind == kind && (other.empty() || card.size == other || card.type == other || card.stage == other))
            return &card;
    }
    ADD_FAILURE() << "no card " << kind << " " << other;
    static const Card none;
    return &none;
}

TEST(ReportCard, FourRowsByHand) {
    Measurements measured;
    std::vector<Expected> expected;
    // Predicted 11, 9, 12 and 10 where 10 was measured: +10%, -10%, +20%, 0.
    for (const auto& [seconds, low, high] : {std::tuple{11e-6, 10e-6, 12e-6}, std::tuple{9e-6, 8e-6, 9.5e-6},
                                             std::tuple{12e-6, 11e-6, 13e-6}, std::tuple{10e-6, 9e-6, 10e-6}}) {
        measured.rows.push_back(row_of("gemm", 10e-6, 5e-6, 8e-6));
        expected.push_back({seconds, low, high, "exact"});
    }
    const auto found = cards(measured, expected, Grouping::full);
    ASSERT_EQ(found.size(), 1U);
    const Card& card = found.front();
    EXPECT_EQ(card.device, "exact");
    EXPECT_EQ(card.kind, "gemm");
    EXPECT_EQ(card.type, "bf16");
    EXPECT_EQ(card.rows, 4);
    EXPECT_EQ(card.refused, 0);
    EXPECT_NEAR(card.expected.mean, 0.10, 1e-12);
    EXPECT_NEAR(card.expected.median, 0.10, 1e-12) << "of 0, 10, 10 and 20%";
    EXPECT_NEAR(card.expected.p95, 0.185, 1e-12) << "85% of the way from the third to the fourth";
    EXPECT_NEAR(card.expected.bias, 0.05, 1e-12);
    EXPECT_NEAR(card.expected.worst, 0.20, 1e-12);
    EXPECT_DOUBLE_EQ(card.coverage, 0.5) << "the first and the last: ends belong to the range";
    EXPECT_NEAR(card.limit.mean, 0.5, 1e-12);
    EXPECT_NEAR(card.limit.bias, -0.5, 1e-12);
    EXPECT_NEAR(card.attainable.mean, 0.2, 1e-12);
    EXPECT_NEAR(card.attainable.worst, 0.2, 1e-12);
}

TEST(ReportCard, OneRowIsItsOwnMeanMedianAndWorst) {
    Measurements measured;
    measured.rows.push_back(row_of("gemm", 2.0, 1.0, 1.0));
    const Expected expected[] = {{1.0, 0.5, 1.5, ""}};
    const auto found = cards(measured, expected, Grouping::kind);
    ASSERT_EQ(found.size(), 1U);
    for (const double error :
         {found[0].expected.mean, found[0].expected.median, found[0].expected.p95, found[0].expected.worst})
        EXPECT_DOUBLE_EQ(error, 0.5);
    EXPECT_DOUBLE_EQ(found[0].expected.bias, -0.5);
    EXPECT_DOUBLE_EQ(found[0].coverage, 0.0);
}

TEST(ReportCard, SizeClassesAreStartUpRampAndSteadyState) {
    EXPECT_EQ(size_class(1e-6), "up to 20 us");
    EXPECT_EQ(size_class(20e-6), "up to 20 us");
    EXPECT_EQ(size_class(20.001e-6), "20 us to 1 ms");
    EXPECT_EQ(size_class(1e-3), "20 us to 1 ms");
    EXPECT_EQ(size_class(1.001e-3), "over 1 ms");
    EXPECT_EQ(size_class(1.0), "over 1 ms");
}

TEST(ReportCard, GroupsByWhatWasAskedFor) {
    Measurements measured;
    measured.rows = {row_of("gemm", 10e-6), row_of("gemm", 10e-3), row_of("gemm", 10e-6, 0, 0, "", "fp8"),
                     row_of("step", 10e-3, 0, 0, "decode"), row_of("step", 10e-3, 0, 0, "prefill")};
    const std::vector<Expected> expected(measured.rows.size(), {10e-6, 9e-6, 11e-6, ""});
    const auto full = cards(measured, expected, Grouping::full);
    EXPECT_EQ(full.size(), 4U);
    EXPECT_EQ(find(full, "gemm", "bf16")->rows, 2);
    EXPECT_EQ(find(full, "gemm", "fp8")->rows, 1);
    EXPECT_EQ(find(full, "step", "decode")->rows, 1);
    const auto kinds = cards(measured, expected, Grouping::kind);
    EXPECT_EQ(kinds.size(), 3U);
    EXPECT_EQ(find(kinds, "gemm")->rows, 3);
    EXPECT_EQ(find(kinds, "gemm")->device, "");
    EXPECT_EQ(find(kinds, "gemm")->type, "");
    const auto sizes = cards(measured, expected, Grouping::size);
    EXPECT_EQ(sizes.size(), 4U);
    EXPECT_EQ(find(sizes, "gemm", "up to 20 us")->rows, 2);
    EXPECT_DOUBLE_EQ(find(sizes, "gemm", "up to 20 us")->coverage, 1.0);
    EXPECT_EQ(find(sizes, "gemm", "over 1 ms")->rows, 1);
    EXPECT_DOUBLE_EQ(find(sizes, "gemm", "over 1 ms")->coverage, 0.0);
}

Refusal refusal(const std::string& kind, int line, const std::string& reason, const std::string& device = "exact") {
    return {"t.csv", line, device, kind, "bf16", "", reason};
}

TEST(ReportCard, CountsWhatWasRefusedBesideWhatWasUsed) {
    Measurements measured;
    measured.rows.push_back(row_of("gemm", 10e-6));
    measured.refused = {refusal("gemm", 2, "no positive time"), refusal("gemm", 3, "faster than the limit"),
                        refusal("conv", 4, "no formula for this kind of row")};
    const Expected expected[] = {{10e-6, 9e-6, 11e-6, ""}};
    for (const Grouping grouping : {Grouping::full, Grouping::kind}) {
        const auto found = cards(measured, expected, grouping);
        ASSERT_EQ(found.size(), 2U);
        EXPECT_EQ(find(found, "gemm")->rows, 1);
        EXPECT_EQ(find(found, "gemm")->refused, 2);
        EXPECT_EQ(find(found, "conv")->rows, 0);
        EXPECT_EQ(find(found, "conv")->refused, 1);
    }
    EXPECT_EQ(cards(measured, expected, Grouping::size).size(), 1U) << "a refused row has no size";
    const auto devices = cards(measured, expected, Grouping::device);
    ASSERT_EQ(devices.size(), 1U);
    EXPECT_EQ(devices[0].device, "exact");
    EXPECT_EQ(devices[0].kind, "");
    EXPECT_EQ(devices[0].rows, 1);
    EXPECT_EQ(devices[0].refused, 3);
}

TEST(ReportCard, RefusedRowsByReasonWithTheFirstPlaces) {
    std::vector<Refusal> refused;
    for (int line = 2; line <= 8; ++line) refused.push_back(refusal("gemm", line, "no positive time"));
    refused.push_back(refusal("gemm", 9, "unknown device", "warp-drive"));
    refused.push_back(refusal("conv", 10, "no positive time"));
    const auto counts = count_refused(refused);
    ASSERT_EQ(counts.size(), 3U);
    EXPECT_EQ(counts[0].reason, "conv: no positive time");
    EXPECT_EQ(counts[0].rows, 1);
    EXPECT_EQ(counts[0].places, "t.csv:10");
    EXPECT_EQ(counts[1].reason, "gemm: no positive time");
    EXPECT_EQ(counts[1].rows, 7);
    EXPECT_EQ(counts[1].places, "t.csv:2, t.csv:3, t.csv:4, t.csv:5, t.csv:6, ...");
    EXPECT_EQ(counts[2].rows, 1);
    EXPECT_TRUE(count_refused({}).empty());
}

TEST(ReportCard, NothingMeasuredIsNoCard) {
    EXPECT_TRUE(cards({}, {}, Grouping::full).empty());
}

}  // namespace
}  // namespace roofline::assess
