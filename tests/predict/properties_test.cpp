// What must hold for every model on every device, over a few hundred random ones.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "predict/random_scenarios.hpp"
#include "roofline/predict/prepared.hpp"

namespace roofline::predict {
namespace {

using namespace testing;
using model::decode_step;
using model::mixed_step;
using model::prefill_step;

constexpr int rounds = 300;
constexpr double tiny = 1e-12;  // sums in another order

struct Priced {
    StageTime stage;
    std::vector<OperatorTime> operators;
};

Priced price(const Lowered& lowered, const Device& device, const Step& step) {
    const Prepared prepared(lowered, device);
    Priced priced;
    priced.operators.resize(prepared.size());
    priced.stage = prepared.evaluate(step, priced.operators);
    return priced;
}

void expect_close(double a, double b, const char* what) {
    EXPECT_LE(std::fabs(a - b), tiny * std::max(std::fabs(a), std::fabs(b))) << what << ": " << a << " and " << b;
}

Step random_step(Random& random) {
    const double batch = random.whole(1, 64);
    switch (static_cast<int>(random.whole(0, 2))) {
        case 0:
            return prefill_step(batch, random.whole(1, 2000), random.whole(0, 500));
        case 1:
            return decode_step(batch, random.whole(1, 20000));
        default:
            return mixed_step(batch, random.whole(1, 20000), random.whole(1, 500), random.whole(0, 500),
                              random.maybe());
    }
}

TEST(Property, DecodeFlopsAreLinearInTheBatch) {
    Random random(1);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const double context = random.whole(1, 10000);
        const double batch = random.whole(2, 300);
        const double single = totals(model, decode_step(1, context)).flops;
        EXPECT_GT(single, 0.0);
        expect_close(totals(model, decode_step(batch, context)).flops, batch * single, "flops");
        expect_close(totals(model, decode_step(batch, context)).cache,
                     batch * totals(model, decode_step(1, context)).cache, "cache bytes");
    }
}

TEST(Property, WeightBytesOfDenseModelsDoNotDependOnTheStep) {
    Random random(2);
    const auto streamed = [](const Operator& op) { return op.kind != Kind::gather; };
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random, Mixers::any, Experts::never));
        const double once = totals_where(model, decode_step(1, 1), streamed).weights;
        EXPECT_GT(once, 0.0);
        EXPECT_EQ(totals_where(model, random_step(random), streamed).weights, once);
    }
}

TEST(Property, ExpertBytesGrowWithTheBatchButNeverPastAllExperts) {
    Random random(3);
    const auto streamed = [](const Operator& op) { return op.kind != Kind::gather; };
    for (int i = 0; i < rounds; ++i) {
        const Architecture architecture = random_architecture(random);
        const Lowered model = random_lowered(random, architecture);
        double before = 0.0;
        for (const double batch : {1.0, 2.0, 8.0, 64.0, 1000.0}) {
            const double now = totals_where(model, decode_step(batch, 10), streamed).weights;
            EXPECT_GE(now, before);
            before = now;
        }
        double stored = 0.0;
        for (const Operator& op : model.operators) {
            if (streamed(op)) stored += op.count * op.stored_bytes;
        }
        const double tied = architecture.tied ? model::count_parameters(model).total * 8.0 : 0.0;  // read, not stored
        EXPECT_LE(before, (stored + tied) * (1.0 + tiny));
        if (!architecture.tied) {
            expect_close(totals_where(model, prefill_step(1, 1e6), streamed).weights, stored, "all");
        }
    }
}

TEST(Property, GqaWithAllKvHeadsIsPlainMultiHeadAttention) {
    // MHA on paper: four projections hidden x heads x head_dim, 2 x heads x head_dim cached, 4 x heads x head_dim a
    // pair.
    Random random(4);
    for (int i = 0; i < rounds; ++i) {
        const double heads = random.whole(1, 64);
        const double dim = random.pick({32.0, 64.0, 128.0});
        const double hidden = 64.0 * random.whole(1, 64);
        const Lowered model =
            lowered(stack(hidden, 100,
                          layer(gqa({.heads = heads, .kv_heads = heads, .head_dim = dim, .reach = Reach::full()}),
                                dense({.width = 64}))));
        const double width = heads * dim;
        EXPECT_EQ(op_of(model, "layers.attention.qkv").parameters + op_of(model, "layers.attention.out").parameters,
                  4.0 * hidden * width);
        EXPECT_EQ(model::kv_bytes_per_token(model), 2.0 * width * 2.0);
        const double n = random.whole(1, 3000);
        EXPECT_EQ(one(model, "layers.attention.core", prefill_step(1, n)).flops, 4.0 * width * n * (n + 1.0) / 2.0);
        EXPECT_EQ(one(model, "layers.attention.core", decode_step(1, n)).cache, n * 4.0 * width);
    }
}

