#include "roofline/predict/profile.hpp"

#include <algorithm>
#include <array>

namespace roofline::predict {

Profile::Rule Profile::rule_for(std::string_view operator_name, Kind kind, std::string_view stage,
                                std::string_view style) const {
    const std::size_t dot = operator_name.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? operator_name : operator_name.substr(dot + 1);
    const std::size_t before = dot == std::string_view::npos ? dot : operator_name.rfind('.', dot - 1);
    // "attention.residual" is more exact than "residual", which is more exact than the kind "elementwise".
    const std::string_view last_two =
        before == std::string_view::npos ? operator_name : operator_name.substr(before + 1);
    for (const std::string_view wanted : {style, last_two, last, roofline::name(kind)}) {
        if (wanted.empty()) continue;
        // A line for one stage is more exact than one for both.
        for (const std::string_view bound : {stage, std::string_view()}) {
            const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& candidate) {
                return candidate.op == wanted && candidate.stage == bound;
            });
            if (rule != rules.end()) return *rule;
        }
    }
    return {};
}

}  // namespace roofline::predict
