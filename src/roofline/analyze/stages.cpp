#include "roofline/analyze/stages.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace roofline::analyze {

double repeated_layers(const std::vector<Step>& steps) {
    double all = 0.0;
    std::map<double, int> decodes;  // that have so many
    for (const Step& step : steps) {
        all = std::max(all, step.layers);
        if (step.kind == "decode" && step.layers > 0.0) ++decodes[step.layers];
    }
    double usual = all;
    int most = 0;
    for (const auto& [layers, count] : decodes) {
        if (count < most) continue;
        usual = layers;
        most = count;
    }
    return usual;
}

/// A step lasts until the next begins, for that is how long its tokens take; but a pause between two steps that the
/// host spends elsewhere belongs to neither.
void set_windows(std::vector<Step>& steps) {
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
        Step& step = steps[i];
        const std::int64_t next = steps[i + 1].begin;
        if (next <= step.end) {
            step.end = std::max(step.begin, next);
        } else if (step.host_end > 0) {
            step.end = std::clamp(step.host_end, step.end, next);
        } else if (next - step.end < step.wall() / 2) {
            step.end = next;
        }
    }
}

namespace {

bool belongs(const Step& step, const Stage& stage) {
    const bool whole_prompt = step.kind != "decode";
    return stage.kind == step.kind && stage.graph == step.graph && stage.batch == step.batch &&
           (!whole_prompt || stage.tokens == step.tokens);
}

/// Stages of one kind are told apart by how they were started, then by their sizes.
void name_stages(std::vector<Stage>& stages) {
    const auto alike = [&](const Stage& stage, auto same) {
        return std::count_if(stages.begin(), stages.end(),
                             [&](const Stage& other) { return other.kind == stage.kind && same(other); });
    };
    for (Stage& stage : stages) {
        const bool one_way = alike(stage, [&](const Stage& other) { return other.graph != stage.graph; }) == 0;
        const bool one_size = alike(stage, [&](const Stage& other) { return other.graph == stage.graph; }) == 1;
        if (!one_size) {
            stage.name += stage.batch > 0.0 && stage.kind == "decode" ? fmt::format(", batch {:.0f}", stage.batch)
                                                                      : fmt::format(", {:.0f} tokens", stage.tokens);
            const auto copies = alike(stage, [&](const Stage& other) {
                return other.graph == stage.graph && other.batch != stage.batch && other.tokens == stage.tokens;
            });
            if (copies > 0 && stage.kind != "decode") stage.name += fmt::format(" in {:.0f} sequences", stage.batch);
        }
        if (!one_way && stage.graph) stage.name += " (graph)";
    }
}

}  // namespace

void form_stages(Steps& steps) {
    for (std::uint32_t i = 0; i < steps.all.size(); ++i) {
        Step& step = steps.all[i];
        auto same = std::find_if(steps.stages.begin(), steps.stages.end(),
                                 [&](const Stage& stage) { return belongs(step, stage); });
        if (same == steps.stages.end()) {
            Stage fresh{step.kind, step.kind, {}, step.batch, step.tokens, 0.0, step.chunk, step.graph};
            same = steps.stages.insert(steps.stages.end(), std::move(fresh));
        }
        step.stage = static_cast<std::uint32_t>(same - steps.stages.begin());
        same->steps.push_back(i);
        same->context += step.context;
        if (step.name.empty()) step.name = fmt::format("{} {}", step.kind, same->steps.size());
    }
    for (Stage& stage : steps.stages) stage.context /= static_cast<double>(stage.steps.size());
    name_stages(steps.stages);
}

}  // namespace roofline::analyze
