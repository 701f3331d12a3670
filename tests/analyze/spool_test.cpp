// Long lists that go to a file when memory is used up: nothing may depend on where they lie.
#include "roofline/analyze/spool.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "places.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/text.hpp"

namespace roofline::analyze {
namespace {

/// No memory for lists while it lives.
class AllInTheFile {
  public:
    AllInTheFile() { spool_room::keep_in_memory(0); }
    ~AllInTheFile() { spool_room::keep_in_memory(spool_room::usual_bytes_in_memory); }
};

// 300,000 numbers of 8 bytes are three blocks of 1 MiB (131,072 numbers each).
TEST(Spool, KeepsWhatItIsGivenInAFileToo) {
    const AllInTheFile file;
    const std::size_t before = spool_room::mapped();
    {
        Spool<std::uint64_t> list;
        for (std::uint64_t i = 0; i < 300'000; ++i) list.push_back(i * i);
        EXPECT_EQ(spool_room::mapped() - before, std::size_t{3} << 20U);
        spool_room::let_go();
        for (std::uint64_t i = 0; i < 300'000; ++i) ASSERT_EQ(list[i], i * i);
        std::uint64_t next = 0;
        for (const std::uint64_t one : list) {
            ASSERT_EQ(one, next * next);
            ++next;
        }
        EXPECT_EQ(next, 300'000U);
        EXPECT_EQ(list.back(), 299'999ULL * 299'999ULL);
    }
    EXPECT_EQ(spool_room::mapped(), before);
}

TEST(Spool, StaysInMemoryWhileThereIsSome) {
    const std::size_t before = spool_room::mapped();
    const Spool<std::uint32_t> list(1'000'000, 7U);
    EXPECT_EQ(spool_room::mapped(), before);
    EXPECT_EQ(std::accumulate(list.begin(), list.end(), std::uint64_t{0}), 7'000'000U);
}

TEST(Spool, PutsInOrderWhatLiesInBlocks) {
    const AllInTheFile file;
    Spool<std::uint32_t> list;
    std::vector<std::uint32_t> same;
    std::uint32_t number = 1;
    for (int i = 0; i < 700'000; ++i) {
        number = number * 1664525U + 1013904223U;
        list.push_back(number);
        same.push_back(number);
    }
    put_in_order(list, [](std::uint32_t a, std::uint32_t b) { return a < b; });
    std::sort(same.begin(), same.end());
    EXPECT_TRUE(std::equal(list.begin(), list.end(), same.begin(), same.end()));
}

TEST(Spool, MovedListsLeaveNothingBehind) {
    Spool<std::uint32_t> list(10, 3U);
    Spool<std::uint32_t> other = std::move(list);
    EXPECT_EQ(other.size(), 10U);
    other = {};
    EXPECT_TRUE(other.empty());
}

TEST(Spool, AnAnalysisIsTheSameWhereverItsListsLie) {
    const auto analysis = [] {
        auto input = open_input(ROOFLINE_SOURCE_DIR "/tests/analyze/data/hf_llama_1b_h200_torch_profiler.json.gz");
        EXPECT_TRUE(input);
        auto result = analyze(*input, {});
        EXPECT_TRUE(result);
        return result ? analysis_text(*result, {}) : std::string();
    };
    const std::string in_memory = analysis();
    const AllInTheFile file;
    EXPECT_EQ(analysis(), in_memory);
}

}  // namespace
}  // namespace roofline::analyze
