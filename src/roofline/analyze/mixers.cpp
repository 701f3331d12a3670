#include "roofline/analyze/mixers.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace roofline::analyze {
namespace {

using Sort = Piece::Sort;

/// More than any activation has between its products, written out operator by operator.
constexpr std::size_t steps_of_a_mixer = 16;

}  // namespace

std::vector<std::size_t> residuals(std::span<const Piece> pieces) {
    // Some scale both before they add them: few kernels, each of as many numbers as the sum.
    constexpr std::size_t most_between = 3;
    const auto follows_product = [&](std::size_t i) {
        for (std::size_t k = i; k-- > 0 && i - k <= most_between;) {
            if (pieces[k].sort == Sort::product || pieces[k].sort == Sort::tail) return true;
            if (pieces[k].sort != Sort::other || pieces[k].numbers != pieces[i].numbers) return false;
        }
        return false;
    };
    using Size = std::array<double, 3>;  // numbers, how many of them lie side by side, dimensions
    const auto size_of = [](const Piece& piece) { return Size{piece.numbers, piece.last, piece.rank}; };
    std::map<Size, std::size_t> sizes;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        if (pieces[i].sort == Sort::add && pieces[i].numbers > 0.0 && follows_product(i)) ++sizes[size_of(pieces[i])];
    }
    Size wanted{};
    std::size_t most = 0;
    for (const auto& [size, count] : sizes) {
        if (count <= most) continue;
        most = count;
        wanted = size;
    }
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool sum = most > 0 && pieces[i].sort == Sort::add && size_of(pieces[i]) == wanted;
        const bool compiled = i > 0 && pieces[i].sums && pieces[i - 1].sort == Sort::product;
        if (sum || compiled) found.push_back(i);
    }
    return found;
}

std::vector<std::size_t> unpacked_for(std::span<const Piece> pieces) {
    std::vector<std::size_t> product_of(pieces.size(), pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const double weights = pieces[i].columns * pieces[i].inner;
        // One that reads them as they are has them quantised before it, not made whole.
        if (pieces[i].sort != Sort::product || pieces[i].packed || weights <= 0.0) continue;
        std::size_t first = i;
        bool packed = false;
        for (std::size_t k = i; k-- > 0;) {
            const double share = pieces[k].numbers > 0.0 ? weights / pieces[k].numbers : 0.0;
            const bool same = share == 1.0 || share == 2.0 || share == 4.0 || share == 8.0;
            if (!same || pieces[k].sort == Sort::product) break;
            if (pieces[k].packed) {
                packed = true;
                first = k;
            }
        }
        for (std::size_t k = first; packed && k < i; ++k) product_of[k] = i;
    }
    return product_of;
}

std::vector<Region> find_mixers(std::span<const Piece> pieces, const std::vector<std::size_t>& residuals,
                                const std::vector<Region>& attention, std::set<MixerProducts>& known) {
    std::vector<Region> mixers;
    const std::vector<std::size_t> unpacked = unpacked_for(pieces);
    std::size_t begin = 0;
    for (const std::size_t end : residuals) {
        const std::size_t from = begin;
        begin = end + 1;
        const bool attends = std::any_of(attention.begin(), attention.end(),
                                         [&](const Region& core) { return core.begin < end && core.end > from; });
        if (attends) continue;
        std::vector<std::size_t> products;
        std::size_t unpacking = 0;
        bool scans = false;
        bool experts = false;
        for (std::size_t i = from; i < end; ++i) {
            if (pieces[i].sort == Sort::product) products.push_back(i);
            if (unpacked[i] < pieces.size() && !products.empty()) ++unpacking;
            scans = scans || (pieces[i].sort == Sort::mixer && !products.empty());
            experts = experts || pieces[i].sort == Sort::choose || pieces[i].sort == Sort::grouped;
        }
        if (products.size() < 2 || experts) continue;
        const Piece& in = pieces[products.front()];
        // A router makes few numbers of many, and the experts behind it read what it read.
        if (in.columns * 8.0 <= in.inner && pieces[products[1]].inner == in.inner) continue;
        const Piece& out = pieces[products.back()];
        const MixerProducts shapes{in.columns, in.inner, out.columns, out.inner};
        const bool long_way = products.back() - products.front() - products.size() + 1 - unpacking > steps_of_a_mixer;
        if (!scans && !long_way && !known.contains(shapes)) continue;
        known.insert(shapes);
        mixers.push_back({products.front() + 1, products.back()});
    }
    return mixers;
}

}  // namespace roofline::analyze
