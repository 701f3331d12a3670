// How decode attention divides the keys of a kv head over blocks (splits), and these over clusters that run together.
// Blocks of a cluster meet in shared memory, clusters by way of the L2 (attention_meeting.cuh).
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace roofline::cuda::kernels {

constexpr int most_in_cluster = 8;  // blocks, on any device that has clusters
constexpr int most_clusters = 96;   // of a head
constexpr int most_meeting = 1024;  // blocks of all heads, where clusters meet: there is memory for as many

constexpr int ceil_of(int total, int each) {
    return (total + each - 1) / each;
}

struct Work {
    int heads;       // kv heads of all sequences
    int context;     // keys of each
    int fours;       // of a head's results: dimensions of all its query heads, four by four
    int threads;     // of a block
    int unit;        // keys a block takes at a time
    int unit_bytes;  // of these and their values
};

struct Division {
    int clusters;    // of a head
    int blocks;      // of a cluster
    int split_keys;  // keys of a block; the last blocks may have fewer or none, but no cluster has none
    double cost;     // in the time that a block takes for a unit of keys
};

/// The divisions to try, each with clusters of another size, the most promising first. `at_once`: how many blocks, in
/// clusters of so many, the device runs at the same time.
inline std::vector<Division> divisions(const Work& work, int fewest_blocks, int most_blocks,
                                       const std::function<int(int)>& at_once) {
    const int units = ceil_of(work.context, work.unit);
    std::vector<Division> all;
    for (int blocks = fewest_blocks; blocks <= std::min(units, most_blocks); ++blocks) {
        const int together = at_once(blocks);
        if (together == 0) continue;
        Division best{0, blocks, 0, 0.0};
        for (int clusters = 1; clusters * blocks <= units && clusters <= most_clusters; ++clusters) {
            const int splits = clusters * blocks;
            if (clusters > 1 && work.heads * splits > most_meeting) break;
            // A block takes the time of its keys, and a little to begin and to end, about that of one unit of them.
            const int rounds = ceil_of(work.heads * splits, together);
            double cost = rounds * (ceil_of(units, splits) + 1.0);
            // The L2 has to be asked for a ticket and then for the parts, 16 at a time; these are bytes as keys are.
            if (clusters > 1) {
                const int share = ceil_of(work.fours, blocks);
                cost += 1.0 + 0.25 * ceil_of(share, work.threads) * ceil_of(clusters, 16) +
                        16.0 * share * clusters / work.unit_bytes;
            }
            if (best.clusters == 0 || cost < best.cost) best.clusters = clusters, best.cost = cost;
        }
        const int each = ceil_of(units, best.clusters * blocks);
        best.clusters = ceil_of(ceil_of(units, each), blocks);
        best.split_keys = each * work.unit;
        all.push_back(best);
    }
    std::ranges::sort(all, {}, &Division::cost);
    // The largest clusters are worth a try where they do not promise most: what they leave to the L2 is least.
    std::size_t rank = 0;
    std::erase_if(all, [&](const Division& one) { return rank++ >= 2 && one.blocks < most_in_cluster; });
    return all;
}

}  // namespace roofline::cuda::kernels
