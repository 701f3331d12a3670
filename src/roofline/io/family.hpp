// A family is how one group of model types writes its config.json. Each is one file in families/, which states the
// model types it reads and turns their fields into an Architecture; the folder is the registry.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/io/fields.hpp"
#include "roofline/model/architecture.hpp"
#include "roofline/model/attention/gqa.hpp"
#include "roofline/model/ffn/moe.hpp"

namespace roofline::io {

struct Family {
    std::vector<std::string_view> model_types;
    void (*read)(Fields& config, model::Architecture& architecture);
};

const Family* find_family(std::string_view model_type);
std::vector<std::string_view> known_model_types();

// ---- what most families have in common

/// Width, vocabulary, tied embeddings, longest context.
void read_trunk(Fields& config, model::Architecture& architecture, bool tied_by_default = false);

/// Heads, KV heads and head size; head_dim is not always hidden_size / heads.
model::GqaShape read_gqa(Fields& config);

/// Complains if the KV heads cannot share the heads evenly, or a head has a fraction of a number.
void check_heads(Fields& config, const model::GqaShape& shape);

/// num_hidden_layers, within reason.
std::size_t read_layer_count(Fields& config, std::string_view key = "num_hidden_layers");

/// layer_types, one per layer; empty if the config has none.
std::vector<std::string> read_layer_types(Fields& config, std::size_t layers);

/// The window of sliding layers, if the config has one that is in use: by use_sliding_window, or as the type has it.
std::optional<double> read_window(Fields& config, bool in_use = true);

/// Which layers have experts, where mlp_layer_types says so of each; empty if the config has no such list.
std::vector<bool> read_sparse_layers(Fields& config, std::size_t layers);

/// Experts under the names families give them: num_experts, num_local_experts, n_routed_experts ...
model::MoeShape read_moe(Fields& config);

/// Appends a layer; layers with the same label share one kind, made once.
void add_layer(model::Architecture& architecture, const std::string& label,
               const std::function<model::LayerKind()>& make);

/// A norm before each block and a residual after it: the common layer.
model::LayerKind pre_norm_layer(model::BlockPtr mixer, model::BlockPtr ffn);

/// The same with its norms elsewhere: before a block, after it (within the residual), or both.
enum class Norms { before, after, both };
model::LayerKind serial_layer(model::BlockPtr mixer, model::BlockPtr ffn, Norms norms);

/// Attention and FFN that read the same input, under one norm or under one each, and are added up together.
enum class NormsOfParallel { one, each };
model::LayerKind parallel_layer(model::BlockPtr mixer, model::BlockPtr ffn, NormsOfParallel norms);

/// As many layers as the config says, all alike.
void add_layers_alike(Fields& config, model::Architecture& architecture, const std::function<model::LayerKind()>& make);

template <class Kind, class Shape>
model::BlockPtr block(const Shape& shape) {
    return std::make_shared<const Kind>(shape);
}

}  // namespace roofline::io