TEST(Property, LimitIsAtMostAttainableIsAtMostExpected) {
    Random random(5);
    const auto in_order = [](const Times& times) {
        EXPECT_LE(times.limit.value, times.attainable.value);
        EXPECT_LE(times.attainable.value, times.expected.value);
        EXPECT_GE(times.limit.value, 0.0);
    };
    for (int i = 0; i < rounds; ++i) {
        const Report report = predict(random_scenario(random));
        ASSERT_EQ(report.stages.size(), 3U);
        for (const StageReport& stage : report.stages) {
            in_order(stage.times);
            EXPECT_GT(stage.times.limit.value, 0.0);
            for (const Record& record : stage.records) in_order(record.times);
        }
        in_order(report.metrics.ttft);
        in_order(report.metrics.tpot);
        in_order(report.metrics.request);
    }
}

TEST(Property, TheStageIsNoFasterThanItsSlowestOperator) {
    Random random(6);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Priced priced = price(model, random_device(random), random_step(random));
        double sum = 0.0;
        for (const OperatorTime& op : priced.operators) {
            EXPECT_GE(priced.stage.limit, op.limit * (1.0 - tiny));
            sum += op.limit;
        }
        EXPECT_LE(priced.stage.limit, sum * (1.0 + tiny)) << "overlapping everything cannot be slower than nothing";
    }
}

TEST(Property, AFasterCeilingNeverSlowsAnything) {
    Random random(7);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Device slow = random_device(random);
        const Step step = random_step(random);
        const Priced before = price(model, slow, step);
        std::vector<Device> faster;
        for (std::size_t engine = 0; engine < engine_count; ++engine) {
            for (std::size_t type = 0; type < dtype_count; ++type) {
                if (!slow.rates[engine][type]) continue;
                faster.push_back(slow);
                faster.back().rates[engine][type]->value *= 1.5;
            }
        }
        for (std::size_t level = 0; level < level_count; ++level) {
            if (!slow.levels[level] || !slow.levels[level]->bandwidth) continue;
            // Memory faster than its cache would make a cache hit a loss: keep their order.
            if (level == index(Level::memory) && slow.bandwidth(Level::cache) != nullptr) continue;
            faster.push_back(slow);
            faster.back().levels[level]->bandwidth->value *= 1.5;
        }
        for (const auto& [path, figure] : slow.ceilings) {
            faster.push_back(slow);
            faster.back().ceilings[path].value *= 1.5;
        }
        for (const Device& fast : faster) {
            const Priced after = price(model, fast, step);
            EXPECT_LE(after.stage.limit, before.stage.limit);
            EXPECT_LE(after.stage.attainable, before.stage.attainable);
            for (std::size_t op = 0; op < after.operators.size(); ++op) {
                EXPECT_LE(after.operators[op].limit, before.operators[op].limit);
                EXPECT_LE(after.operators[op].attainable, before.operators[op].attainable);
            }
        }
    }
}

TEST(Property, ALargerCacheNeverSlowsAnOperator) {
    // Of an operator, not of a stage: a stage overlaps memory and cache, and moving more to one of them can lengthen
    // it.
    Random random(8);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        Device device = random_device(random);
        device.ceilings.clear();
        const Step step = random_step(random);
        set_capacity(device, Level::cache, 0.0);
        Priced before = price(model, device, step);
        for (const double capacity : {1e4, 1e6, 1e8, 1e12}) {
            set_capacity(device, Level::cache, capacity);
            const Priced now = price(model, device, step);
            for (std::size_t op = 0; op < now.operators.size(); ++op) {
                EXPECT_LE(now.operators[op].limit, before.operators[op].limit * (1.0 + tiny));
            }
            EXPECT_LE(now.stage.memory_bytes, before.stage.memory_bytes);
            before = now;
        }
    }
}

