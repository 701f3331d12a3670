#include "roofline/serve/limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace roofline::serve {
namespace {

constexpr double most_simulated = 20'000.0;
constexpr double most_generated = 1'000'000.0;
constexpr std::ptrdiff_t most_devices_of_a_plan = 8;
constexpr double most_of_a_device = 64.0;

double number_of(const io::Json& options, const char* key, double fallback) {
    const auto found = options.find(key);
    if (found == options.end()) return fallback;
    if (found->is_number()) return found->get<double>();
    // What is no number is refused with a better message by whoever reads it.
    return found->is_string() ? std::strtod(found->get_ref<const std::string&>().c_str(), nullptr) : fallback;
}

std::string text_of(const io::Json& options, const char* key) {
    const auto found = options.find(key);
    return found != options.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<void> at_most(const io::Json& options, const char* key, double most) {
    if (number_of(options, key, 0.0) <= most) return {};
    return fail(fmt::format("--{}: over the network at most {:.0f}; the command line has no such limit", key, most));
}

}  // namespace

Result<void> check_cost(std::string_view verb, const io::Json& options) {
    if (!options.is_object()) return {};  // refused later, with the right words
    for (const auto& [key, most] : {std::pair{"requests", most_simulated}, std::pair{"generate", most_generated},
                                    std::pair{"output-len", most_generated}}) {
        if (auto done = at_most(options, key, most); !done) return done;
    }
    if (verb != "plan") return {};
    const std::string devices = text_of(options, "devices");
    if (std::count(devices.begin(), devices.end(), ',') >= most_devices_of_a_plan)
        return fail(fmt::format("--devices: over the network at most {} kinds", most_devices_of_a_plan));
    for (std::size_t colon = devices.find(':'); colon != std::string::npos; colon = devices.find(':', colon + 1)) {
        if (std::strtod(devices.c_str() + colon + 1, nullptr) > most_of_a_device)
            return fail(fmt::format("--devices: over the network at most {:.0f} of a kind", most_of_a_device));
    }
    const std::string models = text_of(options, "model");
    if (std::count(models.begin(), models.end(), ',') >= 4) return fail("--model: over the network at most 4 at once");
    return {};
}

}  // namespace roofline::serve
