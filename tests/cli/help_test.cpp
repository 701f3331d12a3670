// What --help lists, held to what newer versions of the command line library refuse.
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "cli/run.hpp"

namespace roofline::cli::testing {
namespace {

// CLI11 from 2.3 on takes "-n" and "--n" for one name and ends the program where a verb has both.
TEST(Help, NoVerbHasALetterBothShortAndLong) {
    for (const char* verb : {"predict", "op", "advise", "sweep", "plan", "measure", "bench", "analyze", "compare",
                             "plot", "serve", "validate", "calibrate", "devices", "models"}) {
        const Answer help = run({verb, "--help"});
        ASSERT_EQ(help.exit_code, 0) << verb;
        EXPECT_EQ(help.out.find("{false}"), std::string::npos) << verb << ": a flag that nobody can read";
        std::map<char, std::string> seen;
        std::istringstream lines(help.out);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string names;
            if (!line.starts_with("  -") || !(words >> names)) continue;
            std::istringstream split(names);
            for (std::string name; std::getline(split, name, ',');) {
                const std::string bare = name.substr(name.find_first_not_of('-'));
                if (bare.size() != 1) continue;
                EXPECT_FALSE(seen.contains(bare[0])) << verb << ": " << seen[bare[0]] << " and " << name;
                seen[bare[0]] = name;
            }
        }
        EXPECT_TRUE(seen.contains('h')) << verb;
    }
}

}  // namespace
}  // namespace roofline::cli::testing