TEST(Property, MoreContextIsNeverFaster) {
    // Full and sliding attention. (Chunks start over and pools fill up in jumps: there more context can be faster.)
    Random random(9);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random, Mixers::attention));
        const Device device = random_device(random);
        const double batch = random.whole(1, 64);
        Priced before;
        for (const double context : {1.0, 2.0, 100.0, 513.0, 5000.0, 40000.0}) {
            const Priced now = price(model, device, decode_step(batch, context));
            EXPECT_GE(now.stage.limit, before.stage.limit * (1.0 - tiny));
            EXPECT_GE(now.stage.attainable, before.stage.attainable * (1.0 - tiny));
            EXPECT_GE(now.stage.flops, before.stage.flops);
            before = now;
        }
    }
}

TEST(Property, ChunkedPrefillHasTheFlopsOfOneShot) {
    // MLA absorbed: expanded, each chunk would expand the latents of those before it once more.
    Random random(10);
    for (int i = 0; i < rounds; ++i) {
        const Architecture architecture = random_architecture(random);
        const Lowered model = lowered(architecture, {.latent = model::LatentMode::absorbed});
        const double prompt = random.whole(2, 4000);
        const double chunk = random.whole(1, 600);
        double flops = 0.0;
        for (double past = 0.0; past < prompt; past += chunk) {
            const double fresh = std::min(chunk, prompt - past);
            const bool last = past + fresh == prompt;
            flops += totals(model, {{model::Phase::prefill, 1.0, fresh, past, last ? 1.0 : 0.0}}).flops;
        }
        expect_close(flops, totals(model, prefill_step(1, prompt)).flops, "flops");
    }
}

TEST(Property, AMixedStepHasTheFlopsOfItsParts) {
    Random random(11);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Step step = mixed_step(random.whole(1, 64), random.whole(1, 5000), random.whole(1, 500),
                                     random.whole(0, 3000), random.maybe());
        expect_close(totals(model, step).flops, totals(model, {step[0]}).flops + totals(model, {step[1]}).flops,
                     "flops");
        expect_close(totals(model, step).cache, totals(model, {step[0]}).cache + totals(model, {step[1]}).cache,
                     "cache bytes");
        EXPECT_LE(totals(model, step).weights,
                  (totals(model, {step[0]}).weights + totals(model, {step[1]}).weights) * (1.0 + tiny))
            << "weights are shared";
    }
}

TEST(Property, SplittingABatchIntoGroupsChangesNothing) {
    Random random(12);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Device device = random_device(random);
        const double context = random.whole(1, 5000);
        const Step together = decode_step(12, context);
        const Step apart = {decode_step(5, context)[0], decode_step(7, context)[0]};
        expect_close(price(model, device, together).stage.limit, price(model, device, apart).stage.limit, "limit");
        expect_close(totals(model, together).bytes(), totals(model, apart).bytes(), "bytes");
    }
}

TEST(Property, NothingIsNegativeOrNotANumber) {
    Random random(13);
    const auto sane = [](double value) {
        EXPECT_FALSE(std::isnan(value));
        EXPECT_GE(value, 0.0);
    };
    for (int i = 0; i < rounds; ++i) {
        Scenario scenario = random_scenario(random);
        if (i % 10 == 0) scenario.device = Device{};  // a device of which nothing is known
        const Report report = predict(scenario);
        for (const StageReport& stage : report.stages) {
            for (const double value :
                 {stage.totals.flops, stage.totals.memory_bytes, stage.totals.cache_bytes, stage.totals.weight_bytes,
                  stage.totals.kv_bytes, stage.totals.intensity, stage.totals.limit, stage.totals.attainable,
                  stage.ridge.value, stage.tokens, stage.tokens_per_second(stage.times.expected)}) {
                sane(value);
            }
            for (const OperatorTime& op : stage.details) {
                for (const double value : {op.flops, op.memory_bytes, op.cache_bytes, op.weight_bytes, op.kv_bytes,
                                           op.intensity, op.limit, op.attainable}) {
                    sane(value);
                }
            }
            for (const GroupShare& group : stage.groups) {
                sane(group.share);
                EXPECT_LE(group.share, 1.0 + tiny);
            }
        }
        sane(report.fit.total().value);
        sane(report.fit.largest_batch.value_or(0.0));
        sane(report.fit.longest_context.value_or(0.0));
        sane(report.metrics.tpot.expected.value);
        sane(report.metrics.joules_per_token.value_or(0.0));
    }
}

