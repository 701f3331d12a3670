// Choosing entries by small keys, beside what backends_test holds against fp64.
#include "roofline/bench/kernels/chosen.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "roofline/bench/operands.hpp"

namespace roofline::bench {
namespace {

/// Where products.hpp says that byte `at` of a row lies, in rows of 32.
std::size_t place_of(Tiles tiles, std::size_t row, std::size_t at) {
    const std::size_t tile = row / 4 * 4 * 32;
    if (tiles == Tiles::eights) return tile + at / 16 * 64 + row % 4 / 2 * 32 + at % 16 / 8 * 16 + row % 2 * 8 + at % 8;
    if (tiles == Tiles::fours) return tile + at / 4 * 16 + row % 4 * 4 + at % 4;
    return row * 32 + at;
}

TEST(Chosen, IndexKeysLieAsWeightsInInt8Do) {
    const auto threads = std::move(*Threads::start(2));
    constexpr std::int64_t positions = 10;
    constexpr std::int64_t dim = 32;
    std::vector<float> rows(positions * dim);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = random_value(i);
    for (const Tiles tiles : {Tiles::none, Tiles::eights, Tiles::fours}) {
        const std::int64_t room = IndexKeys::room(positions);
        EXPECT_EQ(room, 12);
        std::vector<std::int8_t> values(12 * dim);
        std::vector<float> scales(12);
        const IndexKeys keys{values.data(), scales.data(), dim, room, tiles};
        write_index_keys({rows.data(), dim}, keys, 1, 5, 0, *threads);
        write_index_keys({rows.data() + 5 * dim, dim}, keys, 1, positions - 5, 5, *threads);
        std::vector<float> back(dim);
        for (std::size_t row = 0; row < positions; ++row) {
            keys.read(0, static_cast<std::int64_t>(row), back.data());
            for (std::size_t i = 0; i < dim; ++i) {
                EXPECT_NEAR(back[i], rows[row * dim + i], 0.5F / 127.0F) << row << ' ' << i;
                EXPECT_EQ(back[i], static_cast<float>(values[place_of(tiles, row, i)]) * scales[row]);
            }
        }
    }
}

TEST(Chosen, TheBestScoresAreChosenAndOfEqualOnesTheFirst) {
    const auto threads = std::move(*Threads::start(2));
    // Three tokens that end at seven positions; what lies beyond a token's own place is better, and not seen.
    const std::vector<float> scores = {3,  1, 2,  5, 2, 9, 9,  // 5 seen: 3, 0, and the first 2
                                       1,  1, 1,  1, 1, 1, 9,  // 6 seen, all alike
                                       -4, 0, -1, 7, 6, 5, 8};
    std::vector<std::int64_t> places(9, -1);
    choose_entries(scores.data(), 7, 3, 3, 4, 3, places.data(), *threads);
    EXPECT_EQ(places, (std::vector<std::int64_t>{0, 2, 3, 0, 1, 2, 3, 4, 6}));
    // A token that sees fewer has nothing to choose.
    std::vector<std::int64_t> six(18, -1);
    choose_entries(scores.data(), 7, 3, 3, 4, 6, six.data(), *threads);
    EXPECT_EQ(six[0], -1);
    EXPECT_EQ(std::vector<std::int64_t>(six.begin() + 6, six.begin() + 12),
              (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(std::vector<std::int64_t>(six.begin() + 12, six.end()), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace roofline::bench
