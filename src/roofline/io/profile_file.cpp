#include "roofline/io/profile_file.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "roofline/io/embedded.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/names.hpp"
#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::io {

Result<predict::Profile> read_profile(std::string_view text, std::string_view file) {
    const auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    predict::Profile profile;
    if (fields.text("schema") != "roofline.profile/1") fields.complain("schema", "expected roofline.profile/1");
    profile.name = fields.text("name");
    profile.title = fields.text("title");
    profile.stacks = fields.texts("stacks");
    profile.kernels = fields.text_or("kernels", "");
    profile.step = fields.text_or("step", "graph_step");
    profile.even_routing = fields.flag("even_routing", true);
    for (const auto& [key, name] : {std::pair{"kernels", profile.kernels}, std::pair{"step", profile.step}}) {
        if (!name.empty() && predict::kernel_class(name) == nullptr) fields.complain(key, "expected a kernel class");
    }
    if (fields.has("operators")) {
        Fields operators = fields.child("operators");
        for (const std::string& key : operators.keys()) {
            Fields line = operators.child(key);
            const std::size_t at = key.find('@');
            predict::Profile::Rule rule;
            rule.op = key.substr(0, at);
            if (at != std::string::npos) rule.stage = key.substr(at + 1);
            if (at != std::string::npos && rule.stage != "prefill" && rule.stage != "decode")
                operators.complain(key, "expected @prefill or @decode");
            const std::pair<std::string_view, double*> numbers[] = {
                {"launches", &rule.launches}, {"traffic", &rule.traffic}, {"cache", &rule.cache}, {"pace", &rule.pace}};
            for (const std::string& field : line.keys()) {
                const auto known = [&](const auto& number) { return number.first == field; };
                if (std::none_of(std::begin(numbers), std::end(numbers), known))
                    line.complain(field, "expected launches, traffic, cache or pace");
            }
            for (const auto& [field, value] : numbers) {
                *value = line.number_or(field, *value);
                if (*value < 0.0) line.complain(field, "expected a number that is not negative");
            }
            profile.rules.push_back(std::move(rule));
        }
    }
    if (fields.has("elsewhere")) {
        Fields elsewhere = fields.child("elsewhere");
        for (const std::string& vendor : elsewhere.keys()) profile.elsewhere[vendor] = elsewhere.text(vendor);
    }
    if (problem) return std::unexpected(*problem);
    return profile;
}

std::vector<std::string> builtin_profile_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_profiles()) names.emplace_back(file.name);
    return names;
}

Result<predict::Profile> builtin_profile(std::string_view name) {
    for (const EmbeddedFile& file : embedded_profiles()) {
        auto profile = read_profile(file.text, file.name);
        if (!profile || profile->name == name || file.name == name) return profile;
    }
    const std::vector<std::string> known = builtin_profile_names();
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    return fail("no profile is named " + std::string(name) + suggestion(name, known) + " (there are " + all + ")");
}

Result<predict::Profile> builtin_profile(std::string_view name, const Device& device) {
    auto profile = builtin_profile(name);
    if (!profile) return profile;
    const auto other = profile->elsewhere.find(device.vendor);
    return other != profile->elsewhere.end() ? builtin_profile(other->second) : profile;
}

}  // namespace roofline::io
