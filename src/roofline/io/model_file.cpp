#include "roofline/io/model_file.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "roofline/core/sort.hpp"
#include "roofline/io/hf_config.hpp"
#include "roofline/io/tensor_roles.hpp"
#include "roofline/model/gguf_mix.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/predictor.hpp"

namespace roofline::io {
namespace {

constexpr std::string_view model_schema = "roofline.model/1";

std::optional<PublishedCount> read_count(Fields& published, std::string_view key) {
    const Json* value = published.find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) {
        const auto count = parse_count(value->get<std::string>());
        if (!count) {
            published.complain(key,
                               fmt::format("is {}, expected a number or a text such as \"397B\"", describe(*value)));
        }
        return count;
    }
    return PublishedCount{published.positive(key), 0.0, fmt::format("{}", value->dump())};
}

Result<void> fill(ModelFile& model, std::string_view file, const ConfigEdit& edit) {
    if (edit) {
        if (auto done = edit(model.config); !done) return std::unexpected(done.error());
    }
    auto read = read_hf_config(model.config, file);
    if (!read) return std::unexpected(read.error());
    model.architecture = std::move(read->architecture);
    model.architecture.name = model.name;
    model.types = std::move(read->types);
    model.types_summary = std::move(read->types_summary);
    for (const std::string& note : model.architecture.notes) {
        // A model file may say the same in its own words.
        const bool said = std::any_of(model.notes.begin(), model.notes.end(), [&](const std::string& own) {
            const auto both = [&](std::string_view word) {
                return own.find(word) != std::string::npos && note.find(word) != std::string::npos;
            };
            return own == note || both("vision") || both("prediction");
        });
        if (!said) model.notes.push_back(note);
    }
    return {};
}

/// Parameters of each role, outside the layers and in each of them, as the lowering counts them.
struct RoleElements {
    std::array<double, model::role_count> outside{};
    std::vector<std::array<double, model::role_count>> layers;
};

RoleElements count_elements(const ModelFile& model) {
    RoleElements result;
    result.layers.resize(model.architecture.layers.size());
    // Lowered one kind of layer at a time, so that operators can be told apart by layer; counts do not depend on types.
    std::vector<std::array<double, model::role_count>> of_kind(model.architecture.kinds.size());
    for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
        model::Architecture one = model.architecture;
        one.layers = {static_cast<int>(kind)};
        model::TypePlan types;
        types.outside = model.types.outside;
        types.layers = {model.types.layers.front()};
        result.outside = {};
        for (const model::Operator& op : model::lower(one, types).operators) {
            auto& roles = op.name.starts_with("layers") ? of_kind[kind] : result.outside;
            roles[static_cast<std::size_t>(op.role)] += op.parameters;
        }
    }
    for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
        result.layers[layer] = of_kind[static_cast<std::size_t>(model.architecture.layers[layer])];
    }
    return result;
}

/// F49: layers that predict as the file has them, all modules together; without any, nothing can predict.
void size_predictor(ModelFile& model, const std::array<double, model::role_count>& bytes, double sum) {
    model::Architecture& architecture = model.architecture;
    if (sum <= 0.0) architecture.predictors = 0.0;
    const auto module = model::predictor_of(architecture);
    if (!module) return;
    const model::TypePlan types = model::predictor_types(architecture, model.types);
    std::array<double, model::role_count> elements{};
    for (const model::Operator& op : model::lower(*module, types).operators)
        elements[static_cast<std::size_t>(op.role)] += op.count * op.parameters * architecture.predictors;
    model.types.predictor = types.layers;
    for (model::RoleTypes& layer : model.types.predictor) {
        for (std::size_t role = 0; role < model::role_count; ++role) {
            if (bytes[role] > 0.0 && elements[role] > 0.0) layer[role].file_bits = bytes[role] * 8.0 / elements[role];
        }
    }
}

