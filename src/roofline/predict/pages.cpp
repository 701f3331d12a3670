#include "roofline/predict/pages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace roofline::predict {
namespace {

using Keeps = PageTable::Keeps;

double blocks_of(double tokens, double block) {
    return std::ceil(tokens / block);
}

/// Layers that keep the same thing: what one token, or one sequence, adds to each.
struct Kind {
    Keeps keeps = Keeps::everything;
    double layers = 0.0;
    double reach = 0.0;
    double bytes = 0.0;  // per token; of a state, per sequence
};

std::string_view layer_of(const model::Cache& cache) {
    const std::string_view name = cache.name;
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? name : name.substr(0, dot);
}

Kind kind_of(const model::Cache& cache) {
    Kind kind;
    kind.layers = cache.layers;
    if (cache.bytes_per_entry <= 0.0) {
        kind.keeps = Keeps::state;
        kind.bytes = cache.bytes_per_sequence;
        return kind;
    }
    kind.bytes = cache.bytes_per_entry / cache.reach.ratio;
    if (cache.reach.chunk > 0.0) {
        kind.keeps = Keeps::chunk;
        kind.reach = cache.reach.chunk;
    } else if (std::isfinite(cache.reach.kept())) {
        kind.keeps = Keeps::window;
        kind.reach = cache.reach.kept();
    }
    return kind;
}

/// The parts of one layer's state (recurrence and convolution) are one page. Layers that keep alike are one kind.
std::vector<Kind> kinds_of(const model::Lowered& lowered) {
    std::vector<Kind> kinds;
    std::vector<std::string_view> state_layers;
    std::vector<Kind> states;
    const auto add = [&](const Kind& kind) {
        const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& other) {
            return other.keeps == kind.keeps && other.reach == kind.reach && other.bytes == kind.bytes;
        });
        if (same != kinds.end()) {
            same->layers += kind.layers;
        } else {
            kinds.push_back(kind);
        }
    };
    for (const model::Cache& cache : lowered.caches) {
        const Kind kind = kind_of(cache);
        if (kind.layers <= 0.0 || kind.bytes <= 0.0) continue;
        if (kind.keeps != Keeps::state) {
            add(kind);
            continue;
        }
        const auto layer = std::find(state_layers.begin(), state_layers.end(), layer_of(cache));
        if (layer == state_layers.end()) {
            state_layers.push_back(layer_of(cache));
            states.push_back(kind);
        } else {
            states[static_cast<std::size_t>(layer - state_layers.begin())].bytes += kind.bytes;
        }
    }
    for (const Kind& state : states) add(state);
    return kinds;
}

PageTable table_of(const Kind& kind, double block_tokens, const EngineRules& rules) {
    PageTable table;
    table.keeps = kind.keeps;
    table.layers = kind.layers;
    table.reach = kind.reach;
    if (kind.keeps == Keeps::state) {
        table.state_blocks = rules.state_blocks.value;
    } else {
        table.block_tokens = block_tokens;
    }
    return table;
}

/// All layers keep alike: one table, and a block has room in every layer.
PagePool one_table(const std::vector<Kind>& kinds, double block_tokens, const EngineRules& rules) {
    PagePool pool;
    PageTable table = table_of(kinds.front(), block_tokens, rules);
    table.layers = 0.0;
    for (const Kind& kind : kinds) {
        table.layers += kind.layers;
        pool.block_bytes += kind.layers * kind.bytes * (kind.keeps == Keeps::state ? 1.0 : block_tokens);
    }
    pool.tables.push_back(table);
    return pool;
}

bool keep_alike(const std::vector<Kind>& kinds) {
    return std::all_of(kinds.begin(), kinds.end(), [&](const Kind& kind) {
        return kind.keeps == kinds.front().keeps && kind.reach == kinds.front().reach;
    });
}

/// F41: groups of equally many layers whose pages have one size, so that any block can serve any of them.
PagePool shared_pool(const std::vector<Kind>& kinds, double block_tokens, const EngineRules& rules) {
    // A state is one page. Attention's blocks grow until a page of theirs can hold it.
    double token = 0.0;
    double state = 0.0;
    for (const Kind& kind : kinds) {
        double& widest = kind.keeps == Keeps::state ? state : token;
        widest = std::max(widest, kind.bytes);
    }
    double block = block_tokens;
    if (state > 0.0) block = std::max(block, block_tokens * blocks_of(state, block_tokens * token));
    const double page = block * token;

    double fewest = std::numeric_limits<double>::infinity();
    double most = 0.0;
    for (const Kind& kind : kinds) {
        fewest = std::min(fewest, kind.layers);
        most = std::max(most, kind.layers);
    }
    const double group = most < fewest * rules.group_slack.value ? most : fewest;

    PagePool pool;
    pool.block_bytes = group * page;
    for (const Kind& kind : kinds) {
        // Narrower layers hold more tokens in a page of the common size, if it divides evenly; else the page is padded.
        const double own_page = kind.keeps == Keeps::state ? page : block * kind.bytes;
        const double ratio = page / own_page;
        const double own_block = ratio == std::floor(ratio) ? block * ratio : block;
        const double groups = blocks_of(kind.layers, group);
        double left = kind.layers;
        for (double i = 0.0; i < groups; i += 1.0) {
            PageTable table = table_of(kind, own_block, rules);
            table.layers = std::ceil(left / (groups - i));
            table.padding = group - table.layers;
            left -= table.layers;
            pool.tables.push_back(table);
        }
    }
    return pool;
}

