// validate and calibrate as a user meets them: exit codes, the one line when something is wrong, the formats, and a
// calibration that goes from measurements into predictions.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

// One line on stderr that begins with the program's name and holds `says`, and nothing else.
void expect_refused(const Arguments& arguments, const std::string& says) {
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments);
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(answer.err.starts_with("roofline: ")) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err << "should say: " << says;
}

std::size_t files_in(const TemporaryFolder& folder) {
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) ++files;
    return files;
}

const std::string header = "gpu,op,dtype,m,n,k,time_us\n";

// Products on one device, `factor` times as slow as a stream at 4 TB/s and 3 us to start.
std::string products(double factor, const std::string& device = "h200-sxm") {
    std::string table = header;
    for (const int n : {1024, 4096, 6144, 14336, 28672}) {
        for (const int m : {1, 4, 16, 64}) {
            const double us = factor * (3.0 + 2.0 * n * 4096.0 / 4e6);
            table += device + ",gemm,bf16," + std::to_string(m) + "," + std::to_string(n) + ",4096," +
                     std::to_string(us) + "\n";
        }
    }
    return table;
}

TEST(Validate, AFileThatIsNotThereIsOneLine) {
    const TemporaryFolder folder;
    for (const char* verb : {"validate", "calibrate"}) {
        expect_refused({verb, folder.path("none.csv")}, "none.csv: cannot be opened");
        expect_refused({verb, "--data", folder.path("none.csv")}, "none.csv: cannot be opened");
        expect_refused({verb, folder.write("some.csv", products(1.0)), folder.path("none.csv")}, "none.csv");
    }
    expect_refused({"validate", folder.path("some.csv"), "--calibration", folder.path("none.json")}, "none.json");
}

TEST(Validate, AHeaderNobodyKnowsIsOneLine) {
    const TemporaryFolder folder;
    const std::string file = folder.write("colours.csv", "colour,shape\nred,round\n");
    for (const char* verb : {"validate", "calibrate"}) {
        expect_refused({verb, file}, "colours.csv: found no table known here, expected the columns gpu, op, time_us");
        expect_refused({verb, folder.write("empty.csv", "")}, "empty.csv: found nothing");
        expect_refused({verb, folder.write("picture.png", std::string("\x89PNG\r\n\x1a\n\0\0\0", 11))}, "picture.png");
    }
}

TEST(Validate, ATableThatIsBrokenIsOneLineWithItsPlace) {
    const TemporaryFolder folder;
    for (const char* verb : {"validate", "calibrate"}) {
        expect_refused({verb, folder.write("ragged.csv", header + "h200-sxm,gemm,bf16,1,2,3,4\nh200-sxm,gemm\n")},
                       "ragged.csv:3: found 2 cells, expected 7");
        expect_refused({verb, folder.write("open.csv", header + "h200-sxm,\"gemm,bf16,1,2,3,4\n")},
                       "open.csv:2: a quote is opened here and never closed");
    }
}

TEST(Validate, CellsThatAreNoNumbersLeaveNoAnswerButAReason) {
    const TemporaryFolder folder;
    const std::string file = folder.write("bad.csv", header +  //
                                                         "h200-sxm,gemm,bf16,x,4096,4096,20\n"
                                                         "h200-sxm,gemm,bf16,1,4096,4096,soon\n"
                                                         "warp-drive,gemm,bf16,1,4096,4096,20\n");
    for (const char* format : {"table", "md"}) {
        const Answer answer = run({"validate", file, "--format", format});
        EXPECT_EQ(answer.exit_code, 1) << "no row is left to judge by";
        EXPECT_EQ(answer.err, "");
        EXPECT_NE(answer.out.find("0 rows used, 3 refused"), std::string::npos) << answer.out;
        for (const char* reason : {"m, n or k is missing, or is no whole number up to a billion", "no positive time",
                                   "unknown device", "bad.csv:4"})
            EXPECT_NE(answer.out.find(reason), std::string::npos) << reason << "\n" << answer.out;
    }
    EXPECT_EQ(run({"validate", file, "--format", "json"}).exit_code, 1);
    EXPECT_EQ(run({"validate", file, "--format", "csv"}).exit_code, 1);
    expect_refused({"calibrate", file}, "found no usable row");
}