/// Where a model has one FFN that its file calls the shared one (dense members of Granite 4), it is the FFN.
std::size_t role_that_counts(std::size_t role, const std::array<double, model::role_count>& parameters) {
    const auto at = [](model::Role each) { return static_cast<std::size_t>(each); };
    if (parameters[role] > 0.0) return role;
    if (role == at(model::Role::shared_gate_up)) return at(model::Role::ffn_gate_up);
    if (role == at(model::Role::shared_down)) return at(model::Role::ffn_down);
    return role;
}

/// What a file has of one role, of a layer or outside the layers: of GGUF also the format of its largest tensor, by
/// which it is known how such weights are multiplied.
struct Held {
    double bytes = 0.0;
    double largest = 0.0;
    const Format* gguf = nullptr;

    void add(const StoredTensor& tensor) {
        const auto own = static_cast<double>(tensor.bytes);
        bytes += own;
        if (own <= largest) return;
        largest = own;
        const Format* format = find_format(tensor.type);
        gguf = format != nullptr && model::is_gguf(*format) ? format : nullptr;
    }
};

/// Integers of a safetensors file hold several weights each, or none.
bool is_packed(std::string_view type) {
    return type.starts_with("U") || type.starts_with("BOOL") ||
           (type.starts_with("I") && type.size() > 1 && type[1] >= '0' && type[1] <= '9');
}

/// "q4_k + q6_k + f32": the types of a file, the one with most bytes first.
std::string summarise_types(std::span<const StoredTensor> tensors) {
    std::map<std::string, std::uint64_t> bytes;
    for (const StoredTensor& tensor : tensors) bytes[tensor.type] += tensor.bytes;
    std::vector<std::pair<std::string, std::uint64_t>> types(bytes.begin(), bytes.end());
    sort_stably(types, [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [type, size] : types) {
        if (!text.empty()) text += " + ";
        for (const char c : type) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

}  // namespace

std::optional<PublishedCount> parse_count(std::string_view text) {
    double value = 0.0;
    double place = 0.0;  // value of the last digit; 0 before any digit
    bool fraction = false;
    double scale = 1.0;
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c >= '0' && c <= '9') {
            value = value * 10.0 + (c - '0');
            place = 1.0;
            if (fraction) scale *= 10.0;
        } else if (c == '.' && !fraction) {
            fraction = true;
        } else {
            break;
        }
    }
    if (place == 0.0 || i + 1 != text.size()) return std::nullopt;
    double unit = 0.0;
    switch (text[i]) {
        case 'K':
            unit = 1e3;
            break;
        case 'M':
            unit = 1e6;
            break;
        case 'B':
            unit = 1e9;
            break;
        case 'T':
            unit = 1e12;
            break;
        default:
            return std::nullopt;
    }
    return PublishedCount{value / scale * unit, 0.5 / scale * unit, std::string(text)};
}

Result<ModelFile> read_model_file(std::string_view text, std::string_view file, const ConfigEdit& edit) {
    auto json = parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    std::optional<Problem> problem;
    Fields fields(*json, std::string(file), "", problem);
    const std::string schema = fields.text("schema");
    if (schema != model_schema)
        fields.complain("schema", fmt::format("is \"{}\", expected \"{}\"", printable(schema), model_schema));
    ModelFile model;
    model.name = fields.text("name");
    model.title = fields.text_or("title", model.name);
    model.aliases = fields.texts("aliases");
    model.notes = fields.texts("notes");
    if (fields.has("published")) {
        Fields published = fields.child("published");
        model.parameters = read_count(published, "parameters");
        model.active_parameters = read_count(published, "active_parameters");
        const std::string counts = published.text_or("active_counts", "everything");
        if (counts == "without embedding") {
            model.active_counts = model::ActiveCounts::without_embedding;
        } else if (counts == "without embedding and head") {
            model.active_counts = model::ActiveCounts::without_embedding_and_head;
        } else if (counts != "everything") {
            published.complain(
                "active_counts",
                fmt::format("is \"{}\", expected everything, without embedding, or without embedding and head",
                            counts));
        }
        model.published_source = published.text_or("source", "");
    }
    if (fields.has("source")) model.source = fields.child("source").text_or("title", "");
    if (!fields.has("config")) fields.complain("config", "is missing");
    if (problem) return std::unexpected(*problem);
    model.config = (*json)["config"];
    if (auto done = fill(model, file, edit); !done) return std::unexpected(done.error());
    return model;
}