TEST(Property, EvaluatingTwiceGivesTheSameBits) {
    Random random(14);
    for (int i = 0; i < rounds; ++i) {
        const Lowered model = random_lowered(random, random_architecture(random));
        const Device device = random_device(random);
        const Step step = random_step(random);
        const Prepared prepared(model, device);
        std::vector<OperatorTime> first(prepared.size());
        std::vector<OperatorTime> second(prepared.size());
        const StageTime a = prepared.evaluate(step, first);
        prepared.evaluate(random_step(random), second);  // nothing may be left over from another step
        const StageTime b = prepared.evaluate(step, second);
        const auto same = [](double x, double y) { return std::memcmp(&x, &y, sizeof x) == 0; };
        EXPECT_TRUE(same(a.limit, b.limit) && same(a.attainable, b.attainable) && same(a.flops, b.flops) &&
                    same(a.memory_bytes, b.memory_bytes) && same(a.intensity, b.intensity));
        EXPECT_EQ(a.bound, b.bound);
        for (std::size_t op = 0; op < first.size(); ++op) {
            EXPECT_TRUE(same(first[op].limit, second[op].limit) && same(first[op].flops, second[op].flops) &&
                        same(first[op].memory_bytes, second[op].memory_bytes) &&
                        same(first[op].cache_bytes, second[op].cache_bytes));
            EXPECT_EQ(first[op].bound, second[op].bound);
        }
    }
}

TEST(Property, RecordsAddUpToTheirStage) {
    Random random(15);
    for (int i = 0; i < rounds; ++i) {
        const Report report = predict(random_scenario(random));
        for (const StageReport& stage : report.stages) {
            ASSERT_EQ(stage.records.size(), stage.details.size());
            ASSERT_EQ(stage.records.size(), stage.operators.size());
            double flops = 0.0, memory = 0.0, cache = 0.0, attainable = 0.0, weights = 0.0, kv = 0.0, shares = 0.0;
            for (std::size_t r = 0; r < stage.records.size(); ++r) {
                const Record& record = stage.records[r];
                flops += record.work.flops.value;
                memory += record.work.at(Level::memory).value;
                cache += record.work.at(Level::cache).value;
                attainable += record.times.attainable.value;
                weights += stage.details[r].weight_bytes;
                kv += stage.details[r].kv_bytes;
            }
            for (const GroupShare& group : stage.groups) shares += group.share;
            expect_close(flops, stage.totals.flops, "flops");
            expect_close(memory, stage.totals.memory_bytes, "memory");
            expect_close(cache, stage.totals.cache_bytes, "cache");
            expect_close(attainable, stage.totals.attainable, "attainable");
            expect_close(weights, stage.totals.weight_bytes, "weights");
            expect_close(kv, stage.totals.kv_bytes, "kv");
            expect_close(shares, 1.0, "shares");
            EXPECT_LE(weights + kv, memory * (1.0 + tiny)) << "weights and caches always come from memory";
        }
    }
}

TEST(Property, NothingUsesMoreThanTheWholeMachine) {
    Random random(17);
    const auto within = [](const Use& use) {
        EXPECT_GE(use.of_peak, 0.0);
        EXPECT_LE(use.of_peak, 1.0 + tiny);
        EXPECT_GE(use.of_bandwidth, 0.0);
        EXPECT_LE(use.of_bandwidth, 1.0 + tiny);
    };
    for (int i = 0; i < rounds; ++i) {
        for (const StageReport& stage : predict(random_scenario(random)).stages) {
            within(stage.use);
            ASSERT_EQ(stage.uses.size(), stage.records.size());
            for (const Use& use : stage.uses) within(use);
            for (const GroupShare& group : stage.groups) within(group.use);
        }
    }
}

TEST(Property, RecordsAreTimedByTheRoof) {
    // Two ways to the same number: the prepared model's loop and core's time_under on each record.
    Random random(16);
    for (int i = 0; i < rounds; ++i) {
        const Scenario scenario = random_scenario(random);
        const Roofs roofs = limit_roofs(scenario.device);
        for (const StageReport& stage : predict(scenario).stages) {
            for (const Record& record : stage.records) {
                const RoofTime expected = time_under(record.work, roofs);
                EXPECT_EQ(record.times.limit.value, expected.time.value) << record.name;
            }
        }
    }
}

}  // namespace
}  // namespace roofline::predict
