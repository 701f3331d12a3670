// The closed forms against counting one by one, over all small positions.
#include "roofline/model/reach.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace roofline::model {
namespace {

/// What the query at position x (from 1) sees, written as a set, straight from the definition of each kind.
using Visible = std::function<std::set<int>(int x)>;

std::set<int> range(int first, int last) {
    std::set<int> result;
    for (int i = first; i <= last; ++i) result.insert(i);
    return result;
}

struct Fixed {
    std::string what;
    Reach reach;
    Visible visible;
};

/// Kinds where the position alone decides what is seen.
std::vector<Fixed> fixed_kinds() {
    std::vector<Fixed> kinds;
    kinds.push_back({"full", Reach::full(), [](int x) { return range(1, x); }});
    for (const int w : {1, 2, 5, 16}) {
        kinds.push_back(
            {"window " + std::to_string(w), Reach::window(w), [w](int x) { return range(std::max(1, x - w + 1), x); }});
    }
    for (const int c : {1, 3, 8}) {
        kinds.push_back(
            {"chunk " + std::to_string(c), Reach::chunked(c), [c](int x) { return range((x - 1) / c * c + 1, x); }});
    }
    for (const int r : {1, 3, 4}) {
        kinds.push_back({"pooled " + std::to_string(r), Reach::pooled(r), [r](int x) { return range(1, x / r); }});
    }
    return kinds;
}

struct Chosen {
    std::string what;
    Reach reach;
    std::function<int(int x)> count;      // entries the query picks
    std::function<int(int x)> available;  // entries there are
};

/// Kinds where an indexer decides: only the number is known.
std::vector<Chosen> chosen_kinds() {
    std::vector<Chosen> kinds;
    for (const int k : {1, 4, 9}) {
        kinds.push_back({"best " + std::to_string(k), Reach::best(k), [k](int x) { return std::min(k, x); },
                         [](int x) { return x; }});
        for (const int r : {2, 4}) {
            kinds.push_back({"best " + std::to_string(k) + " of pooled " + std::to_string(r), Reach::pooled(r, k),
                             [k, r](int x) { return std::min(k, x / r); }, [r](int x) { return x / r; }});
        }
    }
    for (const int b : {2, 4}) {
        for (const int blocks : {1, 3}) {
            // `blocks` blocks of b, the query's own among them: that one is filled only up to the query.
            const auto count = [b, blocks](int x) {
                const int own = (x - 1) % b + 1;
                const int earlier = (x - 1) / b;
                return own + b * std::min(blocks - 1, earlier);
            };
            kinds.push_back({std::to_string(blocks) + " blocks of " + std::to_string(b), Reach::best(b * blocks, b),
                             count, [](int x) { return x; }});
        }
    }
    return kinds;
}

Sequences group(double count, int past, int fresh) {
    return {Phase::prefill, count, static_cast<double>(fresh), static_cast<double>(past), 1.0};
}

TEST(Reach, PairsAndKeysMatchCountingOneByOne) {
    for (const Fixed& kind : fixed_kinds()) {
        for (int past = 0; past <= 30; ++past) {
            for (int fresh = 1; fresh <= 20; ++fresh) {
                std::set<int> read;
                double products = 0.0;
                for (int x = past + 1; x <= past + fresh; ++x) {
                    const auto seen = kind.visible(x);
                    products += static_cast<double>(seen.size());
                    read.insert(seen.begin(), seen.end());
                }
                ASSERT_EQ(pairs(kind.reach, group(1, past, fresh)), products)
                    << kind.what << ", past " << past << ", new " << fresh;
                ASSERT_EQ(keys(kind.reach, group(1, past, fresh)), static_cast<double>(read.size()))
                    << kind.what << ", past " << past << ", new " << fresh;
            }
        }
    }
}

TEST(Reach, ChosenEntriesMatchCountingOneByOne) {
    for (const Chosen& kind : chosen_kinds()) {
        for (int past = 0; past <= 30; ++past) {
            for (int fresh = 1; fresh <= 20; ++fresh) {
                double products = 0.0;
                for (int x = past + 1; x <= past + fresh; ++x) products += kind.count(x);
                const double most = std::min(products, static_cast<double>(kind.available(past + fresh)));
                ASSERT_EQ(pairs(kind.reach, group(1, past, fresh)), products)
                    << kind.what << ", past " << past << ", new " << fresh;
                ASSERT_EQ(keys(kind.reach, group(1, past, fresh)), most)
                    << kind.what << ", past " << past << ", new " << fresh;
            }
        }
    }
}

TEST(Reach, AttendedIsWhatOneQuerySees) {
    for (int x = 1; x <= 60; ++x) {
        for (const Fixed& kind : fixed_kinds())
            ASSERT_EQ(attended(kind.reach, x), static_cast<double>(kind.visible(x).size())) << kind.what << " " << x;
        for (const Chosen& kind : chosen_kinds())
            ASSERT_EQ(attended(kind.reach, x), static_cast<double>(kind.count(x))) << kind.what << " " << x;
    }
}

TEST(Reach, PairsAddUpOverTheChunksOfAPrompt) {
    std::vector<Reach> reaches;
    for (const Fixed& kind : fixed_kinds()) reaches.push_back(kind.reach);
    for (const Chosen& kind : chosen_kinds()) reaches.push_back(kind.reach);
    for (const Reach& reach : reaches) {
        for (const int chunk : {1, 7, 10, 32}) {
            double sum = 0.0;
            for (int past = 0; past < 70; past += chunk)
                sum += pairs(reach, group(1, past, std::min(chunk, 70 - past)));
            EXPECT_EQ(sum, pairs(reach, group(1, 0, 70))) << describe(reach) << " in chunks of " << chunk;
        }
    }
}

TEST(Reach, SequencesMultiply) {
    for (const Fixed& kind : fixed_kinds()) {
        EXPECT_EQ(pairs(kind.reach, group(5, 11, 6)), 5.0 * pairs(kind.reach, group(1, 11, 6))) << kind.what;
        EXPECT_EQ(keys(kind.reach, group(5, 11, 6)), 5.0 * keys(kind.reach, group(1, 11, 6))) << kind.what;
    }
}

TEST(Reach, ACausalPromptHasHalfTheSquare) {
    EXPECT_EQ(pairs(Reach::full(), group(1, 0, 512)), 131328.0);  // 512 x 513 / 2
    EXPECT_EQ(pairs(Reach::full(), group(1, 4095, 1)), 4096.0);   // a decode step at context 4096
}

TEST(Reach, NoSequencesReadNothingAndAreNotNaN) {
    for (const Fixed& kind : fixed_kinds()) {
        EXPECT_EQ(pairs(kind.reach, group(0, 10, 4)), 0.0) << kind.what;
        EXPECT_EQ(keys(kind.reach, group(0, 10, 4)), 0.0) << kind.what;
    }
    for (const Chosen& kind : chosen_kinds()) {
        EXPECT_EQ(pairs(kind.reach, group(0, 10, 4)), 0.0) << kind.what;
        EXPECT_EQ(keys(kind.reach, group(0, 10, 4)), 0.0) << kind.what;
    }
}

TEST(Reach, NoNewTokensReadNothing) {
    for (const Fixed& kind : fixed_kinds()) {
        EXPECT_EQ(pairs(kind.reach, group(1, 10, 0)), 0.0) << kind.what;
        EXPECT_EQ(keys(kind.reach, group(1, 10, 0)), 0.0) << kind.what;
    }
}

TEST(Reach, OnlyWindowsAndChunksForget) {
    EXPECT_EQ(Reach::full().kept(), Reach::everything);
    EXPECT_EQ(Reach::best(2048).kept(), Reach::everything) << "any key may be chosen later";
    EXPECT_EQ(Reach::pooled(4, 1024).kept(), Reach::everything);
    EXPECT_EQ(Reach::window(4096).kept(), 4096.0);
    EXPECT_EQ(Reach::chunked(8192).kept(), 8192.0);
}

}  // namespace
}  // namespace roofline::model
