// Where `sweep` writes: files that are gone on with, databases, one file of several processes.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "cli/sweep_rows.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
