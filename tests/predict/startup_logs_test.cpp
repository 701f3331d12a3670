// What engines printed when they started, against the same figures worked out here. data/memory/startup_logs.csv holds
// the public logs; each row is one start of vLLM.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/assess/csv.hpp"
#include "roofline/io/catalog.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/predict/memory.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::predict {
namespace {

constexpr double gib = 1073741824.0;

/// A start of an engine: what it was asked, what it printed, and what this program says.
struct Start {
    std::string what;  // for messages
    EngineRules rules;
    bool vision = false;         // weights and the trial run hold an encoder that is not counted here
    bool whole = false;          // one device runs all of it
    std::optional<double> pool;  // printed, GiB
    std::optional<double> weights;
    std::optional<double> activations;
    std::optional<double> blocks;
    std::optional<double> tokens;
    std::optional<double> concurrency;
    EngineMemory ours;
    std::optional<EngineMemory> last_stage;  // of a pipeline, where logits are; `ours` is the first
};

std::vector<Start> starts() {
    std::ifstream file(ROOFLINE_SOURCE_DIR "/data/memory/startup_logs.csv");
    std::stringstream text;
    text << file.rdbuf();
    const auto table = assess::CsvTable::parse(text.str(), "startup_logs.csv");
    EXPECT_TRUE(table.has_value()) << (table ? "" : table.error().text);
    std::vector<Start> result;
    for (const auto& row : table->rows()) {
        const auto cell = [&](std::string_view column) { return std::string(table->text(row, column)); };
        Start start;
        start.what = cell("model") + " tp" + cell("tp") + " pp" + cell("pp") + " " + cell("version") + " line " +
                     std::to_string(row.line);
        const auto rules = io::builtin_engine(cell("engine"));
        EXPECT_TRUE(rules.has_value()) << start.what;
        const auto model = io::builtin_model(cell("model"));
        EXPECT_TRUE(model.has_value()) << start.what;
        const auto device = io::builtin_device(cell("device").empty() ? "h100-sxm" : cell("device"));
        EXPECT_TRUE(device.has_value()) << start.what;
        if (!rules || !model || !device) continue;
        start.rules = *rules;
        start.vision = cell("vision") == "yes";
        start.pool = table->number(row, "pool_gib");
        start.weights = table->number(row, "weights_gib");
        start.activations = table->number(row, "activations_gib");
        start.blocks = table->number(row, "blocks");
        start.tokens = table->number(row, "tokens");
        start.concurrency = table->number(row, "concurrency");
        const double ranks = *table->number(row, "tp");
        Setup setup;
        setup.architecture = std::make_shared<const model::Architecture>(model->architecture);
        setup.checkpoint = std::make_shared<const model::TypePlan>(model->types);
        if (cell("weight_dtype") == "fp8") setup.types.weights = find_format("fp8");
        if (cell("kv_dtype") == "fp8") setup.types.kv = find_format("fp8");
        setup.deployment().tensor = ranks;
        setup.deployment().pipeline = *table->number(row, "pp");
        setup.device = *device;
        const auto scenario = realise(setup);
        EXPECT_TRUE(scenario.has_value()) << start.what << (scenario ? "" : scenario.error().text);
        if (!scenario) continue;
        // Logs of a pipeline are those of its first stage.
        const model::Lowered& lowered = scenario->stages.empty() ? scenario->lowered : scenario->stages.front().lowered;
        MemoryOptions options;
        options.rules = *rules;
        options.utilisation = table->number(row, "utilisation");
        options.longest = table->number(row, "max_model_len");
        options.step_tokens = table->number(row, "max_num_batched_tokens");
        options.sequences = table->number(row, "max_num_seqs");
        options.ranks = ranks;
        const auto memory = engine_memory(lowered, *device, Workload{}, model->architecture.longest_context, options);
        EXPECT_TRUE(memory.has_value()) << start.what;
        if (!memory) continue;
        start.ours = *memory;
        if (!scenario->stages.empty()) {
            start.last_stage = engine_memory(scenario->stages.back().lowered, *device, Workload{},
                                             model->architecture.longest_context, options);
        }
        result.push_back(std::move(start));
    }
    return result;
}

/// Printed figures have two decimals: half a hundredth of a GiB is unknown, and a block may be cut off at the end.
double unknown(double pool_gib, double block_bytes) {
    return 0.005 / pool_gib + 2.0 * block_bytes / (pool_gib * gib);
}

TEST(StartupLogs, HoldEveryKindOfCacheThatMatters) {
    const auto all = starts();
    ASSERT_GE(all.size(), 50U) << "rows were lost";
    const auto with = [&](PageTable::Keeps keeps) {
        return std::any_of(all.begin(), all.end(), [&](const Start& start) {
            return start.tokens && std::any_of(start.ours.cache.pools.front().tables.begin(),
                                               start.ours.cache.pools.front().tables.end(),
                                               [&](const PageTable& table) { return table.keeps == keeps; });
        });
    };
    EXPECT_TRUE(with(PageTable::Keeps::everything));
    EXPECT_TRUE(with(PageTable::Keeps::window));
    EXPECT_TRUE(with(PageTable::Keeps::chunk));
    EXPECT_TRUE(with(PageTable::Keeps::state));
}

TEST(StartupLogs, TheTokensOfAKnownPoolAreThoseTheEnginePrinted) {
    int compared = 0;
    for (const Start& start : starts()) {
        if (!start.pool || !start.tokens || start.last_stage) continue;
        // Four ranks had pools of different sizes and the smallest counted; the log gives that of another.
        const double known = start.what.starts_with("qwen3-235b") ? 0.012 : 0.0;
        const EngineMemory memory = with_pool(start.ours, start.rules, Bytes(*start.pool * gib), 1.0, 1024.0);
        const double tolerance =
            known + unknown(*start.pool, memory.cache.pools.front().block_bytes * memory.cache.tables());
        EXPECT_NEAR(memory.pool_tokens / *start.tokens, 1.0, tolerance) << start.what;
        if (start.blocks) {
            EXPECT_NEAR(memory.pool_blocks / *start.blocks, 1.0, tolerance) << start.what;
        }
        if (start.concurrency) {
            EXPECT_NEAR(memory.concurrency / *start.concurrency, 1.0, tolerance + 0.005 / *start.concurrency)
                << start.what;
        }
        ++compared;
    }
    EXPECT_GE(compared, 40);
}

TEST(StartupLogs, TheStageWithTheSamplerHasTheSmallestPoolOfAPipelineAndDecides) {
    int compared = 0;
    for (const Start& start : starts()) {
        if (!start.last_stage) continue;
        EXPECT_LT(start.last_stage->pool, start.ours.pool) << start.what;
        EXPECT_NEAR(start.last_stage->pool_tokens / *start.tokens, 1.0, 0.005) << start.what;
        ++compared;
    }
    EXPECT_EQ(compared, 2);
}

TEST(StartupLogs, TheTrialRunIsPredictedWithinAQuarterOfAGib) {
    double sum = 0.0;
    int compared = 0;
    for (const Start& start : starts()) {
        if (!start.activations || start.vision) continue;
        const double error = start.ours.activations.value / gib - *start.activations;
        // Mixtral, on two devices, needs 0.27 GiB less than its experts' workspace as counted here. Stages of a
        // pipeline hold what they hand over twice more.
        EXPECT_NEAR(error, 0.0,
                    start.what.starts_with("mixtral") ? 0.28
                    : start.last_stage                ? 0.18
                                                      : 0.07)
            << start.what;
        sum += std::fabs(error);
        ++compared;
    }
    ASSERT_GE(compared, 38);
    EXPECT_LT(sum / compared, 0.03);
}

TEST(StartupLogs, ThePoolIsPredictedWithinAHalfPercentOnTheMean) {
    double sum = 0.0;
    int compared = 0;
    for (const Start& start : starts()) {
        if (!start.pool || !start.weights || start.vision) continue;
        const double error = start.ours.pool.value / gib - *start.pool;
        // gpt-oss: kernels fill experts up in ways that differ; the 3090's log is of an engine two generations older.
        const bool padded = start.what.starts_with("gpt-oss");
        EXPECT_NEAR(error, 0.0, padded ? 0.35 : 0.30) << start.what;
        if (*start.pool < 5.0) continue;  // a small rest of large numbers: a percentage of it says little
        sum += std::fabs(error / *start.pool);
        ++compared;
    }
    ASSERT_GE(compared, 36);
    EXPECT_LT(sum / compared, 0.005);
}

TEST(StartupLogs, TheLongestContextOfASmallPoolIsTheOneTheEngineNames) {
    // Qwen3-VL-8B keeps 36 x 8 x 128 x 2 x 2 = 147,456 B a token. The engine says: 262,144 tokens need 36.0 GiB, there
    // are 6.94 GiB, and the longest context is 50,512. 6.94 GiB / (16 x 147,456) = 3,158.5 blocks, one is never handed
    // out: 3,157 x 16 = 50,512.
    for (const Start& start : starts()) {
        if (!start.what.starts_with("qwen3-vl-8b")) continue;
        EXPECT_EQ(start.ours.cache.bytes(262144.0), 36.0 * gib);
        const EngineMemory memory = with_pool(start.ours, start.rules, Bytes(6.94 * gib), 1.0, 262144.0);
        EXPECT_EQ(memory.longest_context, 50512.0);
        EXPECT_FALSE(memory.fits);
        EXPECT_NEAR(memory.shortfall.value, (36.0 - 6.94) * gib, 3.0 * 16.0 * 147456.0);
        return;
    }
    FAIL() << "the row is gone";
}

TEST(StartupLogs, APoolOfSglangIsPredictedWithinThreePercent) {
    // github.com/vllm-project/vllm/issues/21348: Qwen3-235B-A22B-FP8 on four H100 with --mem-fraction-static 0.93; the
    // log says 367,404 tokens in 8.23 + 8.23 GiB. None of the rules was read off it. A token takes 94 layers x 1 KV
    // head of 128 x 2 x 2 B = 48,128 B on each device: 367,404 x 48,128 B = 16.47 GiB.
    const auto model = io::builtin_model("qwen3-235b-a22b-fp8");
    ASSERT_TRUE(model.has_value());
    predict::Setup setup;
    setup.architecture = std::make_shared<const model::Architecture>(model->architecture);
    setup.checkpoint = std::make_shared<const model::TypePlan>(model->types);
    setup.deployment().tensor = 4.0;
    setup.device = *io::builtin_device("h100-sxm");
    const auto scenario = realise(setup);
    ASSERT_TRUE(scenario.has_value());
    MemoryOptions options;
    options.rules = *io::builtin_engine("sglang");
    options.utilisation = 0.93;
    options.ranks = 4.0;
    const auto memory = engine_memory(scenario->lowered, setup.device, Workload{}, 40960.0, options);
    EXPECT_EQ(memory->cache.bytes(1.0), 48128.0);
    EXPECT_NEAR(memory->pool_tokens / 367404.0, 1.0, 0.03);
    EXPECT_EQ(with_pool(*memory, options.rules, Bytes(367404.0 * 48128.0), 1.0, 1024.0).pool_tokens, 367404.0);
}

}  // namespace
}  // namespace roofline::predict
