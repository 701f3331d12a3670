// A whole step of a toy model against the same model written down plainly in fp64.
#include "roofline/bench/step.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "roofline/bench/kernels/routing.hpp"
#include "roofline/bench/numbers.hpp"

namespace roofline::bench {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

ModelShape toy(DType weights) {
    ModelShape shape;
    shape.layers = 2;
    shape.hidden = 128;
    shape.query_heads = 4;
    shape.kv_heads = 2;
    shape.head_dim = 32;
    shape.ffn_width = 256;
    shape.vocabulary = 300;
    shape.weights = weights;
    shape.head = weights == DType::fp32 ? DType::fp32 : DType::bf16;
    shape.kv = weights == DType::fp32 ? DType::fp32 : DType::bf16;
    return shape;
}

Row normed(const Row& x) {
    double square = 0.0;
    for (const double value : x) square += value * value;
    Row y = x;
    for (double& value : y) value /= std::sqrt(square / static_cast<double>(x.size()) + 1e-5);
    return y;
}

/// Logits of the last token of a prompt of `tokens`.
Row plain_prefill(const CpuModel& model, const ModelShape& shape, std::int64_t tokens) {
    const auto multiply = [&](CpuModel::Matrix which, std::int64_t layer, const Row& x, std::int64_t n,
                              std::int64_t expert = 0) {
        Row y(static_cast<std::size_t>(n));
        for (std::int64_t row = 0; row < n; ++row) {
            for (std::size_t i = 0; i < x.size(); ++i)
                y[static_cast<std::size_t>(row)] +=
                    model.weight(which, layer, expert, row, static_cast<std::int64_t>(i)) * x[i];
        }
        return y;
    };
    const std::int64_t d = shape.head_dim;
    const std::int64_t heads = shape.query_heads;
    const std::int64_t kv_heads = shape.kv_heads;
    Rows stream;
    for (std::int64_t t = 0; t < tokens; ++t) {
        const auto token = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(t)) % 300U);
        Row row;
        for (std::int64_t i = 0; i < shape.hidden; ++i) row.push_back(model.embedding(token, i));
        stream.push_back(row);
    }
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        Rows qkv;
        for (std::int64_t t = 0; t < tokens; ++t) {
            Row row = multiply(CpuModel::Matrix::qkv, layer, normed(stream[static_cast<std::size_t>(t)]),
                               (heads + 2 * kv_heads) * d);
            for (std::int64_t head = 0; head < heads + kv_heads; ++head) {
                for (std::int64_t i = 0; i < d / 2; ++i) {
                    const double angle = static_cast<double>(t) *
                                         std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
                    double& a = row[static_cast<std::size_t>(head * d + i)];
                    double& b = row[static_cast<std::size_t>(head * d + i + d / 2)];
                    const double turned = a * std::cos(angle) - b * std::sin(angle);
                    b = b * std::cos(angle) + a * std::sin(angle);
                    a = turned;
                }
            }
            qkv.push_back(row);
        }
        for (std::int64_t t = 0; t < tokens; ++t) {
            Row mixed_row(static_cast<std::size_t>(heads * d));
            for (std::int64_t head = 0; head < heads; ++head) {
                const std::int64_t kv_head = head / (heads / kv_heads);
                Row weights;
                double total = 0.0;
                for (std::int64_t p = 0; p <= t; ++p) {
                    double dot = 0.0;
                    for (std::int64_t i = 0; i < d; ++i) {
                        dot += qkv[static_cast<std::size_t>(t)][static_cast<std::size_t>(head * d + i)] *
                               qkv[static_cast<std::size_t>(p)][static_cast<std::size_t>((heads + kv_head) * d + i)];
                    }
                    weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(d))));
                    total += weights.back();
                }
                for (std::int64_t p = 0; p <= t; ++p) {
                    for (std::int64_t i = 0; i < d; ++i) {
                        mixed_row[static_cast<std::size_t>(head * d + i)] +=
                            weights[static_cast<std::size_t>(p)] / total *
                            qkv[static_cast<std::size_t>(p)]
                               [static_cast<std::size_t>((heads + kv_heads + kv_head) * d + i)];
                    }
                }
            }
            Row& x = stream[static_cast<std::size_t>(t)];
            const Row out = multiply(CpuModel::Matrix::out, layer, mixed_row, shape.hidden);
            for (std::size_t i = 0; i < x.size(); ++i) x[i] += out[i];
            const Row before = normed(x);
            const auto add_ffn = [&](std::int64_t expert, double share) {
                const Row wide = multiply(CpuModel::Matrix::gate_up, layer, before, 2 * shape.ffn_width, expert);
                Row gated(static_cast<std::size_t>(shape.ffn_width));
                for (std::size_t i = 0; i < gated.size(); ++i)
                    gated[i] = wide[i] / (1.0 + std::exp(-wide[i])) * wide[i + gated.size()];
                const Row down = multiply(CpuModel::Matrix::down, layer, gated, shape.hidden, expert);
                for (std::size_t i = 0; i < x.size(); ++i) x[i] += share * down[i];
            };
            if (shape.experts == 0) {
                add_ffn(0, 1.0);
                continue;
            }
            // One after the other the experts with the highest scores, and the softmax over these.
            Row scores = multiply(CpuModel::Matrix::router, layer, before, shape.experts);
            std::vector<std::pair<std::int64_t, double>> chosen;
            double sum = 0.0;
            for (std::int64_t i = 0; i < shape.experts_chosen; ++i) {
                const auto best = std::max_element(scores.begin(), scores.end());
                chosen.emplace_back(best - scores.begin(), std::exp(*best));
                sum += chosen.back().second;
                *best = -1e300;
            }
            for (const auto& [expert, weight] : chosen) add_ffn(expert, weight / sum);
        }
    }
    return multiply(CpuModel::Matrix::head, 0, normed(stream.back()), shape.vocabulary);
}

