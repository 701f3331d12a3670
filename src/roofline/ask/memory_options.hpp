// The flags that say which engine shares out the device's memory, under the names that vLLM uses.
#pragma once

#include <optional>
#include <string>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/engine.hpp"

namespace roofline::ask {

struct MemoryFlags {
    std::string engine;
    std::string utilisation;
    std::string block;
    std::string longest;
    std::string sequences;
    std::string step_tokens;

    void add_to(Form& form);
    /// Empty: no engine was named, and the fit is what the model needs.
    Result<std::optional<predict::MemoryOptions>> load(const Library& library) const;
};

}  // namespace roofline::ask
