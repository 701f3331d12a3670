// Modules as checkpoints name them, and the patterns by which quantisers speak of them: names, globs, simple regular
// expressions. Which number type a pattern stands for is not known here.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/model/role.hpp"

namespace roofline::io {

/// Does a pattern (a name, a glob, or "re:" a simple expression with alternatives) speak of a module?
bool module_matches(std::string_view pattern, std::string_view module);

/// The modules within a layer that hold the weights of a role, as the checkpoints of a family name them.
std::vector<std::string_view> modules_of(model::Role role, std::string_view family);

/// The same as MLX names them: experts are stacked, routers count too.
std::vector<std::string_view> mlx_modules_of(model::Role role, std::string_view family);

/// A set of patterns, each with a number the caller gave it, quick to ask layer by layer: lists of hundreds of modules
/// name their layer. Patterns about a vision tower or prediction layers are not about the language model and are
/// dropped.
class ModulePatterns {
  public:
    void add(std::string pattern, std::size_t meaning);

    /// The meaning of the first pattern that speaks of a module of a layer; npos if none does.
    std::size_t find(std::size_t layer, std::string_view module) const;
    /// The same for the head or a table, which lie outside the layers.
    std::size_t find_outside(model::Role role) const;
    bool empty() const { return by_layer_.empty() && everywhere_.empty(); }

    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  private:
    struct Entry {
        std::string pattern;
        std::size_t meaning;
    };
    std::map<std::size_t, std::vector<Entry>> by_layer_;
    std::vector<Entry> everywhere_;
};

}  // namespace roofline::io
