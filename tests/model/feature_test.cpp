#include "roofline/model/feature.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace roofline::model {
namespace {

using What = Feature::What;

double value(What what, const Step& step, const Who& who = {}) {
    return evaluate(Feature{.what = what, .who = who}, step);
}

TEST(DistinctExperts, OfNoTokensIsNone) {
    EXPECT_EQ(distinct_experts(8, 2, 0), 0.0);
}

TEST(DistinctExperts, OfOneTokenIsWhatItChose) {
    EXPECT_EQ(distinct_experts(8, 2, 1), 2.0);
    EXPECT_DOUBLE_EQ(distinct_experts(256, 8, 1), 8.0);
    EXPECT_DOUBLE_EQ(distinct_experts(60, 4, 1), 4.0);
}

TEST(DistinctExperts, FollowsEOneMinusOneMinusKOverEToTheN) {
    // 8 experts, 2 chosen: 1 - k/E = 3/4, whose powers are exact.
    EXPECT_EQ(distinct_experts(8, 2, 2), 3.5);              // 8 (1 - 9/16)
    EXPECT_EQ(distinct_experts(8, 2, 3), 4.625);            // 8 (1 - 27/64)
    EXPECT_EQ(distinct_experts(8, 2, 4), 5.46875);          // 8 (1 - 81/256)
    EXPECT_EQ(distinct_experts(4, 2, 5), 3.875);            // 4 (1 - 1/32)
    EXPECT_NEAR(distinct_experts(256, 8, 64), 222.4, 0.1);  // 256 (1 - (31/32)^64); (31/32)^64 = e^(-2.0319) = 0.1311
}

TEST(DistinctExperts, AreAllOfThemWhenAllAreChosen) {
    EXPECT_EQ(distinct_experts(8, 8, 1), 8.0);
    EXPECT_EQ(distinct_experts(8, 8, 1000), 8.0);
    EXPECT_EQ(distinct_experts(1, 1, 5), 1.0);
    EXPECT_EQ(distinct_experts(4, 8, 3), 4.0) << "no more than there are";
}

TEST(DistinctExperts, ApproachAllAndNeverExceedThem) {
    for (const double total : {2.0, 8.0, 60.0, 128.0, 384.0}) {
        for (const double chosen : {1.0, 2.0, 8.0}) {
            if (chosen > total) continue;
            double before = 0.0;
            for (const double tokens : {1.0, 2.0, 3.0, 10.0, 100.0, 1000.0, 1e5, 1e7}) {
                const double now = distinct_experts(total, chosen, tokens);
                EXPECT_GE(now, before) << "more tokens, fewer experts";
                EXPECT_GE(now, chosen * (1.0 - 1e-12)) << "a token alone reads k";
                EXPECT_LE(now, total);
                EXPECT_LE(now, chosen * tokens * (1.0 + 1e-12)) << "more experts than choices";
                before = now;
            }
            EXPECT_DOUBLE_EQ(distinct_experts(total, chosen, 1e7), total);
        }
    }
}

TEST(Feature, CountsTokensSequencesAndLogits) {
    const Step step = mixed_step(10, 4096, 256, 512, true);
    EXPECT_EQ(value(What::tokens, step), 266.0);
    EXPECT_EQ(value(What::tokens, step, Who::prefill()), 256.0);
    EXPECT_EQ(value(What::tokens, step, Who::decode()), 10.0);
    EXPECT_EQ(value(What::sequences, step), 11.0);
    EXPECT_EQ(value(What::logits, step), 11.0);
    EXPECT_EQ(value(What::one, step), 1.0);
    EXPECT_EQ(value(What::rectangle, step), 256.0 * 768.0 + 10.0 * 4096.0);
}

TEST(Feature, OnlyTheLastChunkOfAPromptNeedsLogits) {
    EXPECT_EQ(value(What::logits, mixed_step(10, 4096, 256, 512, false)), 10.0);
    EXPECT_EQ(value(What::logits, prefill_step(3, 512)), 3.0) << "one position a prompt, not one a token";
}

TEST(Feature, DecodeAttendsToItsContextItselfIncluded) {
    EXPECT_EQ(value(What::pairs, decode_step(1, 4096)), 4096.0);
    EXPECT_EQ(value(What::keys, decode_step(7, 4096)), 7.0 * 4096.0);
    EXPECT_EQ(value(What::pairs, decode_step(1, 1)), 1.0);
}

TEST(Feature, TokensOfAllSequencesShareTheExperts) {
    const Feature feature{.what = What::experts, .total = 8, .chosen = 2};
    EXPECT_EQ(evaluate(feature, decode_step(4, 100)), 5.46875);
    EXPECT_EQ(evaluate(feature, mixed_step(1, 100, 3, 0, true)), 5.46875) << "3 + 1 tokens, not 3 and 1 apart";
    EXPECT_EQ(evaluate(feature, Step{}), 0.0);
}

TEST(Feature, ShortPromptsAreThoseThatEndWithinTheThreshold) {
    const Who brief = Who::short_prefill(1000);
    const Who rest = Who::not_short(1000);
    EXPECT_EQ(value(What::tokens, prefill_step(1, 1000), brief), 1000.0);
    EXPECT_EQ(value(What::tokens, prefill_step(1, 1000), rest), 0.0);
    EXPECT_EQ(value(What::tokens, prefill_step(1, 500, 501), brief), 0.0);
    EXPECT_EQ(value(What::tokens, prefill_step(1, 500, 501), rest), 500.0);
    EXPECT_EQ(value(What::tokens, decode_step(4, 10), brief), 0.0);
    EXPECT_EQ(value(What::tokens, decode_step(4, 10), rest), 4.0);
}

TEST(Feature, PooledEntriesAreWrittenWhenTheyFillUp) {
    const Feature feature{.what = What::entries, .reach = {.ratio = 4.0}};
    EXPECT_EQ(evaluate(feature, decode_step(1, 7)), 0.0);
    EXPECT_EQ(evaluate(feature, decode_step(1, 8)), 1.0);
    EXPECT_EQ(evaluate(feature, decode_step(3, 8)), 3.0);
    EXPECT_EQ(evaluate(feature, prefill_step(1, 10)), 2.0);
    EXPECT_EQ(evaluate(feature, prefill_step(1, 10, 3)), 3.0);  // 3 -> 13 tokens: entries end at 4, 8 and 12
}

TEST(Form, AddsTermsOfTheSameFeature) {
    Form form(2.0, 3);
    form.add(5.0, 1).add(4.0, 3);
    form.constant = 7.0;
    EXPECT_EQ(form.size, 2);
    FeatureValues values{};
    values[1] = 10.0;
    values[3] = 100.0;
    EXPECT_EQ(form(values), 7.0 + 50.0 + 600.0);
    Form other(1.0);
    other += form;
    EXPECT_EQ(other(values), 658.0);
}

}  // namespace
}  // namespace roofline::model
