#include "roofline/model/deployment.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "roofline/core/whole.hpp"

namespace roofline::model {
namespace {

Result<void> cut_kinds(Architecture& model, const Deployment& deployment) {
    for (LayerKind& kind : model.kinds) {
        for (BlockPtr* block : {&kind.mixer, &kind.ffn}) {
            if (!*block) continue;
            auto cut = (*block)->on_rank(deployment);
            if (!cut) return std::unexpected(cut.error());
            *block = std::move(*cut);
        }
    }
    return {};
}

/// The values of one degree that could be used with everything else as it is.
std::string values_that_work(const Architecture& uncut, double most, const std::function<Deployment(double)>& with) {
    std::string text;
    for (double degree = 1.0; degree <= most; ++degree) {
        Architecture trial = uncut;
        if (!cut_kinds(trial, with(degree))) continue;
        text += (text.empty() ? "" : ", ") + whole(degree);
    }
    return text;
}

constexpr double most_ranks_listed = 128.0;

}  // namespace

std::string_view name(ExpertExchange exchange) {
    return exchange == ExpertExchange::gather ? "gather" : "all-to-all";
}

RankGroup Deployment::group_of(double ranks, double stride) const {
    if (node <= 0.0 || ranks <= 1.0) return {ranks, 1.0};
    const double here = std::min(ranks, std::max(1.0, std::floor(node / stride)));
    return {ranks, std::ceil(ranks / here)};
}

double Deployment::hops_between_nodes() const {
    if (node <= 0.0 || pipeline <= 1.0) return 0.0;
    const double stages_in_a_node = std::max(1.0, std::floor(node / stage_devices()));
    return std::ceil(pipeline / stages_in_a_node) - 1.0;
}

std::string describe(const Deployment& deployment) {
    std::string text;
    const auto add = [&](const char* label, double degree) {
        if (degree > 1.0) text += (text.empty() ? "" : " x ") + std::string(label) + whole(degree);
    };
    add("TP", deployment.tensor);
    add("CP", deployment.context);
    add("attention DP", deployment.groups);
    add("PP", deployment.pipeline);
    add("replicas ", deployment.replicas);
    if (deployment.experts > 1.0) text += (text.empty() ? "EP" : ", EP") + whole(deployment.experts);
    if (deployment.exchanges_tokens() && deployment.exchange)
        text += " (" + std::string(name(*deployment.exchange)) + ")";
    return text.empty() ? "one device" : text;
}

std::vector<LayerRange> pipeline_ranges(std::size_t layers, double stages) {
    const auto count = static_cast<std::size_t>(stages);
    std::vector<LayerRange> ranges;
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < count; ++stage) {
        const std::size_t here = layers / count + (stage < layers % count ? 1 : 0);
        ranges.push_back({first, first + here});
        first += here;
    }
    return ranges;
}

bool has_experts(const Architecture& model) {
    return std::any_of(model.kinds.begin(), model.kinds.end(),
                       [](const LayerKind& kind) { return kind.ffn && kind.ffn->has_experts(); });
}

Result<Architecture> on_rank(const Architecture& uncut, const Deployment& deployment) {
    if (deployment.experts > 1.0 && !has_experts(uncut)) {
        return fail("expert parallelism of " + whole(deployment.experts) + ": " + uncut.name +
                    " has no experts to spread, so it can only be 1");
    }
    const auto layers = static_cast<double>(uncut.layers.size());
    if (deployment.pipeline > layers) {
        return fail("pipeline parallelism of " + whole(deployment.pipeline) + " is more than the " + whole(layers) +
                    " layers of " + uncut.name + ": expected 1 to " + whole(layers));
    }
    const double ranks = deployment.expert_ranks();
    if (deployment.experts > ranks || std::fmod(ranks, deployment.experts) != 0.0) {
        std::string works;
        for (double experts = 1.0; experts <= ranks; ++experts) {
            if (std::fmod(ranks, experts) == 0.0) works += (works.empty() ? "" : ", ") + whole(experts);
        }
        return fail("expert parallelism of " + whole(deployment.experts) + " does not divide the " + whole(ranks) +
                    " devices of tensor and data parallelism; it can be " + works);
    }
    Architecture cut = uncut;
    if (auto done = cut_kinds(cut, deployment); !done) {
        const auto with = [&](double tensor, double experts) {
            Deployment other = deployment;
            other.tensor = tensor;
            // Experts stay whole or cut as they were asked for, whatever the number of devices.
            other.experts = experts;
            return other;
        };
        const bool spread = deployment.experts > 1.0;
        const auto follow = [&](double tensor) { return spread ? tensor * deployment.groups : 1.0; };
        // Is it the experts alone that do not go?
        Architecture trial = uncut;
        if (spread && cut_kinds(trial, with(deployment.tensor, 1.0))) {
            const std::string works = values_that_work(uncut, ranks, [&](double experts) {
                return with(deployment.tensor, std::fmod(ranks, experts) == 0.0 ? experts : 0.0);
            });
            return fail(done.error().text + "; expert parallelism can be " + works);
        }
        const std::string works =
            values_that_work(uncut, most_ranks_listed, [&](double tensor) { return with(tensor, follow(tensor)); });
        return fail(done.error().text + "; tensor parallelism can be " + (works.empty() ? "1" : works));
    }
    // Engines pad the vocabulary so that every rank has as many rows.
    cut.vocabulary = std::ceil(uncut.vocabulary / deployment.tensor);
    return cut;
}

}  // namespace roofline::model