Result<ModelFile> read_config_file(Json config, std::string_view file, std::string name, const ConfigEdit& edit) {
    ModelFile model;
    model.name = name;
    model.title = std::move(name);
    model.source = file;
    model.config = std::move(config);
    if (auto done = fill(model, file, edit); !done) return std::unexpected(done.error());
    return model;
}

void use_file_sizes(ModelFile& model, std::span<const StoredTensor> tensors) {
    model.types_summary = summarise_types(tensors);
    const RoleElements elements = count_elements(model);
    const std::size_t layers = model.architecture.layers.size();
    std::array<Held, model::role_count> outside{};
    std::vector<std::array<Held, model::role_count>> inside(layers);
    double vision = 0.0;
    std::array<double, model::role_count> predicting{};
    double prediction = 0.0;
    double unplaced = 0.0;
    double stored = 0.0;  // weights, as far as the types of the file let them be counted
    bool packed = false;
    const auto places = place_tensors(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const TensorPlace& place = places[i];
        const auto bytes = static_cast<double>(tensors[i].bytes);
        const auto role = static_cast<std::size_t>(place.role);
        if (place.vision) {
            vision += bytes;
        } else if (place.mtp || (place.layer && static_cast<std::size_t>(*place.layer) >= layers)) {
            prediction += bytes;
            predicting[role] += bytes;
        } else if (place.layer) {
            const auto layer = static_cast<std::size_t>(*place.layer);
            inside[layer][role_that_counts(role, elements.layers[layer])].add(tensors[i]);
        } else {
            outside[role].add(tensors[i]);
        }
        if (place.vision || place.mtp || (model.architecture.tied && place.role == model::Role::head)) continue;
        stored += static_cast<double>(tensors[i].elements);
        packed = packed || is_packed(tensors[i].type);
    }
    const auto assign = [&](model::WeightType& type, const Held& held, double parameters) {
        if (held.bytes <= 0.0) return;
        if (parameters <= 0.0) {
            unplaced += held.bytes;
        } else {
            type.file_bits = held.bytes * 8.0 / parameters;
            if (held.gguf != nullptr) type.format = *held.gguf;
        }
    };
    for (std::size_t role = 0; role < model::role_count; ++role) {
        // A stored head beside a tied embedding is the same table twice; the file wins.
        assign(model.types.outside[role], outside[role], elements.outside[role]);
        for (std::size_t layer = 0; layer < layers; ++layer)
            assign(model.types.layers[layer][role], inside[layer][role], elements.layers[layer][role]);
    }
    size_predictor(model, predicting, prediction);
    const auto note = [&](double bytes, std::string_view what) {
        if (bytes > 0.0) model.notes.push_back(fmt::format("{:.3f} GB of the file {}", bytes / 1e9, what));
    };
    note(vision, "are the vision or audio side and are not counted");
    note(prediction, "are multi-token prediction layers and count where they guess (--draft-model mtp)");
    note(unplaced, "are tensors that the model has no operator for and are not counted");
    const double described = model::count_parameters(model::lower(model.architecture, model.types)).total;
    if (!packed && prediction == 0.0 && std::fabs(stored - described) > 0.01 * described) {
        model.notes.push_back(
            fmt::format("the file holds {:.4g} weights, but the config describes {:.4g}: one of the two is misread",
                        stored, described));
    }
}

}  // namespace roofline::io
