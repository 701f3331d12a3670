#include "roofline/decide/prompt_pool.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "roofline/core/collective.hpp"

namespace roofline::decide {

PromptPool prompt_pool(const std::vector<PricedLayout>& layouts, std::size_t layout, std::size_t step, double prompt) {
    const PricedLayout& priced = layouts[layout];
    const StepSize& size = priced.steps[step];
    PromptPool pool{layout, step, priced.layout.devices(), 0.0, 0.0, 0.0};
    pool.capacity = size.prompt_tokens / prompt / size.prompts.expected;
    pool.capacity_limit = size.prompt_tokens / prompt / size.prompts.limit;
    pool.ttft = std::ceil(prompt / size.tokens) * size.alone.expected;
    return pool;
}

/// None of the others is as fast, as cheap, as small and as quick to hand over.
PromptPools prompt_pools(const std::vector<PricedLayout>& layouts, std::size_t first, std::size_t end, double prompt) {
    PromptPools pools;
    std::vector<PromptPool>& all = pools.all;
    for (std::size_t layout = first; layout < end; ++layout) {
        if (layouts[layout].layout.speculates) continue;  // a prompt has nothing to guess
        for (std::size_t step = 0; step < layouts[layout].steps.size(); ++step) {
            if (layouts[layout].steps[step].prompt_tokens > 0.0)
                all.push_back(prompt_pool(layouts, layout, step, prompt));
        }
    }
    const auto sent = [&](const PromptPool& pool) { return layouts[pool.layout].prompt_bytes_on_device; };
    const auto as_good = [&](const PromptPool& a, const PromptPool& b) {
        return a.capacity / a.devices >= b.capacity / b.devices && a.devices <= b.devices && a.ttft <= b.ttft &&
               sent(a) <= sent(b);
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        bool beaten = false;
        for (std::size_t j = 0; j < all.size() && !beaten; ++j) {
            beaten = j != i && as_good(all[j], all[i]) && (j < i || !as_good(all[i], all[j]));
        }
        if (!beaten) pools.kept.push_back(all[i]);
    }
    return pools;
}

/// Every device sends, or is sent, its own part. Devices of two kinds do not stand in one node.
double transfer_seconds(const Choices& choices, const PricedLayout& from, const PricedLayout& to, double devices) {
    const Device& sender = choices.offers[from.layout.offer].device;
    const Device& device = choices.offers[to.layout.offer].device;
    const double bytes = std::max(from.prompt_bytes_on_device, to.prompt_bytes_on_device);
    const bool one_kind = from.layout.offer == to.layout.offer;
    const bool leaves_the_node = !one_kind || devices > node_size(device);
    const auto rate = [&](const Device& end) {
        const Figure* bandwidth = end.bandwidth(leaves_the_node ? Level::network : link_within(end, devices));
        if (bandwidth == nullptr && !leaves_the_node) bandwidth = end.bandwidth(Level::host);
        return bandwidth != nullptr ? bandwidth->value : predict::assumed_network.value;
    };
    return bytes / std::min(rate(sender), rate(device));
}

}  // namespace roofline::decide
