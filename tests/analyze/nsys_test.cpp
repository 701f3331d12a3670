// data/nsys_small.sqlite: the tables of an export, filled by hand with Python's sqlite3: two steps of four kernels of
// 4 us, 10 us apart, named "decode 0" and "decode"; one copy of 4 kB on a stream of its own; an H200.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"

namespace roofline::analyze {
namespace {

TEST(Nsys, ReadsKernelsCopiesAndRanges) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/nsys_small.sqlite");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    if (!analysis && analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(analysis->format, "Nsight Systems export");
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 32'000);
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    ASSERT_EQ(analysis->streams.size(), 2U);
    EXPECT_EQ(analysis->steps.size(), 2U);
    EXPECT_EQ(analysis->explained_time.value, 0.0);  // no shapes
    EXPECT_FALSE(analysis->account.notes.empty());
    // Stream 7: idle is all but the kernels, from the copy's begin to the last kernel's end.
    const StreamTime& stream = analysis->streams[0];
    EXPECT_EQ(std::llround(stream.idle.value * 1e9), std::llround(stream.wall.value * 1e9) - 32'000);
}

// data/nsys_old.sqlite: an export without textId and graphNodeId, calls of the driver in a table of their own, a mark
// with an end of zero, and a graph that was traced whole: one kernel of 3 us, then the graph's 10 us.
TEST(Nsys, ReadsOldExportsAndGraphsThatWereTracedWhole) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/nsys_old.sqlite");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    if (!analysis && analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 13'000);
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    ASSERT_EQ(analysis->steps.size(), 2U);
    EXPECT_EQ(analysis->steps[1].name, "decode_1");
    EXPECT_EQ(analysis->steps[1].graph_kernels, 1.0);
    bool said = false;
    for (const std::string& note : analysis->account.notes)
        said = said || note.find("--cuda-graph-trace=node") != std::string::npos;
    EXPECT_TRUE(said);
}

// data/nsys_columns.sqlite: kernels without stream and full name but with a column nobody knows, copies without a kind,
// ranges without textId, a mark whose text is a number; two processes that number their calls alike. Kernels of 4 and
// 2 us, and of 5 us in a graph of the second process.
TEST(Nsys, ReadsExportsWithOtherColumns) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/nsys_columns.sqlite");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    if (!analysis && analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 11'000);
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    ASSERT_EQ(analysis->steps.size(), 2U);
    EXPECT_EQ(analysis->steps[0].name, "decode 0");
    EXPECT_EQ(analysis->steps[0].kernels, 2.0);
    EXPECT_EQ(analysis->steps[0].graph_kernels, 1.0);
    EXPECT_EQ(analysis->steps[1].graph_kernels, 0.0);
    ASSERT_FALSE(analysis->unattributed.empty());
    EXPECT_EQ(analysis->unattributed[0].name, "gemm_kernel");
    EXPECT_EQ(analysis->unattributed[0].count, 2.0);
}

// data/nsys_llama_graphs.sqlite.gz: a real export (data/README.md). What stands here was asked of the file with SQL:
// SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL is 6,757,312; its ranges are a prefill, three decodes
// launched kernel by kernel, of which the first took 583 ms, and four replays of a graph; the model has four layers.
TEST(Nsys, ReadsARealExport) {
    auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/nsys_llama_graphs.sqlite.gz");
    ASSERT_TRUE(input) << input.error().text;
    const auto analysis = analyze(*input, {});
    if (!analysis && analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 6'757'312);
    EXPECT_EQ(analysis->account.device.name, "h200-sxm");
    EXPECT_EQ(analysis->layers, 4.0);
    std::vector<std::string> names;
    for (const StepTime& step : analysis->steps) {
        names.push_back(step.name);
        EXPECT_EQ(step.graph_kernels, step.name.starts_with("graph") ? step.kernels : 0.0) << step.name;
        EXPECT_EQ(step.layers, 4.0) << step.name;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"prefill", "decode 0", "decode 1", "decode 2", "graph decode 0",
                                               "graph decode 1", "graph decode 2", "graph decode 3"}));

    // The first decode is no part of an average, but of the whole: stages add up to all the time there was. Those that
    // replay a graph are a stage of their own.
    ASSERT_EQ(analysis->account.stages.size(), 4U);
    EXPECT_EQ(analysis->account.stages[1].name, "decode");
    EXPECT_EQ(analysis->account.stages[1].repetitions, 2.0);
    EXPECT_LT(analysis->account.stages[1].times.measured->value, 0.01);
    EXPECT_EQ(analysis->account.stages[2].name, "decode (graph)");
    EXPECT_EQ(analysis->account.stages[2].repetitions, 4.0);
    EXPECT_LT(analysis->account.stages[2].times.measured->value, 0.001);
    double wall = 0.0;
    for (const AccountStage& stage : analysis->account.stages) wall += stage.repetitions * stage.times.measured->value;
    EXPECT_NEAR(wall, analysis->whole.wall.value, 1e-9);
    for (const StreamTime& stream : analysis->streams)
        EXPECT_NEAR((stream.attributed + stream.unattributed + stream.idle).value, stream.wall.value, 1e-9);
    for (const Diagnosis& found : analysis->diagnoses)
        EXPECT_EQ(found.words.find("waits for the host"), std::string::npos) << found.words;
    const auto says = [&](const char* words) {
        return std::any_of(analysis->account.notes.begin(), analysis->account.notes.end(),
                           [&](const std::string& note) { return note.find(words) != std::string::npos; });
    };
    EXPECT_TRUE(says("decode 0 took 583.2 ms"));
    EXPECT_TRUE(says("holds no shapes"));
    EXPECT_FALSE(says("most kernels ran inside"));  // 900 of 2,413 did
}

