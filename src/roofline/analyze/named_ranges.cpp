#include "roofline/analyze/named_ranges.hpp"

#include <algorithm>
#include <cctype>

#include "roofline/analyze/engine_ranges.hpp"
#include "roofline/analyze/json_scan.hpp"

namespace roofline::analyze {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/// What the name of a range says it is; empty: nothing about steps.
std::string kind_of_name(std::string_view raw) {
    const std::string name = lower(raw);
    for (const char* foreign :
         {"optimizer", "nccl", "compiledfx", "torch-compiled", "dataloader", "backward", "record_param", "fsdp::"})
        if (has(name, foreign)) return {};
    if (const auto scheduled = scheduled_in(name)) {
        if (scheduled->reading.requests == 0.0) return "decode";
        return scheduled->writing.requests == 0.0 ? "prefill" : "mixed";
    }
    if (has(name, "prefill") || has(name, "prompt") || has(name, "extend")) return "prefill";
    if (has(name, "decode") || has(name, "next_token")) return "decode";
    if (name.starts_with("encode") && name.find_first_not_of("0123456789_ #:", 6) == std::string::npos) return "encode";
    for (const char* word :
         {"step", "forward", "iter", "token", "execute_model", "model_run", "inference", "generate", "train"})
        if (has(name, word)) return "step";
    return {};
}

}  // namespace

std::vector<Range> named_ranges(const Timeline& timeline) {
    std::vector<Range> exact;
    std::vector<Range> vague;
    for (const Annotation& annotation : timeline.annotations) {
        const std::string name = readable(timeline.texts[annotation.name]);
        const std::string kind = kind_of_name(name);
        if (kind.empty()) continue;
        (kind == "step" ? vague : exact).push_back({annotation.begin, annotation.end, name, kind});
    }
    std::vector<Range>& chosen = exact.empty() ? vague : exact;
    std::stable_sort(chosen.begin(), chosen.end(), [](const Range& a, const Range& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<Range> kept;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const bool holds_another =
            i + 1 < chosen.size() && chosen[i + 1].begin < chosen[i].end && chosen[i + 1].end <= chosen[i].end;
        if (!holds_another && (kept.empty() || kept.back().end <= chosen[i].begin)) kept.push_back(chosen[i]);
    }
    return kept;
}

}  // namespace roofline::analyze