TEST(Validate, PrintsTheTablesThatWereAskedFor) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", header + "h200-sxm,gemm,bf16,1,4096,4096,14\n");
    const std::string all = run({"validate", file}).out;
    const std::string some = run({"validate", file, "--by", "device,kind"}).out;
    for (const char* title : {"\nBy kind\n", "\nBy device\n"}) {
        EXPECT_NE(all.find(title), std::string::npos) << title;
        EXPECT_NE(some.find(title), std::string::npos) << title;
    }
    for (const char* title : {"\nBy kind and size\n", "\nBy kind, type and device\n"}) {
        EXPECT_NE(all.find(title), std::string::npos) << title;
        EXPECT_EQ(some.find(title), std::string::npos) << title;
    }
    expect_refused({"validate", file, "--by", "colour"}, "colour");
}

TEST(Validate, LeavesDevicesOutOfTheShippedTablesAlone) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", header + "h200-sxm,gemm,bf16,1,4096,4096,14\n");
    expect_refused({"validate", file, "--leave-out", "device"}, "takes no files");
    expect_refused({"validate", "--leave-out", "colour"}, "colour");
}

TEST(Validate, OneGoodRowAmongBadOnesIsAnAnswer) {
    const TemporaryFolder folder;
    const std::string file = folder.write(
        "mixed.csv", header + "h200-sxm,gemm,bf16,0,1,1,20\nh200-sxm,gemm,bf16,1,4096,4096,14\nh200-sxm,conv,,,,,20\n");
    const Answer answer = run({"validate", file, "--format", "json"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    const Json json = parsed(answer.out);
    EXPECT_EQ(json["groups"].size(), 2U) << "products, and what there is no formula for";
    EXPECT_FALSE(json.contains("rows"));
    EXPECT_EQ(json["refused"].size(), 2U);
    for (const Json& group : json["groups"]) {
        if (group["kind"] != "gemm") continue;
        EXPECT_EQ(group["rows"], 1);
        EXPECT_EQ(group["refused"], 1);
    }
}

TEST(Validate, RowByRowSaysWhatWasPredictedAndOnWhoseConstants) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", header + "h200-sxm,gemm,bf16,1,4096,4096,14\n");
    const Json json = parsed(run({"validate", file, "--per-row", "--format", "json"}).out);
    ASSERT_EQ(json["rows"].size(), 1U);
    const Json& row = json["rows"][0];
    EXPECT_EQ(row["line"], 2);
    EXPECT_EQ(row["what"], "m 1, n 4096, k 4096");
    EXPECT_EQ(row["calibration"], "h200-sxm");
    EXPECT_NEAR(row["time_s"]["measured"].get<double>(), 14e-6, 1e-12);
    EXPECT_LE(row["time_s"]["limit"], row["time_s"]["attainable"]);
    EXPECT_LE(row["time_s"]["attainable"], row["time_s"]["expected_low"]);
    EXPECT_LE(row["time_s"]["expected_low"], row["time_s"]["expected"]);
    EXPECT_LE(row["time_s"]["expected"], row["time_s"]["expected_high"]);
    const double error = row["time_s"]["expected"].get<double>() / 14e-6 - 1.0;
    EXPECT_NEAR(row["error"].get<double>(), error, 1e-9);
    EXPECT_NEAR(json["groups"][0]["bias"].get<double>(), error, 1e-9);
    const Answer table = run({"validate", file, "--per-row"});
    EXPECT_NE(table.out.find("m 1, n 4096, k 4096"), std::string::npos);
    EXPECT_EQ(run({"validate", file}).out.find("m 1, n 4096, k 4096"), std::string::npos);
}

TEST(Validate, CsvIsATableOfItsOwnThatHasAsManyCellsInEveryLine) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", products(1.1) + "h200-sxm,conv,bf16,1,1,1,1\n");
    const auto lines = [&](const Arguments& more) {
        Arguments arguments = {"validate", file, "--format", "csv"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        std::istringstream text(answer.out);
        std::vector<std::string> result;
        for (std::string line; std::getline(text, line);) result.push_back(line);
        return result;
    };
    const auto groups = lines({});
    ASSERT_EQ(groups.size(), 3U);
    EXPECT_TRUE(groups[0].starts_with("kind,stage,type,device,rows,refused,")) << groups[0];
    EXPECT_TRUE(groups[2].starts_with("gemm,-,bf16,h200-sxm,20,0,")) << groups[2];
    for (const std::string& line : groups)
        EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(groups[0].begin(), groups[0].end(), ','));
    const auto rows = lines({"--per-row"});
    ASSERT_EQ(rows.size(), 21U);
    EXPECT_TRUE(rows[0].starts_with("place,device,kind,")) << rows[0];
    EXPECT_NE(rows[1].find("\"m 1, n 1024, k 4096\""), std::string::npos) << rows[1];
}