TEST(Step, ThePrefillOfAToyModelGivesTheLogitsOfPlainArithmetic) {
    const auto threads = std::move(*Threads::start(2));
    // Rounding of activations grows over two layers: three percent in bf16, ten in the integer types.
    for (const auto& [type, allowed] :
         {std::pair{DType::fp32, 1e-3}, {DType::bf16, 3e-2}, {DType::int8, 0.1}, {DType::int4, 0.1}}) {
        const ModelShape shape = toy(type);
        const StepWork work{.prefill = true, .batch = 1, .tokens = 7, .context = 7};
        const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
        ASSERT_TRUE(model) << model.error().text;
        (*model)->step(work);
        const Row expected = plain_prefill(**model, shape, 7);
        std::vector<Sample> samples;
        for (std::size_t i = 0; i < expected.size(); ++i)
            samples.push_back({static_cast<std::int64_t>(i), expected[i]});
        EXPECT_LE(largest_error(samples, (*model)->logits()), allowed) << name(type);
        EXPECT_GT(largest_error(samples, std::vector<float>(expected.size(), 0.0F)), 1.0)
            << "the answer is not trivial";
    }
}

TEST(Step, ThePrefillOfAMixtureOfExpertsGivesTheLogitsOfPlainArithmetic) {
    const auto threads = std::move(*Threads::start(2));
    // In fp32 alone: what rounding does to scores may change which experts are chosen.
    ModelShape shape = toy(DType::fp32);
    shape.router = DType::fp32;
    shape.experts = 6;
    shape.experts_chosen = 2;
    shape.ffn_width = 64;
    const StepWork work{.prefill = true, .batch = 1, .tokens = 7, .context = 7};
    const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
    ASSERT_TRUE(model) << model.error().text;
    (*model)->step(work);
    const Row expected = plain_prefill(**model, shape, 7);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < expected.size(); ++i) samples.push_back({static_cast<std::int64_t>(i), expected[i]});
    EXPECT_LE(largest_error(samples, (*model)->logits()), 1e-3);
    EXPECT_GT(largest_error(samples, std::vector<float>(expected.size(), 0.0F)), 1.0) << "the answer is not trivial";
}