/// The first `share` of a database.
Result<Analysis> cut_short(const std::string& file, double share) {
    auto whole = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/" + file);
    EXPECT_TRUE(whole) << (whole ? "" : whole.error().text);
    auto bytes = whole->rest();
    EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().text);
    bytes->resize(static_cast<std::size_t>(static_cast<double>(bytes->size()) * share));
    Input input = Input::from_memory("cut", std::move(*bytes));
    return analyze(input, {});
}

// A copy that broke off, a disk that was full: the header still says how long the file was.
TEST(Nsys, ADatabaseThatIsCutOffSaysSoWithWhatIsLeftOfIt) {
    const auto most = cut_short("nsys_llama_graphs.sqlite.gz", 0.9);
    if (!most && most.error().unavailable) GTEST_SKIP() << most.error().text;
    ASSERT_TRUE(most) << most.error().text;
    EXPECT_TRUE(most->partial);
    EXPECT_GT(most->kernel_time.value, 0.0);
    EXPECT_LE(std::llround(most->kernel_time.value * 1e9), 6'757'312);
    EXPECT_TRUE(std::any_of(most->account.notes.begin(), most->account.notes.end(), [](const std::string& note) {
        return note.starts_with("the database is cut off at byte ");
    }));
    for (const double share : {0.5, 0.2, 0.02}) {
        const auto less = cut_short("nsys_llama_graphs.sqlite.gz", share);
        if (less) {
            EXPECT_TRUE(less->partial) << share;
            continue;
        }
        EXPECT_TRUE(less.error().text.starts_with("cut: cut off at byte ")) << less.error().text;
        EXPECT_NE(less.error().text.find(", expected "), std::string::npos) << less.error().text;
        EXPECT_EQ(less.error().text.find('\n'), std::string::npos) << less.error().text;
    }
}

TEST(Nsys, ADatabaseOfSomethingElseIsOneLine) {
    Input input = Input::from_memory("packed", std::string("SQLite format 3\0 and more", 25));
    const auto analysis = analyze(input, {});
    ASSERT_FALSE(analysis);
    if (analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    EXPECT_EQ(analysis.error().text, "packed: cut off at byte 25, expected at least 100: no kernel can be read");
}

// A database that comes through a pipe or out of a compressed file is the same database.
TEST(Nsys, NeedsNoFileOfItsOwn) {
    auto file = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/nsys_small.sqlite");
    ASSERT_TRUE(file) << file.error().text;
    auto bytes = file->rest();
    ASSERT_TRUE(bytes) << bytes.error().text;
    Input input = Input::from_memory("standard input", std::move(*bytes));
    const auto analysis = analyze(input, {});
    if (!analysis && analysis.error().unavailable) GTEST_SKIP() << analysis.error().text;
    ASSERT_TRUE(analysis) << analysis.error().text;
    EXPECT_EQ(std::llround(analysis->kernel_time.value * 1e9), 32'000);
}

}  // namespace
}  // namespace roofline::analyze
