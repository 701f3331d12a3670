// Pictures as a user asks for them.
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/run.hpp"

namespace roofline::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string report(const TemporaryFolder& folder, const std::string& device) {
    const std::string path = folder.path(device + ".json");
    const Answer answer = run({"predict", "llama-3.1-8b", device, "--format", "json", "-o", path});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return path;
}

TEST(Plot, DrawsReportsAndDevicesToTheKindOfFileThatTheNameSays) {
    const TemporaryFolder folder;
    const std::string one = report(folder, "h100-sxm");
    const std::string two = report(folder, "h200-sxm");
    for (const char* name : {"a.svg", "a.html"}) {
        const Answer answer = run({"plot", one, two, "-d", "b200-sxm", "-o", folder.path(name)});
        EXPECT_EQ(answer.exit_code, 0) << answer.err;
        EXPECT_EQ(answer.out, "");
    }
    EXPECT_THAT(content(folder.path("a.svg")), StartsWith("<svg "));
    EXPECT_THAT(content(folder.path("a.html")), StartsWith("<!doctype html>"));
}

TEST(Plot, ShowsTheRooflineInTheTerminalWithoutAFile) {
    const Answer answer = run({"plot", "h100-sxm"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("ridge 295.3"));
    EXPECT_THAT(answer.out, HasSubstr("989.4 TFLOP/s"));
    EXPECT_EQ(answer.out.find("\x1b["), std::string::npos);  // nobody's terminal
    const Answer painted = run({"predict", "llama-3.1-8b", "h100-sxm", "--format", "html"});
    EXPECT_THAT(painted.out, StartsWith("<!doctype html>"));
}

TEST(Plot, IsTheSameToTheByteEveryTime) {
    const TemporaryFolder folder;
    const std::string one = report(folder, "h100-sxm");
    for (const char* name : {"a.svg", "b.svg"}) EXPECT_EQ(run({"plot", one, "-o", folder.path(name)}).exit_code, 0);
    EXPECT_EQ(content(folder.path("a.svg")), content(folder.path("b.svg")));
}

TEST(Plot, DrawsPngAndPdfWhereLibrsvgIsAndSaysSoWhereItIsNot) {
    const TemporaryFolder folder;
    const bool here = ::dlopen("librsvg-2.so.2", RTLD_NOW) != nullptr;
    for (const auto& [name, magic] : {std::pair{"a.png", "\x89PNG"}, std::pair{"a.pdf", "%PDF"}}) {
        const Answer answer = run({"plot", "h100-sxm", "-o", folder.path(name)});
        if (here) {
            EXPECT_EQ(answer.exit_code, 0) << answer.err;
            EXPECT_THAT(content(folder.path(name)), StartsWith(magic));
        } else {
            EXPECT_EQ(answer.exit_code, 4);
            EXPECT_THAT(answer.err, HasSubstr("librsvg"));
            EXPECT_FALSE(std::filesystem::exists(folder.path(name)));
        }
    }
}

/// Questions of every verb that draws, each answered within a second or two.
std::vector<std::vector<std::string>> drawing_commands(const TemporaryFolder& folder) {
    std::string table = "gpu,op,dtype,m,n,k,time_us\n";
    for (const int m : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
        table += "h200-sxm,gemm,bf16," + std::to_string(m) + ",4096,4096," + std::to_string(15 + m / 4) + "\n";
    const std::string measured = folder.write("t.csv", table);
    return {
        {"predict", "llama-3.1-8b", "h100-sxm", "--all"},
        {"advise", "llama-3.1-8b", "h100-sxm", "--or-device", "none"},
        {"sweep", "llama-3.1-8b", "h100-sxm", "--batch", "1-256*4"},
        {"plan", "llama-3.1-8b", "--devices", "h100-sxm:2", "--chunk", "2048", "--all"},
        {"op", "gemm", "--m", "16", "--n", "4096", "--k", "4096"},
        {"op", "--flops", "1e9", "--bytes", "1e8"},
        {"devices"},
        {"devices", "show", "h100-sxm"},
        {"models"},
        {"models", "show", "gpt2"},
        {"compare", report(folder, "h100-sxm"), report(folder, "h200-sxm"), "--top", "0"},
        {"compare", "h100-sxm", "h200-sxm"},
        {"calibrate", measured},
        {"validate", measured},
    };
}

TEST(Plot, OnEveryVerbThatHasIt) {
    const TemporaryFolder folder;
    for (std::vector<std::string> arguments : drawing_commands(folder)) {
        const std::string file = folder.path(arguments.front() + ".svg");
        arguments.insert(arguments.end(), {"--plot", file});
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 0) << arguments.front() << ": " << answer.err;
        EXPECT_NE(answer.out, "");  // beside the answer, not in its place
        EXPECT_THAT(content(file), StartsWith("<svg ")) << arguments.front();
    }
}

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        const std::map<char, std::string> signs = {
            {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
        result += signs.contains(c) ? signs.at(c) : std::string(1, c);
    }
    return result;
}

/// Cells of the tables of a report in Markdown, without `code`.
std::vector<std::string> cells_of(const std::string& markdown) {
    std::vector<std::string> cells;
    std::istringstream lines(markdown);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| ") || line.find('`') != std::string::npos) continue;
        for (std::size_t at = 2; at < line.size();) {
            const std::size_t end = line.find(" |", at);
            if (end > at) cells.push_back(line.substr(at, end - at));
            at = end + 3;
        }
    }
    return cells;
}

