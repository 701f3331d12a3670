// Threads that share out work: every piece once, and none of another round.
#include "roofline/bench/threads.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "bench/team.hpp"

namespace roofline::bench {
namespace {

using testing::team;

TEST(Team, EveryChunkIsDoneOnce) {
    const auto threads = team(4);
    for (const std::int64_t chunks : {0, 1, 7, 1000}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(chunks));
        threads->run(chunks, [&](std::int64_t chunk, int) { ++done[static_cast<std::size_t>(chunk)]; });
        for (const auto& count : done) EXPECT_EQ(count, 1);
    }
}

TEST(Team, PartsFollowEachOtherFromNothingToAllAndGetShorter) {
    for (const std::int64_t total : {0, 1, 5, 16, 64, 100, 3584}) {
        for (const std::int64_t abreast : {1, 2, 3, 16}) {
            const Parts parts(total, abreast);
            EXPECT_EQ(parts.begin(0), 0);
            EXPECT_EQ(parts.begin(parts.count()), total);
            for (std::int64_t part = 0; part < parts.count(); ++part) {
                EXPECT_LE(parts.begin(part), parts.begin(part + 1)) << total << " for " << abreast << ", " << part;
            }
        }
    }
    // 64 for two: 16, 16; 8, 8; 4, 4; 2, 2; then 4 are left, two to each.
    const Parts parts(64, 2);
    std::vector<std::int64_t> begins;
    for (std::int64_t part = 0; part <= parts.count(); ++part) begins.push_back(parts.begin(part));
    EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 16, 32, 40, 48, 52, 56, 58, 60, 62, 64}));
    // None shorter than five: 16, 16; 8, 8; the next would have four, so 16 are shared out at once.
    const Parts longer(64, 2, 5);
    begins.clear();
    for (std::int64_t part = 0; part <= longer.count(); ++part) begins.push_back(longer.begin(part));
    EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 16, 32, 40, 48, 56, 64}));
}

TEST(Team, PartsOfOddNumbersFollowEachOtherToo) {
    for (const std::int64_t total : {0, 1, 2, 5, 16, 17, 64, 100, 3584}) {
        for (const std::int64_t abreast : {1, 2, 3, 16}) {
            for (const std::int64_t least : {1, 4}) {
                const Parts parts(total, abreast, least);
                EXPECT_EQ(parts.odd_begin(0), 0);
                EXPECT_EQ(parts.odd_begin(parts.count()), total);
                for (std::int64_t part = 0; part < parts.count(); ++part) {
                    const std::int64_t has = parts.odd_begin(part + 1) - parts.odd_begin(part);
                    EXPECT_GE(has, 0) << total << " for " << abreast << ", " << part;
                    if (total >= abreast && part + 1 < parts.count()) {
                        EXPECT_EQ(has % 2, 1) << total << ", " << part;
                    }
                }
            }
        }
    }
    // 16, 16; 8, 8; 4, 4; 2, 2; 2, 2 with every other begin one later.
    const Parts parts(64, 2);
    std::vector<std::int64_t> begins;
    for (std::int64_t part = 0; part <= parts.count(); ++part) begins.push_back(parts.odd_begin(part));
    EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 17, 32, 41, 48, 53, 56, 59, 60, 63, 64}));
}

TEST(Team, RangesCoverEverythingOnceInMultiplesOfTheirGrain) {
    for (const int count : {1, 4}) {
        const auto threads = team(count);
        for (const std::int64_t total : {0, 1, 8, 70, 1000}) {
            std::vector<std::atomic<int>> done(static_cast<std::size_t>(total));
            threads->ranges(total, 8, [&](std::int64_t first, std::int64_t last) {
                EXPECT_EQ(first % 8, 0);
                for (std::int64_t i = first; i < last; ++i) ++done[static_cast<std::size_t>(i)];
            });
            for (const auto& times : done) EXPECT_EQ(times, 1);
        }
    }
}

// More threads than there are processors, so that some come late: to a round that is over, or to the next one.
TEST(Team, DoesEveryChunkOnceAndNoneOfAnotherRound) {
    const auto threads = team(8);
    for (std::int64_t round = 0; round < 3000; ++round) {
        const std::int64_t chunks = 2 + round % 37;
        std::vector<int> done(static_cast<std::size_t>(chunks), 0);  // plain: each is one thread's, and then ours
        std::atomic<std::int64_t> rounds{0};
        threads->run(chunks, [&, round](std::int64_t chunk, int) {
            ASSERT_LT(chunk, chunks);
            ++done[static_cast<std::size_t>(chunk)];
            rounds += round;
        });
        EXPECT_EQ(std::count(done.begin(), done.end(), 1), chunks);
        EXPECT_EQ(rounds, round * chunks);
    }
}

TEST(Team, RangesOfOddMultiplesCoverEverythingOnceToo) {
    const auto threads = team(4);
    for (const std::int64_t total : {0, 1, 8, 70, 1000}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(total));
        const auto work = [&](std::int64_t first, std::int64_t last) {
            if (total >= 4 * 8 && last < total) {
                EXPECT_EQ((last - first) % 16, 8) << first << " to " << last << " of " << total;
            }
            for (std::int64_t i = first; i < last; ++i) ++done[static_cast<std::size_t>(i)];
        };
        threads->ranges(total, 8, work, 1, Threads::Multiple::odd);
        for (const auto& times : done) EXPECT_EQ(times, 1);
    }
}

}  // namespace
}  // namespace roofline::bench
