#include "roofline/cli/form.hpp"

#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "roofline/cli/files.hpp"
#include "roofline/cli/load.hpp"

namespace roofline::cli {
namespace {

class Machine : public ask::Library {
  public:
    Result<io::ModelFile> model(const std::string& typed, const io::ConfigEdit& edit) const override {
        return load_model(typed, edit);
    }

    Result<Device> device(const std::string& typed) const override { return load_device(typed); }

    Result<std::optional<std::string>> file(const std::string& name) const override {
        if (!exists(name)) return std::nullopt;
        auto text = read_text(name);
        if (!text) return std::unexpected(text.error());
        return std::optional(std::move(*text));
    }

    bool has_file(const std::string& name) const override { return exists(name); }

    Result<predict::Execution> execution(const std::string& profile, const std::string& calibration,
                                         const Device& device) const override {
        // A sweep asks for the same constants thousands of times. They depend on no more of the device than this.
        const Key key{profile, calibration, device.name, device.generation, device.vendor};
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = known_.find(key); found != known_.end()) return found->second;
        }
        auto execution = Library::execution(profile, calibration, device);
        if (execution) {
            const std::lock_guard lock(mutex_);
            known_.emplace(key, *execution);
        }
        return execution;
    }

  private:
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
    mutable std::mutex mutex_;
    mutable std::map<Key, predict::Execution> known_;
};

}  // namespace

void add_to(const Verb& verb, ask::Form& form, Lists lists) {
    for (ask::Option& option : form.options()) {
        Flag flag = option.flag != nullptr    ? verb.add(option.names, *option.flag, option.help)
                    : option.texts != nullptr ? verb.add(option.names, *option.texts, option.help)
                                              : verb.add(option.names, *option.text, option.help);
        if (option.texts != nullptr) flag.repeated();
        if (!option.group.empty()) flag.group(option.group);
        if (!option.choices.empty() && (lists == Lists::refused || option.key() == "stage"))
            flag.one_of(option.choices);
        else if (!option.choices.empty())
            flag.type(fmt::format("{{{}}}", fmt::join(option.choices, ",")));
        if (option.default_shown) flag.shows_default();
        if (!option.type.empty()) flag.type(option.type);
        flag.each([&option](const std::string&) { option.given = true; });
    }
}

const ask::Library& this_machine() {
    static const Machine machine;
    return machine;
}

}  // namespace roofline::cli