TEST(Page, OfEveryVerbHoldsItsChartsAndEveryCellOfItsReport) {
    const TemporaryFolder folder;
    for (const std::vector<std::string>& arguments : drawing_commands(folder)) {
        const auto in = [&](const char* format) {
            std::vector<std::string> all = arguments;
            all.insert(all.end(), {"--format", format});
            const Answer answer = run(all);
            EXPECT_EQ(answer.exit_code, 0) << typed(all) << ": " << answer.err;
            return answer.out;
        };
        const std::string page = in("html");
        EXPECT_THAT(page, StartsWith("<!doctype html>")) << typed(arguments);
        EXPECT_THAT(page, HasSubstr("<svg ")) << typed(arguments);
        EXPECT_THAT(page, HasSubstr("<footer><code>roofline " + arguments.front())) << typed(arguments);
        for (const std::string& cell : cells_of(in("md")))
            EXPECT_NE(page.find(">" + escaped(cell) + "<"), std::string::npos) << typed(arguments) << ": " << cell;
    }
}

TEST(Page, IsWrittenWhereTheNameOfTheFileSaysSo) {
    const TemporaryFolder folder;
    const std::vector<std::string> question = {"devices", "show", "h100-sxm", "-o", folder.path("a.html")};
    EXPECT_EQ(run(question).exit_code, 0);
    EXPECT_THAT(content(folder.path("a.html")), StartsWith("<!doctype html>"));
    // What was said counts more than the name.
    EXPECT_EQ(run({"devices", "show", "h100-sxm", "--format", "md", "-o", folder.path("b.html")}).exit_code, 0);
    EXPECT_THAT(content(folder.path("b.html")), StartsWith("# NVIDIA"));
    EXPECT_EQ(run({"plot", "h100-sxm", "--format", "html"}).out.substr(0, 15), "<!doctype html>");
    EXPECT_EQ(run({"sweep", "gpt2", "l40s", "--batch", "1,2", "-o", folder.path("c.html")}).exit_code, 0);
    EXPECT_THAT(content(folder.path("c.html")), HasSubstr("<svg "));
}

TEST(Plot, RefusesWhatItCannotDrawInOneLine) {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 2) << typed(arguments);
        EXPECT_THAT(answer.err, HasSubstr(why));
        EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    };
    refused({"plot"}, "no REPORT was named");
    refused({"plot", "nothing-at-all"}, "neither a report");
    refused({"plot", "h100-sxm", "-o", folder.path("a.bmp")}, "expected a name that ends in .svg, .png, .pdf or .html");
    refused({"plot", "h100-sxm", "--chart", "pie"}, "--chart: found \"pie\", expected roofline, time, intensity");
    refused({"plot", "h100-sxm", "--levels", "moon"}, "--levels: found \"moon\"");
    refused({"plot", folder.write("broken.json", "{\"schema\": \"roofline.report/1\"")}, "broken.json");
    refused({"plot", folder.write("advice.json", "{\"schema\": \"roofline.advise/1\"}")},
            "advise --plot FILE draws it");
    refused({"predict", "llama-3.1-8b", "h100-sxm", "--plot", "a.gif"}, "--plot: found \"a.gif\"");
    refused({"devices", "--plot", "a.gif"}, "--plot: found \"a.gif\"");
    refused(
        {"sweep", "llama-3.1-8b", "h100-sxm", "--batch", "1-4", "--context", "1-20", "--plot", folder.path("a.svg")},
        "curves are too many");
    EXPECT_TRUE(!std::filesystem::exists(folder.path("a.svg")));
}

}  // namespace
}  // namespace roofline::cli::testing