TEST(Validate, AFolderStandsForTheTablesInIt) {
    const TemporaryFolder folder;
    folder.write("a.csv", header + "h200-sxm,gemm,bf16,1,4096,4096,14\n");
    folder.write("deeper/b.csv", header + "h200-sxm,gemm,bf16,2,4096,4096,14\n");
    folder.write("notes.txt", "not a table");
    const Json json = parsed(run({"validate", folder.path(), "--format", "json"}).out);
    EXPECT_EQ(json["groups"][0]["rows"], 2);
    const TemporaryFolder nothing;
    EXPECT_EQ(run({"validate", nothing.path()}).exit_code, 1);
    expect_refused({"calibrate", nothing.path()}, "found no usable row");
}

TEST(Validate, GoesToTheFileThatWasNamedAndNowhereElse) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", products(1.1));
    const Answer answer = run({"validate", file, "--format", "json", "-o", folder.path("card.json")});
    EXPECT_EQ(answer.exit_code, 0);
    EXPECT_EQ(answer.out + answer.err, "");
    EXPECT_EQ(parsed(text_of_file(folder.path("card.json")))["schema"], "roofline.validate/1");
    EXPECT_EQ(files_in(folder), 2U);
}

TEST(Validate, TheSameTableGivesTheSameAnswer) {
    const TemporaryFolder folder;
    const std::string file = folder.write("t.csv", products(1.3));
    EXPECT_EQ(run({"validate", file, "--per-row"}).out, run({"validate", file, "--per-row"}).out);
    const std::string one = folder.path("one.json");
    const std::string two = folder.path("two.json");
    run({"calibrate", file, "-o", one});
    run({"calibrate", file, "-o", two});
    EXPECT_EQ(text_of_file(one), text_of_file(two));
    EXPECT_NE(text_of_file(one), "");
}

double expected_of(const Arguments& arguments, const char* place) {
    Arguments all = arguments;
    all.insert(all.end(), {"--format", "json"});
    const Answer answer = run(all);
    EXPECT_EQ(answer.exit_code, 0) << typed(all) << "\n" << answer.err;
    const Json json = parsed(answer.out);
    return json.is_object() ? json.value(Json::json_pointer(place), 0.0) : 0.0;
}

TEST(Calibrate, WhatItWritesPredictTakesAndExpectsWhatWasMeasured) {
    const TemporaryFolder folder;
    const std::string table = folder.write("slow.csv", products(3.0));
    const std::string file = folder.path("own.json");
    const Answer answer = run({"calibrate", table, "-o", file});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.err, "");
    EXPECT_NE(answer.out.find("20 rows used, 0 refused"), std::string::npos) << answer.out;

    const Arguments question = {"predict", "llama-3.1-8b", "h200-sxm"};
    Arguments own = question;
    own.insert(own.end(), {"--calibration", file});
    const char* decode = "/stages/1/time_s/expected";
    EXPECT_GT(expected_of(own, decode), 2.0 * expected_of(question, decode)) << "a decode step is mostly products";
    const char* limit = "/stages/1/time_s/limit";
    EXPECT_EQ(expected_of(own, limit), expected_of(question, limit)) << "the speed of light is not up for calibration";

    // 3 x (3 us + 33,554,432 bytes at 4 TB/s).
    const Arguments product = {"op",  "gemm", "--m",      "1",        "--n",           "4096",
                               "--k", "4096", "--device", "h200-sxm", "--calibration", file};
    EXPECT_NEAR(expected_of(product, "/time_s/expected"), 34.2e-6, 2e-6);

    // Held against its own rows it must do well, and better than the constants the program carries.
    const double ours = expected_of({"validate", table, "--calibration", file}, "/groups/0/mape/expected");
    EXPECT_LT(ours, 0.05);
    EXPECT_GT(expected_of({"validate", table}, "/groups/0/mape/expected"), 0.5);
}

