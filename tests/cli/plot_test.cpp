// Pictures as a user asks for them.
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
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

TEST(Plot, OnEveryVerbThatHasIt) {
    const TemporaryFolder folder;
    std::string table = "gpu,op,dtype,m,n,k,time_us\n";
    for (const int m : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})
        table += "h200-sxm,gemm,bf16," + std::to_string(m) + ",4096,4096," + std::to_string(15 + m / 4) + "\n";
    const std::vector<std::vector<std::string>> commands = {
        {"predict", "llama-3.1-8b", "h100-sxm"},
        {"advise", "llama-3.1-8b", "h100-sxm", "--or-device", "none"},
        {"sweep", "llama-3.1-8b", "h100-sxm", "--batch", "1-256*4"},
        {"plan", "llama-3.1-8b", "--devices", "h100-sxm:2", "--chunk", "2048"},
        {"op", "gemm", "--m", "16", "--n", "4096", "--k", "4096"},
        {"op", "--flops", "1e9", "--bytes", "1e8"},
        {"devices"},
        {"devices", "show", "h100-sxm"},
        {"models"},
        {"models", "show", "gpt2"},
        {"calibrate", folder.write("t.csv", table)},
        {"validate", folder.write("t.csv", table)},
    };
    for (std::vector<std::string> arguments : commands) {
        const std::string file = folder.path(arguments.front() + ".svg");
        arguments.insert(arguments.end(), {"--plot", file});
        const Answer answer = run(arguments);
        EXPECT_EQ(answer.exit_code, 0) << arguments.front() << ": " << answer.err;
        EXPECT_NE(answer.out, "");  // beside the answer, not in its place
        EXPECT_THAT(content(file), StartsWith("<svg ")) << arguments.front();
    }
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
