#include "roofline/analyze/mixers.hpp"

#include <algorithm>
#include <map>

namespace roofline::analyze {
namespace {

using Sort = Piece::Sort;

/// More than any activation has between its products, written out operator by operator.
constexpr std::size_t steps_of_a_mixer = 16;

}  // namespace

std::vector<std::size_t> residuals(std::span<const Piece> pieces) {
    std::map<double, std::size_t> sizes;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const Sort before = pieces[i - 1].sort;
        if (pieces[i].sort == Sort::add && pieces[i].numbers > 0.0 && (before == Sort::product || before == Sort::tail))
            ++sizes[pieces[i].numbers];
    }
    double wanted = 0.0;
    std::size_t most = 0;
    for (const auto& [size, count] : sizes) {
        if (count <= most) continue;
        most = count;
        wanted = size;
    }
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (most > 0 && pieces[i].sort == Sort::add && pieces[i].numbers == wanted) found.push_back(i);
    }
    return found;
}

std::vector<Region> find_mixers(std::span<const Piece> pieces, const std::vector<std::size_t>& residuals,
                                const std::vector<Region>& attention, std::set<MixerProducts>& known) {
    std::vector<Region> mixers;
    std::size_t begin = 0;
    for (const std::size_t end : residuals) {
        const std::size_t from = begin;
        begin = end + 1;
        const bool attends = std::any_of(attention.begin(), attention.end(),
                                         [&](const Region& core) { return core.begin < end && core.end > from; });
        if (attends) continue;
        std::vector<std::size_t> products;
        bool scans = false;
        bool experts = false;
        for (std::size_t i = from; i < end; ++i) {
            if (pieces[i].sort == Sort::product) products.push_back(i);
            scans = scans || (pieces[i].sort == Sort::mixer && !products.empty());
            experts = experts || pieces[i].sort == Sort::choose || pieces[i].sort == Sort::grouped;
        }
        if (products.size() < 2 || experts) continue;
        const Piece& in = pieces[products.front()];
        // A router makes few numbers of many, and the experts behind it read what it read.
        if (in.columns * 8.0 <= in.inner && pieces[products[1]].inner == in.inner) continue;
        const Piece& out = pieces[products.back()];
        const MixerProducts shapes{in.columns, in.inner, out.columns, out.inner};
        const bool long_way = products.back() - products.front() - products.size() + 1 > steps_of_a_mixer;
        if (!scans && !long_way && !known.contains(shapes)) continue;
        known.insert(shapes);
        mixers.push_back({products.front() + 1, products.back()});
    }
    return mixers;
}

}  // namespace roofline::analyze
