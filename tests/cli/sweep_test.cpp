// `sweep` as a user runs it: which rows, what they say, and that they do not depend on how they came about.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Arguments = std::vector<std::string>;
using Row = std::map<std::string, std::string>;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            cells.emplace_back();
        } else {
            cells.back() += c;
        }
    }
    return cells;
}

std::vector<Row> rows_of(const std::string& csv) {
    const auto lines = lines_of(csv);
    std::vector<Row> rows;
    if (lines.empty()) return rows;
    const auto names = cells_of(lines.front());
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto cells = cells_of(lines[i]);
        EXPECT_EQ(cells.size(), names.size()) << lines[i];
        if (cells.size() != names.size()) continue;
        Row row;
        for (std::size_t column = 0; column < names.size(); ++column) row[names[column]] = cells[column];
        rows.push_back(std::move(row));
    }
    return rows;
}

Arguments sweep(Arguments rest) {
    rest.insert(rest.begin(), "sweep");
    return rest;
}

std::string output_of(const Arguments& arguments) {
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 0) << typed(arguments) << ": " << answer.err;
    EXPECT_EQ(answer.err, "") << typed(arguments);  // progress is for terminals
    return answer.out;
}

std::vector<std::string> column(const std::vector<Row>& rows, const std::string& name) {
    std::vector<std::string> values;
    for (const Row& row : rows) values.push_back(row.count(name) > 0 ? row.at(name) : "no such column");
    return values;
}

/// Six digits are written.
void expect_close(const std::string& cell, double value) {
    EXPECT_NEAR(std::strtod(cell.c_str(), nullptr) / value, 1.0, 5e-6) << cell << " against " << value;
}

// 3 x 7 x 5 rows of a model that is quick to price.
const Arguments small = sweep({"gpt2", "h100-sxm,rtx-4090,m2-ultra", "-b", "1-64*2", "-c", "128-640+128"});