TEST(Calibrate, OneDevicesConstantsDoNotMoveAnotherThatHasItsOwn) {
    const TemporaryFolder folder;
    const std::string file = folder.path("own.json");
    ASSERT_EQ(run({"calibrate", folder.write("slow.csv", products(3.0)), "-o", file}).exit_code, 0);
    const Arguments question = {"predict", "llama-3.1-8b", "a100-sxm-80gb"};
    Arguments own = question;
    own.insert(own.end(), {"--calibration", file});
    const char* decode = "/stages/1/time_s/expected";
    EXPECT_EQ(expected_of(own, decode), expected_of(question, decode));
}

TEST(Calibrate, NothingIsWrittenWhenItFails) {
    const TemporaryFolder folder;
    const TemporaryFolder target;
    const std::string file = target.path("own.json");
    expect_refused({"calibrate", folder.path("none.csv"), "-o", file}, "none.csv");
    expect_refused({"calibrate", folder.write("h.csv", "a,b\n1,2\n"), "-o", file}, "h.csv");
    expect_refused({"calibrate", folder.write("r.csv", header + "h200-sxm\n"), "-o", file}, "r.csv:2");
    expect_refused({"calibrate", folder.write("n.csv", header + "h200-sxm,gemm,bf16,0,1,1,1\n"), "-o", file},
                   "no usable row");
    expect_refused({"validate", folder.path("none.csv"), "-o", file}, "none.csv");
    EXPECT_TRUE(target.is_empty());
    const std::string before = target.write("kept.json", "mine");
    expect_refused({"calibrate", folder.path("none.csv"), "-o", before}, "none.csv");
    EXPECT_EQ(text_of_file(before), "mine") << "what is there stays as it was";
    const std::string good = folder.write("good.csv", products(1.0));
    expect_refused({"calibrate", good, "-o", target.path("no/such/folder.json")}, "cannot be written");
    expect_refused({"calibrate", good, "-o", target.path()}, "is a folder");
    EXPECT_EQ(files_in(target), 1U);
}

TEST(Calibrate, ACalibrationThatIsNoneIsOneLine) {
    const TemporaryFolder folder;
    const auto expect_all_refuse = [&](const std::string& file, const std::string& says) {
        expect_refused({"predict", "gpt2", "h100-sxm", "--calibration", file}, says);
        expect_refused({"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--calibration", file}, says);
        expect_refused({"validate", folder.write("t.csv", products(1.0)), "--calibration", file}, says);
    };
    expect_all_refuse(folder.path("none.json"), "none.json: ");
    expect_all_refuse(folder.write("table.csv", products(1.0)), "table.csv");
    expect_all_refuse(folder.write("empty.json", ""), "empty.json");
    expect_all_refuse(folder.write("other.json", R"({"schema":"roofline.device/1","fits":[]})"),
                      "expected roofline.calibration/1");
    expect_all_refuse(folder.write("class.json", R"({"schema":"roofline.calibration/1","fits":[{"class":"magic"}]})"),
                      "expected a kernel class");
}

TEST(Profiles, AMisspeltProfileIsRefusedWithASuggestion) {
    expect_refused({"predict", "gpt2", "h100-sxm", "--profile", "engin"}, "did you mean engine?");
    expect_refused({"predict", "gpt2", "h100-sxm", "--profile", "graph-fused"}, "graph+fused");
    expect_refused({"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--profile", "lama.cpp"}, "llama.cpp");
    expect_refused({"predict", "gpt2", "h100-sxm", "--profile", "nosuch"}, "nosuch");
    expect_refused({"predict", "gpt2", "h100-sxm", "--profile", "nosuch.json"}, "nosuch.json");
}

TEST(Profiles, EveryBuiltInOneRunsAndTheyDiffer) {
    const char* decode = "/stages/1/time_s/expected";
    const double graph = expected_of({"predict", "llama-3.1-8b", "h200-sxm", "--profile", "graph+fused"}, decode);
    const double eager = expected_of({"predict", "llama-3.1-8b", "h200-sxm", "--profile", "eager"}, decode);
    EXPECT_GT(eager, 1.5 * graph) << "the host is waited for";
    for (const auto& file : std::filesystem::directory_iterator(ROOFLINE_SOURCE_DIR "/data/profiles")) {
        const std::string name = file.path().stem().string();
        for (const char* device : {"h200-sxm", "m2-ultra"})
            EXPECT_GT(expected_of({"predict", "llama-3.1-8b", device, "--profile", name}, decode), 0.0) << name;
    }
}

}  // namespace
}  // namespace roofline::cli::testing
