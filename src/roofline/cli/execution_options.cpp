#include "roofline/cli/execution_options.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/io/calibration_file.hpp"
#include "roofline/io/profile_file.hpp"

namespace roofline::cli {
namespace {

Result<predict::Execution> read_execution(const std::string& profile, const std::string& calibration,
                                          const Device& device) {
    predict::Execution execution;
    Result<predict::Profile> loaded = fail("");
    if (exists(profile) && profile.ends_with(".json")) {
        const auto text = read_text(profile);
        if (!text) return std::unexpected(text.error());
        loaded = io::read_profile(*text, profile);
    } else {
        loaded = io::builtin_profile(profile, device);
    }
    if (!loaded) return std::unexpected(loaded.error());
    execution.profile = std::move(*loaded);

    auto constants = io::builtin_calibration(device);
    if (!constants) return std::unexpected(constants.error());
    if (!calibration.empty()) {
        const auto text = read_text(calibration);
        if (!text) return std::unexpected(text.error());
        auto own = io::read_calibration(*text, calibration);
        if (!own) return std::unexpected(own.error());
        // Added first, they win wherever they are as near as a built-in one.
        for (const predict::Fitted& fitted : constants->all()) own->add(fitted);
        constants = std::move(own);
    }
    execution.calibration = std::make_shared<const predict::Calibration>(std::move(*constants));
    return execution;
}

}  // namespace

void add_execution_options(CLI::App& app, std::string& profile, std::string& calibration) {
    const char* how = "How it is computed";
    app.add_option("--profile", profile,
                   fmt::format("What is fused and how kernels are launched: {}, or a file",
                               fmt::join(io::builtin_profile_names(), ", ")))
        ->group(how)
        ->capture_default_str()
        ->type_name("NAME");
    app.add_option("--calibration", calibration,
                   "Constants of expected times, as calibrate wrote them, before the built-in")
        ->group(how)
        ->type_name("FILE");
}

Result<predict::Execution> load_execution(const std::string& profile, const std::string& calibration,
                                          const Device& device) {
    // Reading the constants takes longer than all the rest of a question, and a sweep asks for the same ones thousands
    // of times. They depend on no more of the device than this.
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
    static std::mutex mutex;
    static std::map<Key, predict::Execution> known;
    const Key key{profile, calibration, device.name, device.generation, device.vendor};
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    auto execution = read_execution(profile, calibration, device);
    if (execution) {
        const std::lock_guard lock(mutex);
        known.emplace(key, *execution);
    }
    return execution;
}

}  // namespace roofline::cli