TEST(Step, AMixtureTakesTheMemoryOfAllItsExperts) {
    const StepWork work{.prefill = false, .batch = 1, .tokens = 1, .context = 4};
    const ModelShape dense = toy(DType::bf16);
    ModelShape shape = dense;
    shape.experts = 6;
    shape.experts_chosen = 2;
    // Five more FFNs of 3 x 256 x 128 in bf16, and a router of 6 x 128; bytes() says how either lies in memory.
    const std::int64_t ffn = WeightMatrix::bytes(512, 128, DType::bf16) + WeightMatrix::bytes(128, 256, DType::bf16);
    EXPECT_GE(ffn, 3 * 256 * 128 * 2);
    EXPECT_EQ(step_bytes(shape, work).layer - step_bytes(dense, work).layer,
              5 * ffn + WeightMatrix::bytes(6, 128, DType::bf16));
}

TEST(Routing, SendsEveryRowToItsBestExpertsAndPutsTheirResultsTogether) {
    const auto threads = std::move(*Threads::start(2));
    // Three rows, four experts, two chosen. By hand: row 0 goes to 1 and 3, row 1 to 0 and 1 (a tie: the first), row 2
    // to 3 and 0.
    const std::vector<float> scores = {0, 2, 1, 2, 5, 5, 1, 5, 1, 0, -1, 3};
    Routing routing;
    route(scores.data(), 3, 4, 2, routing, *threads);
    EXPECT_EQ(routing.begins, (std::vector<std::int64_t>{0, 2, 4, 4, 6}));
    EXPECT_EQ(routing.rows, (std::vector<std::int64_t>{1, 2, 0, 1, 0, 2}));
    EXPECT_EQ(routing.places, (std::vector<std::int64_t>{2, 4, 0, 3, 5, 1}));
    EXPECT_FLOAT_EQ(routing.shares[0], 0.5F);
    EXPECT_FLOAT_EQ(routing.shares[4], 1.0F / (1.0F + std::exp(-2.0F)));
    EXPECT_FLOAT_EQ(routing.shares[4] + routing.shares[5], 1.0F);
    // An expert that gives back what it took: every row comes back as it was.
    const std::vector<float> x = {1, -2, 3, 4, -5, 6};
    std::vector<float> taken(12);
    std::vector<float> back(6);
    scatter_rows(x.data(), routing, taken.data(), 2, *threads);
    EXPECT_EQ(taken[0], 3.0F);
    EXPECT_EQ(taken[3], 6.0F);
    combine_rows(taken.data(), routing, back.data(), 2, *threads);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(back[i], x[i]);
}

TEST(Step, DecodeChoosesATokenForEachSequence) {
    const auto threads = std::move(*Threads::start(2));
    const ModelShape shape = toy(DType::bf16);
    const StepWork work{.prefill = false, .batch = 3, .tokens = 1, .context = 20};
    const auto model = CpuModel::make(shape, work, 1LL << 30, *threads);
    ASSERT_TRUE(model);
    const auto& chosen = (*model)->step(work);
    ASSERT_EQ(chosen.size(), 3U);
    for (const std::int32_t token : chosen) {
        EXPECT_GE(token, 0);
        EXPECT_LT(token, 300);
    }
    Pace pace;
    pace.budget.seconds = 1e-3;
    const StepOutcome outcome = run_step(**model, work, pace);
    EXPECT_EQ(outcome.layers_distinct, 2);
    EXPECT_NEAR(outcome.attention + outcome.ffn + outcome.other, outcome.timing.median, 1e-9);
}

TEST(Step, LayersShareWeightsWhereMemoryIsShort) {
    const auto threads = std::move(*Threads::start(1));
    const ModelShape shape = toy(DType::bf16);
    const StepWork work{.prefill = false, .batch = 1, .tokens = 1, .context = 4};
    const StepBytes bytes = step_bytes(shape, work);
    const auto one = CpuModel::make(shape, work, bytes.outside + bytes.working + bytes.layer * 3 / 2, *threads);
    ASSERT_TRUE(one);
    EXPECT_EQ((*one)->distinct_layers(), 1);
    const auto none = CpuModel::make(shape, work, bytes.outside, *threads);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().unavailable);
}

}  // namespace
}  // namespace roofline::bench