/// F41: a pool for each kind.
std::vector<PagePool> own_pools(const std::vector<Kind>& kinds, double block_tokens, const EngineRules& rules) {
    std::vector<PagePool> pools;
    for (const Kind& kind : kinds) {
        const auto same = std::find_if(pools.begin(), pools.end(), [&](const PagePool& pool) {
            return pool.tables.front().keeps == kind.keeps && pool.tables.front().reach == kind.reach;
        });
        const double bytes = kind.layers * kind.bytes * (kind.keeps == Keeps::state ? 1.0 : block_tokens);
        if (same != pools.end()) {
            same->block_bytes += bytes;
            same->tables.front().layers += kind.layers;
            continue;
        }
        PagePool pool;
        pool.block_bytes = bytes;
        pool.tables.push_back(table_of(kind, block_tokens, rules));
        pools.push_back(pool);
    }
    return pools;
}

/// F41: fixed ratios: so many tokens of a window for each token kept, so many bytes of states for each byte of the
/// rest.
void split_by_ratios(std::vector<PagePool>& pools, const EngineRules& rules) {
    double tokens = 0.0;
    double states = 0.0;
    for (PagePool& pool : pools) {
        const Keeps keeps = pool.tables.front().keeps;
        const double ratio = keeps == Keeps::everything || !rules.window_ratio ? 1.0 : rules.window_ratio->value;
        pool.share = pool.block_bytes * (keeps == Keeps::state ? 1.0 : ratio);
        (keeps == Keeps::state ? states : tokens) += pool.share;
    }
    const double ratio = rules.state_ratio && states > 0.0 && tokens > 0.0 ? rules.state_ratio->value : states / tokens;
    for (PagePool& pool : pools) {
        const bool state = pool.tables.front().keeps == Keeps::state;
        pool.share *= tokens <= 0.0 ? 1.0 / states : (state ? ratio / states : 1.0 / tokens) / (1.0 + ratio);
    }
}

}  // namespace

double PageTable::held(double context) const {
    if (keeps == Keeps::state) return state_blocks;
    const double all = blocks_of(context, block_tokens);
    if (keeps == Keeps::everything || context <= reach) return all;
    if (keeps == Keeps::chunk) return blocks_of(reach, block_tokens);
    return std::min(all, blocks_of(reach - 1.0, block_tokens) + 1.0);
}

double PageTable::admitted(double longest, double in_flight) const {
    switch (keeps) {
        case Keeps::state:
            return state_blocks;
        case Keeps::everything:
            return blocks_of(longest, block_tokens);
        case Keeps::chunk:
            return blocks_of(std::min(reach + in_flight, longest), block_tokens);
        case Keeps::window:
            return blocks_of(std::min(reach - 1.0 + in_flight, longest), block_tokens) + 1.0;
    }
    return 0.0;
}

double PageTable::in_flight(double context, double tokens) const {
    const bool gives_back = keeps == Keeps::window || keeps == Keeps::chunk;
    if (!gives_back || context <= reach) return 0.0;
    return blocks_of(std::min(tokens, context - reach), block_tokens);
}

double PagePool::held(double context) const {
    double sum = 0.0;
    for (const PageTable& table : tables) sum += table.held(context);
    return sum;
}

double PagePool::admitted(double longest, double in_flight) const {
    double sum = 0.0;
    for (const PageTable& table : tables) sum += table.admitted(longest, in_flight);
    return sum;
}

double PagePool::in_flight(double context, double tokens) const {
    double sum = 0.0;
    for (const PageTable& table : tables) sum += table.in_flight(context, tokens);
    return sum;
}

double PagedCache::share(const PagePool& pool, double context) const {
    if (pools.size() == 1 || split_once) return pool.share;
    return pool.held(context) * pool.block_bytes / bytes(context);
}

double PagedCache::bytes(double context) const {
    double sum = 0.0;
    for (const PagePool& pool : pools) sum += pool.held(context) * pool.block_bytes;
    return sum;
}

double PagedCache::needed(double sequences, double context, double in_flight) const {
    double most = 0.0;
    for (const PagePool& pool : pools) {
        const double blocks = sequences * pool.held(context) + pool.in_flight(context, in_flight);
        most = std::max(most, blocks * pool.block_bytes / share(pool, context));
    }
    return most;
}

double PagedCache::tables() const {
    double count = 0.0;
    for (const PagePool& pool : pools) count += static_cast<double>(pool.tables.size());
    return count;
}

PagedCache paged(const model::Lowered& lowered, const EngineRules& rules, double block_tokens) {
    const std::vector<Kind> kinds = kinds_of(lowered);
    PagedCache cache;
    cache.block_tokens = block_tokens;
    if (kinds.empty()) return cache;
    if (keep_alike(kinds)) {
        cache.pools.push_back(one_table(kinds, block_tokens, rules));
    } else if (rules.layout == EngineRules::Layout::tables) {
        cache.pools.push_back(shared_pool(kinds, block_tokens, rules));
    } else {
        cache.pools = own_pools(kinds, block_tokens, rules);
        cache.split_once = rules.window_ratio || rules.state_ratio;
        if (cache.split_once) split_by_ratios(cache.pools, rules);
    }
    double smallest = std::numeric_limits<double>::infinity();
    for (const PagePool& pool : cache.pools) {
        for (const PageTable& table : pool.tables) {
            if (table.block_tokens > 0.0) smallest = std::min(smallest, table.block_tokens);
        }
    }
    if (std::isfinite(smallest)) cache.block_tokens = smallest;
    return cache;
}

}  // namespace roofline::predict