Arguments with(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

TEST(Sweep, TheLastAxisVariesFastestAndWorkComesAfterWhatItIsDoneOn) {
    const auto rows = rows_of(output_of(sweep({"gpt2", "h100-sxm,l40s", "--context", "256,512", "--batch", "2,1",
                                               "--dtype", "fp16,bf16", "--stage", "decode", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 16U);
    EXPECT_THAT(column({rows.begin(), rows.begin() + 4}, "context"), ElementsAre("256", "512", "256", "512"));
    EXPECT_THAT(column({rows.begin(), rows.begin() + 5}, "batch"), ElementsAre("2", "2", "1", "1", "2"));
    EXPECT_THAT(column({rows.begin() + 3, rows.begin() + 5}, "dtype"), ElementsAre("fp16", "bf16"));
    EXPECT_THAT(column({rows.begin() + 7, rows.begin() + 9}, "device"), ElementsAre("h100-sxm", "l40s"));
}

TEST(Sweep, EveryRowSaysWhatPredictSays) {
    const auto rows = rows_of(output_of(
        sweep({"llama-3.1-8b,deepseek-v3", "h200-sxm", "--tp", "1,8", "--batch", "3,64", "--prompt", "100,2000",
               "--context", "prompt,5000", "--generate", "40", "--metrics", "all", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 32U);
    for (const Row& row : rows) {
        const Arguments arguments = {
            "predict",         row.at("model"), row.at("device"),   "--tp",           row.at("tp"),
            "--batch",         row.at("batch"), "--prompt",         row.at("prompt"), "--context",
            row.at("context"), "--generate",    row.at("generate"), "--format",       "json"};
        SCOPED_TRACE(typed(arguments));
        const Json report = parsed(run(arguments).out);
        ASSERT_TRUE(report.is_object());
        EXPECT_EQ(row.at("fits"), report["fit"]["fits"].get<bool>() ? "true" : "false");
        ASSERT_TRUE(report["fit"]["max_batch"].is_number());
        EXPECT_EQ(std::stod(row.at("max_batch")), report["fit"]["max_batch"].get<double>());
        ASSERT_EQ(report["stages"].size(), 2U);
        for (const Json& stage : report["stages"]) {
            const auto name = stage["stage"].get<std::string>();
            for (const char* which : {"limit", "attainable", "expected", "expected_low", "expected_high"})
                expect_close(row.at(name + "_" + which + "_s"), stage["time_s"][which].get<double>());
            expect_close(row.at(name + "_tokens_per_s"), stage["tokens_per_s"]["expected"].get<double>());
            expect_close(row.at(name + "_tokens_per_s_per_device"),
                         stage["tokens_per_s"]["expected"].get<double>() / std::stod(row.at("tp")));
            EXPECT_EQ(row.at(name + "_bound"), stage["bound"].get<std::string>());
            expect_close(row.at(name + "_flops"), stage["flops"].get<double>());
        }
        for (const char* metric : {"ttft", "tpot", "request"}) {
            for (const char* which : {"limit", "attainable", "expected"})
                expect_close(row.at(std::string(metric) + "_" + which + "_s"),
                             report["metrics"][std::string(metric) + "_s"][which].get<double>());
        }
        EXPECT_EQ(row.at("mixed_limit_s"), "");
        EXPECT_EQ(row.at("problem"), "");
        EXPECT_EQ(row.at("devices_used"), row.at("tp"));
    }
}

TEST(Sweep, ChunksHaveMixedStepsAsPredictShowsThem) {
    const auto rows = rows_of(output_of(sweep({"llama-3.1-8b", "h200-sxm", "--chunk", "0,256", "--batch", "4",
                                               "--metrics", "prefill,mixed,ttft", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_NE(rows[0].at("prefill_expected_s"), "");
    EXPECT_EQ(rows[0].at("mixed_expected_s"), "");
    EXPECT_EQ(rows[1].at("prefill_expected_s"), "");
    const Json report =
        parsed(run({"predict", "llama-3.1-8b", "h200-sxm", "--chunk", "256", "--batch", "4", "--format", "json"}).out);
    expect_close(rows[1].at("mixed_expected_s"), report["stages"][0]["time_s"]["expected"].get<double>());
    expect_close(rows[1].at("mixed_tokens_per_s"), report["stages"][0]["tokens_per_s"]["expected"].get<double>());
    expect_close(rows[1].at("ttft_expected_s"), report["metrics"]["ttft_s"]["expected"].get<double>());
}

TEST(Sweep, TheThreeTimesAreInOrderInEveryRow) {
    const auto rows = rows_of(output_of(with(small, {"--format", "csv"})));
    ASSERT_EQ(rows.size(), 105U);
    for (const Row& row : rows) {
        for (const char* stage : {"prefill", "decode"}) {
            const auto time = [&](const char* which) {
                return std::stod(row.at(std::string(stage) + "_" + which + "_s"));
            };
            EXPECT_GT(time("limit"), 0.0);
            EXPECT_LE(time("limit"), time("attainable"));
            EXPECT_LE(time("attainable"), time("expected"));
        }
    }
}

TEST(Sweep, APointThatHasNoAnswerKeepsItsRowAndSaysWhy) {
    // 64 heads go into 1, 2, 4 and 8 parts, not into 3; 70.6e9 parameters in bf16 do not go into 80 GB.
    const auto rows = rows_of(output_of(sweep({"llama-3.1-70b", "h100-sxm", "--tp", "1,3,8", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_THAT(column(rows, "fits"), ElementsAre("false", "", "true"));
    EXPECT_EQ(rows[0].at("max_batch"), "0");
    EXPECT_THAT(rows[1].at("problem"), HasSubstr("64 attention heads cannot be shared evenly by 3 devices"));
    EXPECT_EQ(rows[1].at("decode_expected_s"), "");
    EXPECT_EQ(rows[2].at("problem"), "");
}

TEST(Sweep, AWordThatMeansNothingIsBadInputBeforeAnythingIsWritten) {
    const TemporaryFolder folder;
    const auto refused = [&](const Arguments& rest, const std::string& why) {
        const Answer answer = run(with(sweep(rest), {"-o", folder.path("x.csv")}));
        SCOPED_TRACE(typed(rest));
        EXPECT_EQ(answer.exit_code, 2);
        EXPECT_THAT(answer.err, HasSubstr(why));
        EXPECT_EQ(lines_of(answer.err).size(), 1U) << answer.err;
        EXPECT_TRUE(folder.is_empty());
    };
    refused({"gpt2", "h100-sxm,h101"}, "no device is called \"h101\"");
    refused({"gpt2,gpt22", "h100-sxm"}, "gpt22");
    refused({"gpt2"}, "no DEVICE was named");
    refused({"gpt2", "h100-sxm", "--dtype", "bf16,bf17"}, "--dtype: found \"bf17\"");
    refused({"gpt2", "h100-sxm", "--tp", "1,x"}, "--tp: found \"x\"");
    refused({"gpt2", "h100-sxm", "--tp", "0-2"}, "--tp: found \"0\"");
    refused({"gpt2", "h100-sxm", "--batch", "0-2"}, "--batch: found \"0\"");
    refused({"gpt2", "h100-sxm", "--batch", "1-64*1"}, "--batch: found \"1-64*1\"");
    refused({"gpt2", "h100-sxm", "--attention", "flash,flush"}, "flush");
    refused({"gpt2", "h100-sxm", "--profile", "engine,motor"}, "motor");
    refused({"gpt2", "h100-sxm", "--set", "memory.bandwidth=1x,fast"}, "memory.bandwidth=fast");
    refused({"gpt2", "h100-sxm", "--metrics", "decode,speed"}, "--metrics: found \"speed\"");
    refused({"gpt2", "h100-sxm", "--shard", "3/2"}, "--shard: found \"3/2\"");
    refused({"gpt2", "h100-sxm", "--shard", "0/2"}, "--shard: found \"0/2\"");
    refused({"gpt2", "h100-sxm", "--threads", "0"}, "--threads: found \"0\"");
    refused({"gpt2", "h100-sxm", "-b", "1-1000000", "-c", "1-1000000", "-p", "1-1000"}, "million million");
}

TEST(Sweep, ATableSaysOnceWhatIsTheSameAndRefusesToBeEndless) {
    const std::string table = output_of(sweep({"gpt2", "h100-sxm", "--batch", "1,2"}));
    const auto lines = lines_of(table);
    ASSERT_EQ(lines.size(), 6U) << table;
    EXPECT_EQ(lines[0], "model gpt2, device h100-sxm, prompt 1024, context 1024");
    EXPECT_THAT(lines[2], HasSubstr("batch  fits  max batch"));
    EXPECT_THAT(lines[4], HasSubstr(" ms"));
    EXPECT_THAT(run(sweep({"gpt2", "h100-sxm", "--batch", "1-1001"})).err,
                HasSubstr("1,001 rows are too many for a table"));
}

TEST(Sweep, FiguresOfTheDeviceAreAxesToo) {
    // A limit of decoding that memory sets halves with twice the bandwidth.
    const auto rows = rows_of(output_of(sweep(
        {"llama-3.1-8b", "h100-sxm", "--set", "memory.bandwidth=1x,2x", "--stage", "decode", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_THAT(column(rows, "memory.bandwidth"), ElementsAre("1x", "2x"));
    EXPECT_THAT(column(rows, "decode_bound"), ElementsAre("memory", "memory"));
    expect_close(rows[0].at("decode_limit_s"), 2.0 * std::stod(rows[1].at("decode_limit_s")));
}

TEST(Sweep, TheRowsAreTheSameWhateverTheNumberOfThreads) {
    const std::string one = output_of(with(small, {"--format", "csv", "--threads", "1"}));
    EXPECT_EQ(lines_of(one).size(), 106U);
    EXPECT_EQ(one, output_of(with(small, {"--format", "csv", "--threads", "4"})));
    EXPECT_EQ(one, output_of(with(small, {"--format", "csv"})));
}

TEST(Sweep, ManyChunksStayInOrder) {
    // 20,000 rows are five chunks; each row names its own batch and context.
    const auto lines = lines_of(output_of(
        sweep({"gpt2", "h100-sxm", "-b", "1-200", "-c", "1-100", "--metrics", "fits", "--format", "csv", "-t", "3"})));
    ASSERT_EQ(lines.size(), 20'001U);
    for (std::size_t row = 0; row < 20'000; row += 37) {
        EXPECT_THAT(lines[row + 1], StartsWith("gpt2,h100-sxm," + std::to_string(row / 100 + 1) + ",1024," +
                                               std::to_string(row % 100 + 1) + ","));
    }
}

TEST(Sweep, ShardsOneAfterAnotherAreTheWhole) {
    const std::string whole = output_of(with(small, {"--format", "jsonl"}));
    std::string joined;
    for (const char* shard : {"1/4", "2/4", "3/4", "4/4"})
        joined += output_of(with(small, {"--format", "jsonl", "--shard", shard}));
    EXPECT_EQ(joined, whole);
    // 105 rows in four parts: 26, 26, 26 and 27.
    EXPECT_EQ(lines_of(output_of(with(small, {"--format", "jsonl", "--shard", "1/4"}))).size(), 26U);
    EXPECT_EQ(lines_of(output_of(with(small, {"--format", "jsonl", "--shard", "4/4"}))).size(), 27U);
    // More shards than rows: some are empty.
    EXPECT_EQ(output_of(sweep({"gpt2", "h100-sxm", "--format", "jsonl", "--shard", "1/3"})), "");
}

TEST(Sweep, LinesOfJsonFollowTheirSchemaAndHoldWhatTheTableHolds) {
    const Schema schema = Schema::published("sweep.schema.json");
    const Arguments arguments =
        sweep({"llama-3.1-8b", "h100-sxm", "--tp", "1,3", "--kv-cache-dtype", "fp8", "--enable-expert-parallel",
               "--overlap", "0,0.5", "--chunk", "0,128", "--metrics", "all"});
    const auto rows = rows_of(output_of(with(arguments, {"--format", "csv"})));
    const auto lines = lines_of(output_of(with(arguments, {"--format", "jsonl"})));
    ASSERT_EQ(lines.size(), 8U);
    ASSERT_EQ(rows.size(), 8U);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const Json line = parsed(lines[i]);
        EXPECT_TRUE(schema.violations(line).empty()) << ::testing::PrintToString(schema.violations(line));
        ASSERT_EQ(line.size(), rows[i].size());
        for (const auto& [name, cell] : rows[i]) {
            ASSERT_TRUE(line.contains(name)) << name;
            const Json& value = line[name];
            if (value.is_null()) {
                EXPECT_EQ(cell, "") << name;
            } else if (value.is_string()) {
                EXPECT_EQ(cell, value.get<std::string>()) << name;
            } else if (value.is_boolean()) {
                EXPECT_EQ(cell, value.get<bool>() ? "true" : "false") << name;
            } else {
                EXPECT_EQ(std::strtod(cell.c_str(), nullptr), value.get<double>()) << name;
            }
        }
    }
    Json tampered = parsed(lines.front());
    tampered["decode_bound"] = "nothing";
    EXPECT_EQ(schema.violations(tampered).size(), 1U);
}

// ---- stopping and going on ----

TEST(SweepFile, GoesOnWhereItWasCutOffAnywhere) {
    for (const char* name : {"rows.csv", "rows.jsonl"}) {
        const TemporaryFolder folder;
        const std::string file = folder.path(name);
        output_of(with(small, {"-o", file}));
        const std::string whole = text_of_file(file);
        ASSERT_EQ(lines_of(whole).size(), file.ends_with(".csv") ? 106U : 105U);
        // Nothing, inside the first line, at the end of it, inside a row, at the end of one, and all of it.
        const std::size_t first = whole.find('\n') + 1;
        const std::size_t later = whole.find('\n', whole.size() / 2) + 1;
        for (const std::size_t size : {std::size_t{0}, std::size_t{5}, first, first + 7, later, later + 30, later - 1,
                                       whole.size() - 1, whole.size()}) {
            SCOPED_TRACE(std::string(name) + " cut to " + std::to_string(size) + " bytes");
            folder.write(name, whole.substr(0, size));
            output_of(with(small, {"-o", file}));
            EXPECT_EQ(text_of_file(file), whole);
        }
    }
}

TEST(SweepFile, IsLeftAloneWhenItHoldsAnythingElse) {
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.csv");
    output_of(with(small, {"-o", file}));
    const std::string whole = text_of_file(file);
    const auto refused = [&](const std::string& content, const Arguments& arguments, const std::string& why) {
        folder.write("rows.csv", content);
        const Answer answer = run(with(arguments, {"-o", file}));
        EXPECT_EQ(answer.exit_code, 2);
        EXPECT_THAT(answer.err, HasSubstr(why));
        EXPECT_THAT(answer.err, HasSubstr("--overwrite starts anew"));
        EXPECT_EQ(text_of_file(file), content);
    };
    refused("what somebody wrote\n", small, "line 1: found \"what somebody wrote");
    refused("what somebody wrote", small, "line 1: found \"what somebody wrote\"");
    // Another sweep with the same columns: the fourth row is of another batch.
    refused(whole, sweep({"gpt2", "h100-sxm,rtx-4090,m2-ultra", "-b", "1-64*4", "-c", "128-640+128"}), "line 7: found");
    // Fewer rows than the file has.
    refused(whole, sweep({"gpt2", "h100-sxm", "-b", "1-64*2", "-c", "128-640+128"}), "holds more than the 35 rows");
    // Other columns.
    refused(whole, with(small, {"--stage", "decode"}), "line 1: found");
    // The last row has other digits than this program would write.
    std::string altered = whole.substr(0, whole.find('\n', whole.size() / 2) + 1);
    const std::size_t last = altered.rfind('\n', altered.size() - 2) + 1;
    const std::size_t digit = altered.find("0.0", last);
    ASSERT_NE(digit, std::string::npos);
    altered[digit] = '1';
    refused(altered, small, "expected \"");
    // A tail that is no beginning of a row.
    refused(whole.substr(0, whole.find('\n') + 1) + "notes of mine", small, "line 2: found \"notes of mine\"");

    output_of(with(small, {"-o", file, "--overwrite"}));
    EXPECT_EQ(text_of_file(file), whole);
}

/// Starts the program and leaves it running.
pid_t start(const Arguments& arguments) {
    std::vector<std::string> words = {ROOFLINE_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    return child;
}

TEST(SweepFile, AStoppedSweepKeepsWholeRowsAndGoesOn) {
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.csv");
    // Whole requests of many tokens, priced step by step: long enough to be stopped in the middle.
    const Arguments slow =
        sweep({"gpt2", "h100-sxm", "-b", "1-3000", "--generate", "300", "--metrics", "request", "--threads", "1"});
    const pid_t child = start(with(slow, {"-o", file}));
    for (int i = 0; i < 3000 && lines_of(text_of_file(file)).size() < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(child, SIGINT);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    const std::string stopped = text_of_file(file);
    EXPECT_TRUE(stopped.ends_with('\n'));
    EXPECT_GT(lines_of(stopped).size(), 1U);
    EXPECT_LT(lines_of(stopped).size(), 3001U);

    output_of(with(slow, {"-o", file}));
    const std::string whole = text_of_file(file);
    EXPECT_EQ(lines_of(whole).size(), 3001U);
    EXPECT_THAT(whole, StartsWith(stopped));
    // Row 3000 has batch 3000, priced as if nothing had happened.
    const std::string last = output_of(
        sweep({"gpt2", "h100-sxm", "-b", "3000", "--generate", "300", "--metrics", "request", "--format", "csv"}));
    EXPECT_EQ(lines_of(whole).back(), lines_of(last).back());
}

TEST(SweepFile, IsStoppedWithinAChunkOfRows) {
    // One thread, chunks of 128 rows of which each takes long: the signal is seen between two rows.
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.csv");
    const Arguments slow = sweep(
        {"deepseek-v3", "h100-sxm", "-b", "1-4000", "--generate", "300", "--metrics", "request", "--threads", "1"});
    const pid_t child = start(with(slow, {"-o", file}));
    for (int i = 0; i < 12000 && lines_of(text_of_file(file)).size() < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(child, SIGTERM);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    const std::string stopped = text_of_file(file);
    EXPECT_TRUE(stopped.empty() || stopped.ends_with('\n'));
    EXPECT_LT(lines_of(stopped).size(), 4001U);
}

TEST(Sweep, WithoutASingleRowThatCanBeSaysWhy) {
    const Answer answer =
        run(sweep({"llama-3.1-8b", "h100-sxm", "--tp", "3,5,7", "--metrics", "decode,problem", "--format", "csv"}));
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(lines_of(answer.out).size(), 4U);  // the rows are there all the same
    EXPECT_THAT(answer.err, HasSubstr("none of the 3 rows can be; the first: "));
    // One that can be is an answer.
    EXPECT_EQ(run(sweep({"llama-3.1-8b", "h100-sxm", "--tp", "3,4", "--format", "csv"})).exit_code, 0);
}

// ---- databases ----

/// Asks a database through SQLite itself, so that nothing of ours vouches for what we wrote.
class Database {
  public:
    explicit Database(const std::string& file) {
        library_ = ::dlopen("libsqlite3.so.0", RTLD_NOW);
        if (library_ == nullptr) return;
        const auto open = reinterpret_cast<int (*)(const char*, void**)>(::dlsym(library_, "sqlite3_open"));
        EXPECT_EQ(open(file.c_str(), &database_), 0);
    }
    ~Database() {
        if (database_ != nullptr) reinterpret_cast<int (*)(void*)>(::dlsym(library_, "sqlite3_close"))(database_);
    }
    static bool there() { return ::dlopen("libsqlite3.so.0", RTLD_NOW) != nullptr; }

    std::string ask(const std::string& query) const {
        using Callback = int (*)(void*, int, char**, char**);
        const auto execute =
            reinterpret_cast<int (*)(void*, const char*, Callback, void*, char**)>(::dlsym(library_, "sqlite3_exec"));
        std::string answer;
        const Callback collect = [](void* into, int columns, char** cells, char**) {
            auto& text = *static_cast<std::string*>(into);
            for (int i = 0; i < columns; ++i)
                text += std::string(i > 0 ? "|" : text.empty() ? "" : "\n") + (cells[i] != nullptr ? cells[i] : "NULL");
            return 0;
        };
        EXPECT_EQ(execute(database_, query.c_str(), collect, &answer, nullptr), 0) << query;
        return answer;
    }

  private:
    void* library_ = nullptr;
    void* database_ = nullptr;
};

TEST(SweepDatabase, HoldsTheRowsWithTheirTypes) {
    if (!Database::there()) GTEST_SKIP() << "libsqlite3.so.0 is not on this machine";
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.sqlite");
    const Arguments arguments = sweep({"llama-3.1-70b", "h100-sxm", "--tp", "1,3,8", "--batch", "1-8*2"});
    output_of(with(arguments, {"-o", file}));
    const auto rows = rows_of(output_of(with(arguments, {"--format", "csv"})));
    ASSERT_EQ(rows.size(), 12U);
    const Database database(file);
    EXPECT_EQ(database.ask("SELECT count(*), min(point), max(point) FROM sweep"), "12|1|12");
    EXPECT_EQ(database.ask("SELECT DISTINCT typeof(tp), typeof(batch), typeof(fits), typeof(decode_expected_s), "
                           "typeof(problem) FROM sweep WHERE tp = 8"),
              "integer|integer|integer|real|null");
    EXPECT_EQ(database.ask("SELECT fits, decode_expected_s FROM sweep WHERE tp = 3 LIMIT 1"), "NULL|NULL");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string expected = rows[i].at("decode_expected_s");
        EXPECT_EQ(database.ask("SELECT decode_expected_s IS " + (expected.empty() ? "NULL" : expected) +
                               " FROM sweep WHERE point = " + std::to_string(i + 1)),
                  "1");
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(SweepDatabase, IsTakenUpAgainOrLeftAlone) {
    if (!Database::there()) GTEST_SKIP() << "libsqlite3.so.0 is not on this machine";
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.db");
    output_of(with(small, {"-o", file}));
    const std::string all = "SELECT * FROM sweep ORDER BY point";
    const std::string whole = Database(file).ask(all);
    EXPECT_EQ(lines_of(whole).size(), 105U);
    Database(file).ask("DELETE FROM sweep WHERE point > 40");
    output_of(with(small, {"-o", file}));
    EXPECT_EQ(Database(file).ask(all), whole);

    const auto refused = [&](const Arguments& arguments, const std::string& why) {
        const Answer answer = run(with(arguments, {"-o", file}));
        EXPECT_EQ(answer.exit_code, 2);
        EXPECT_THAT(answer.err, HasSubstr(why));
    };
    refused(sweep({"gpt2", "h100-sxm,rtx-4090,m2-ultra", "-b", "1-64*4", "-c", "128-640+128"}), "something else");
    refused(with(small, {"--stage", "decode"}), "other columns");
    Database(file).ask("DELETE FROM sweep WHERE point = 7");
    refused(small, "its points are not the first ones");
    output_of(with(small, {"-o", file, "--overwrite"}));
    EXPECT_EQ(Database(file).ask(all), whole);
    Database(file).ask("UPDATE sweep SET decode_limit_s = 1.0 WHERE point = 105");
    refused(small, "not what this sweep finds now");
    folder.write("rows.db", "not a database, but a text that is long enough to be taken for one by its size alone");
    refused(small, "file is not a database");
}

// ---- several processes ----

TEST(SweepUnderLoad, RowsAreWhatPredictSays) {
    const auto rows =
        rows_of(output_of(sweep({"llama-3.1-8b", "h100-sxm", "--concurrency", "1-16*4", "--engine", "vllm", "--prompt",
                                 "500,1000", "--generate", "100", "--price", "3.6", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 6U);
    EXPECT_THAT(column(rows, "concurrency"), ElementsAre("1", "1", "4", "4", "16", "16"));
    for (const Row& row : rows) {
        const auto load = parsed(output_of({"predict", "llama-3.1-8b", "h100-sxm", "--concurrency",
                                            row.at("concurrency"), "--engine", "vllm", "--prompt", row.at("prompt"),
                                            "--generate", "100", "--price", "3.6", "--format", "json"}))["load"];
        const auto same = [&](const char* name, double value) {
            EXPECT_NEAR(std::stod(row.at(name)) / value, 1.0, 1e-5) << name;
        };
        same("load_requests_per_s", load["requests_per_s"].get<double>());
        same("load_output_tokens_per_s", load["output_tokens_per_s"].get<double>());
        same("load_ttft_s", load["replica"]["expected"]["ttft_s"].get<double>());
        same("load_tpot_s", load["replica"]["expected"]["tpot_s"].get<double>());
        same("load_cost_per_million_output_tokens", load["cost_per_million_output_tokens"].get<double>());
        EXPECT_EQ(row.at("problem"), "");
    }
}

TEST(SweepUnderLoad, SaysWhatIsOverloadedAndWhatCannotBe) {
    const auto rows = rows_of(
        output_of(sweep({"llama-3.1-8b", "h100-sxm", "--rate", "1,1000", "--metrics", "load", "--format", "csv"})));
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].at("load_overloaded"), "false");
    EXPECT_EQ(rows[1].at("load_overloaded"), "true");
    EXPECT_EQ(rows[1].at("load_bound"), "overload");
    EXPECT_EQ(rows[1].at("load_ttft_s"), "") << "a queue without end has no mean";
    const Answer unheard = run(sweep({"llama-3.1-8b", "h100-sxm", "--simulate"}));
    EXPECT_EQ(unheard.exit_code, 2);
    EXPECT_THAT(unheard.err, HasSubstr("--simulate: is about requests under load"));
    // A price alone is that of the batch of the row.
    const auto priced = rows_of(output_of(sweep({"llama-3.1-8b", "h100-sxm", "--price", "3.6", "-b", "1,8", "--metrics",
                                                 "cost,request_expected", "--format", "csv"})));
    ASSERT_EQ(priced.size(), 2U);
    // 0.001 a second for the time of a request; 128 tokens of each sequence.
    EXPECT_NEAR(std::stod(priced[1].at("cost_per_million_tokens")) * 8.0 * 128.0 * 1e-3,
                std::stod(priced[1].at("request_expected_s")), 1e-4);
}

TEST(SweepUnderMpi, TwoRanksWriteOneFileWithTheSameRows) {
    const std::string plugin = (std::filesystem::path(ROOFLINE_BINARY).parent_path() / "roofline_mpi.so").string();
    if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "built without MPI (Debian: libopenmpi-dev)";
    if (std::system("mpirun --version >/dev/null 2>&1") != 0)
        GTEST_SKIP() << "mpirun is not on this machine (Debian: openmpi-bin)";
    const TemporaryFolder folder;
    const std::string file = folder.path("rows.csv");
    const std::string output = folder.path("output");
    const auto mpirun = [&](const std::string& arguments) {
        const std::string command = "timeout 100 mpirun --allow-run-as-root --oversubscribe -n 2 \"" ROOFLINE_BINARY
                                    "\" sweep " +
                                    arguments + " >\"" + output + "\" 2>&1 </dev/null";
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    };
    // 20,000 rows are five chunks: three for one rank, two for the other.
    const std::string asked = "gpt2 h100-sxm -b 1-200 -c 1-100";
    EXPECT_EQ(mpirun(asked + " -o \"" + file + "\""), 0) << text_of_file(output);
    EXPECT_EQ(text_of_file(output), "");
    const std::string whole = text_of_file(file);
    EXPECT_EQ(whole, output_of(sweep({"gpt2", "h100-sxm", "-b", "1-200", "-c", "1-100", "--format", "csv"})));

    // Taken up again from the middle of a row.
    folder.write("rows.csv", whole.substr(0, whole.size() / 3));
    EXPECT_EQ(mpirun(asked + " -o \"" + file + "\""), 0) << text_of_file(output);
    EXPECT_EQ(text_of_file(file), whole);

    // One rank complains for all.
    EXPECT_EQ(mpirun("gpt2 h101 -o \"" + file + "\""), 2);
    const std::string said = text_of_file(output);
    EXPECT_THAT(said, HasSubstr("no device is called"));
    EXPECT_EQ(said.find("no device is called"), said.rfind("no device is called"));
    folder.write("rows.csv", "mine\n");
    EXPECT_EQ(mpirun(asked + " -o \"" + file + "\""), 2);
    EXPECT_EQ(text_of_file(file), "mine\n");
}

TEST(SweepUnderMpi, WithoutThePluginItSaysSoInsteadOfDoingTheWorkTwice) {
    const TemporaryFolder folder;
    std::filesystem::copy_file(ROOFLINE_BINARY, folder.path("roofline"));
    const std::string command = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 \"" + folder.path("roofline") +
                                "\" sweep gpt2 h100-sxm 2>\"" + folder.path("said") + "\"";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 4);
    EXPECT_THAT(text_of_file(folder.path("said")), HasSubstr("built without MPI"));
}

}  // namespace
}  // namespace roofline::cli::testing
