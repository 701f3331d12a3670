// The rooms and their arrows, read from the include lines themselves. It lives here because the tests of io may read
// files; the rule it checks is the whole program's.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "places.hpp"

namespace roofline {
namespace {

struct Include {
    std::string file;
    std::string room;
    int line = 0;
    std::string target;  // without its quotes or brackets
    bool quoted = false;
};

std::vector<Include> includes_of_line(const std::string& text, const std::string& file, const std::string& room,
                                      int line) {
    std::size_t at = text.find_first_not_of(" \t");
    if (at == std::string::npos || text[at] != '#') return {};
    at = text.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || text.compare(at, 7, "include") != 0) return {};
    const std::size_t open = text.find_first_of("<\"", at);
    if (open == std::string::npos) return {};
    const std::size_t close = text.find(text[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string::npos) return {};
    return {{file, room, line, text.substr(open + 1, close - open - 1), text[open] == '"'}};
}

std::vector<Include> all_includes() {
    const std::filesystem::path root = std::filesystem::path(ROOFLINE_SOURCE_DIR) / "src" / "roofline";
    std::vector<Include> result;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        const auto extension = entry.path().extension();
        if (!entry.is_regular_file() || (extension != ".hpp" && extension != ".cpp")) continue;
        const auto relative = entry.path().lexically_relative(root);
        std::ifstream stream(entry.path());
        std::string text;
        for (int line = 1; std::getline(stream, text); ++line) {
            for (Include& found : includes_of_line(text, relative.generic_string(), relative.begin()->string(), line))
                result.push_back(std::move(found));
        }
    }
    return result;
}

/// "roofline/core/roof.hpp" is of core; empty for what is not ours.
std::string room_of(const std::string& target) {
    if (!target.starts_with("roofline/")) return "";
    const std::size_t end = target.find('/', 9);
    return end == std::string::npos ? "" : target.substr(9, end - 9);
}

const std::map<std::string, std::set<std::string>>& arrows() {
    static const std::map<std::string, std::set<std::string>> allowed = {
        {"core", {"core"}},
        {"model", {"core", "model"}},
        {"predict", {"core", "model", "predict"}},
        {"serving", {"core", "model", "predict", "serving"}},
        {"decide", {"core", "model", "predict", "serving", "decide"}},
        {"io", {"core", "model", "predict", "serving", "decide", "io"}},
        {"render", {"core", "model", "predict", "serving", "decide", "render"}},
        {"assess", {"core", "model", "predict", "serving", "io", "assess"}},
        {"measure", {"core", "model", "predict", "io", "measure"}},
        {"bench", {"core", "model", "predict", "io", "measure", "bench"}},
        {"analyze", {"core", "model", "predict", "decide", "serving", "io", "render", "analyze"}},
        {"ask", {"core", "model", "predict", "serving", "decide", "io", "render", "ask"}},
        {"serve", {"core", "model", "predict", "serving", "decide", "io", "render", "ask", "serve"}},
        {"cli",
         {"core", "model", "predict", "serving", "decide", "io", "render", "assess", "measure", "bench", "analyze",
          "ask", "serve", "cli"}},
    };
    return allowed;
}

/// Types that headers define outside of other types, by their full names, and the files that do. What is defined there
/// begins its line.
std::map<std::string, std::set<std::string>> types_of_headers() {
    const std::filesystem::path root = std::filesystem::path(ROOFLINE_SOURCE_DIR) / "src" / "roofline";
    std::map<std::string, std::set<std::string>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
        if (!entry.is_regular_file() || entry.path().extension() != ".hpp") continue;
        std::ifstream stream(entry.path());
        std::string space;
        for (std::string text; std::getline(stream, text);) {
            if (text.starts_with("namespace ")) space = text.substr(10, text.find(' ', 10) - 10);
            for (const std::string_view keyword : {"struct ", "class ", "enum class "}) {
                if (!text.starts_with(keyword) || text.ends_with(";")) continue;
                const std::string name = text.substr(keyword.size(), text.find(' ', keyword.size()) - keyword.size());
                files[space + "::" + name].insert(entry.path().lexically_relative(root).generic_string());
            }
        }
    }
    return files;
}

TEST(Includes, TheReaderOfIncludeLinesSeesThem) {
    EXPECT_EQ(includes_of_line("#include <vector>", "f", "core", 1).at(0).target, "vector");
    EXPECT_EQ(includes_of_line("  #  include \"roofline/io/units.hpp\"  // why", "f", "core", 1).at(0).target,
              "roofline/io/units.hpp");
    EXPECT_TRUE(includes_of_line("// #include <iostream>", "f", "core", 1).empty());
    EXPECT_EQ(room_of("roofline/io/families/x.hpp"), "io");
    EXPECT_EQ(room_of("fmt/format.h"), "");
}

TEST(Includes, EveryRoomHasItsArrows) {
    std::set<std::string> rooms;
    for (const Include& include : all_includes()) rooms.insert(include.room);
    EXPECT_GE(rooms.size(), 9U);
    for (const std::string& room : rooms) EXPECT_TRUE(arrows().contains(room)) << room << " is not in the list";
}

TEST(Includes, FollowTheArrowsBetweenRooms) {
    for (const Include& include : all_includes()) {
        const std::string target = room_of(include.target);
        if (target.empty()) continue;
        const auto allowed = arrows().find(include.room);
        ASSERT_NE(allowed, arrows().end()) << include.room;
        EXPECT_TRUE(allowed->second.contains(target))
            << include.file << ":" << include.line << ": " << include.room << " must not know " << include.target;
    }
}

TEST(Includes, QuotesAreForOurOwnFilesByTheirFullPath) {
    for (const Include& include : all_includes()) {
        EXPECT_EQ(include.quoted, include.target.starts_with("roofline/"))
            << include.file << ":" << include.line << ": " << include.target;
    }
}

TEST(Headers, DefineNoTypeTwiceUnderOneName) {
    // Two of one name are no error as long as no file includes both, but std::vector of the one may be that of the
    // other.
    const auto types = types_of_headers();
    EXPECT_TRUE(types.contains("roofline::Device"));
    EXPECT_TRUE(types.contains("roofline::assess::FitRow"));
    EXPECT_GT(types.size(), 300U);
    for (const auto& [name, files] : types)
        EXPECT_EQ(files.size(), 1U) << name << ": " << *files.begin() << " and " << *files.rbegin();
}

TEST(Includes, CoreModelPredictAndServingNeedNothingButTheStandardLibrary) {
    for (const Include& include : all_includes()) {
        if (!std::set<std::string>{"core", "model", "predict", "serving"}.contains(include.room)) continue;
        const bool ours = include.target.starts_with("roofline/");
        const bool standard = include.target.find('/') == std::string::npos && !include.target.ends_with(".h");
        EXPECT_TRUE(ours || standard) << include.file << ":" << include.line << ": " << include.target;
    }
}

TEST(Includes, OnlyTheRoomsOutsideTouchFilesThreadsOrStreams) {
    const std::set<std::string> outside = {"cli", "measure", "bench", "analyze", "serve"};
    const std::set<std::string> forbidden = {"iostream", "filesystem", "thread", "fstream"};
    for (const Include& include : all_includes()) {
        if (outside.contains(include.room)) continue;
        if (include.room == "assess" && include.target == "thread") continue;  // fits run side by side
        EXPECT_FALSE(forbidden.contains(include.target))
            << include.file << ":" << include.line << ": <" << include.target << ">";
    }
}

}  // namespace
}  // namespace roofline
