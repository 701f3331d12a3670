// A model with everything known about it, whatever file it came from: our own JSON (a Hugging Face config with the
// published counts beside it), a bare config.json, a GGUF, safetensors.
//
//   { "schema": "roofline.model/1", "name", "title", "aliases": [], "published": { "parameters": 8030261248 | "397B",
//     "active_parameters"?, "active_counts"?: "everything" | "without embedding" | "without embedding and head",
//     "source" }, "source": { "kind", "title", "date" }, "notes"?: [], "config": { ... } }
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/fields.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/model/architecture.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/model/types.hpp"

namespace roofline::io {

/// A count as its publisher prints it: exact, or rounded to the digits shown.
struct PublishedCount {
    double value = 0.0;
    double rounding = 0.0;  // half a unit of the last digit shown; 0: exact
    std::string text;
};
std::optional<PublishedCount> parse_count(std::string_view text);  // "397B", "1.6T", "35B"

struct ModelFile {
    std::string name;
    std::string title;
    std::vector<std::string> aliases;
    std::optional<PublishedCount> parameters;
    std::optional<PublishedCount> active_parameters;
    model::ActiveCounts active_counts = model::ActiveCounts::everything;  // the publisher's convention
    std::string published_source;
    std::string source;
    model::Architecture architecture;
    model::TypePlan types;
    std::string types_summary;
    std::vector<std::string> notes;
    Json config;
};

/// Changes to a config before it is read: --set on a model's figures.
using ConfigEdit = std::function<Result<void>(Json& config)>;

Result<ModelFile> read_model_file(std::string_view text, std::string_view file, const ConfigEdit& edit = {});
Result<ModelFile> read_config_file(Json config, std::string_view file, std::string name, const ConfigEdit& edit = {});

/// Replaces the bits of every weight by what the tensors of a file really take. Tensors that the architecture has no
/// place for are named in the notes, with their bytes.
void use_file_sizes(ModelFile& model, std::span<const StoredTensor> tensors);

}  // namespace roofline::io
