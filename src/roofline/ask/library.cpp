#include "roofline/ask/library.hpp"

#include <fmt/format.h>

#include "roofline/io/calibration_file.hpp"
#include "roofline/io/profile_file.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {

Result<predict::Execution> Library::execution(const std::string& profile, const std::string& calibration,
                                              const Device& device) const {
    predict::Execution execution;
    Result<predict::Profile> loaded = fail("");
    if (profile.ends_with(".json")) {
        const auto text = file(profile);
        if (!text) return std::unexpected(text.error());
        if (!*text) return fail(fmt::format("--profile: {}: no such file", io::printable(profile)));
        loaded = io::read_profile(**text, profile);
    } else {
        loaded = io::builtin_profile(profile, device);
    }
    if (!loaded) return std::unexpected(loaded.error());
    execution.profile = std::move(*loaded);

    auto constants = io::builtin_calibration(device);
    if (!constants) return std::unexpected(constants.error());
    if (!calibration.empty()) {
        const auto text = file(calibration);
        if (!text) return std::unexpected(text.error());
        if (!*text) return fail(fmt::format("--calibration: {}: no such file", io::printable(calibration)));
        auto own = io::read_calibration(**text, calibration);
        if (!own) return std::unexpected(own.error());
        // Added first, they win wherever they are as near as a built-in one.
        for (const predict::Fitted& fitted : constants->all()) own->add(fitted);
        constants = std::move(own);
    }
    execution.calibration = std::make_shared<const predict::Calibration>(std::move(*constants));
    return execution;
}

}  // namespace roofline::ask
