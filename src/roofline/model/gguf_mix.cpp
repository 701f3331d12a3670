#include "roofline/model/gguf_mix.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "roofline/model/attention/gqa.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {
namespace {

// Biases, norms, routers, positions and small vectors are kept in fp32.
constexpr double small_bits = 32.0;

/// Numbers that share a block; a row must be a multiple of it.
double block_of(std::string_view type) {
    const bool by_256 = type.ends_with("_k") || (type.starts_with("iq") && type != "iq4_nl") || type.starts_with("tq");
    return by_256 ? 256.0 : 32.0;
}

/// What a tensor becomes whose rows do not divide into blocks.
std::string_view fallback(std::string_view type) {
    if (type == "q4_k") return "q5_0";
    if (type == "q5_k") return "q5_1";
    if (type == "q6_k") return "q8_0";
    if (type.starts_with("tq")) return "q4_0";
    return "iq4_nl";
}

std::string_view fitting(std::string_view type, double row) {
    if (std::fmod(row, block_of(type)) == 0.0) return type;
    const std::string_view other = block_of(type) == 256.0 ? fallback(type) : "fp16";
    return std::fmod(row, 32.0) == 0.0 ? other : "fp16";
}

double bits_of(std::string_view type, double row) {
    return bits_per_element(*find_format(fitting(type, row)));
}

/// The name of a file, as llama.cpp knows it, and the type most of its tensors have.
struct Mix {
    std::string_view file;
    std::string_view base;
};

Mix mix_of(std::string_view name) {
    if (name == "q3_k" || name == "q3_k_m") return {"q3_k_m", "q3_k"};
    if (name == "q4_k" || name == "q4_k_m") return {"q4_k_m", "q4_k"};
    if (name == "q5_k" || name == "q5_k_m") return {"q5_k_m", "q5_k"};
    for (const std::string_view base : {"q3_k", "q4_k", "q5_k"}) {
        if (name.starts_with(base)) return {name, base};
    }
    if (name == "iq2_s") return {name, "iq2_xs"};
    return {name, name};
}

/// What the rules look at beside the tensor itself.
struct Model {
    Mix mix;
    bool falcon = false;
    bool wide_group = false;     // four queries or more for each key
    bool eight_experts = false;  // Mixtral, for which the rules were made
    bool four_experts = false;
    bool seventy_billion = false;
    bool fused_qkv = false;
};

struct Place {
    std::size_t layer = 0;
    std::size_t layers = 0;

    bool more_bits() const { return has_more_bits(layer, layers); }
    bool first_eighth() const { return layer < layers / 8; }
};

bool smallest(std::string_view file) {
    return file.starts_with("iq1") || file.starts_with("iq2");
}

std::string_view table_type(const Model& model, bool is_head, double row) {
    const auto& [file, base] = model.mix;
    if (is_head) {
        if (model.falcon || std::fmod(row, block_of(base)) != 0.0) return "q8_0";
        if (smallest(file) || file == "iq3_xxs") return "q5_k";
        return base == "q8_0" ? base : "q6_k";
    }
    if (file == "iq2_s" || file == "iq3_xxs") return "iq3_s";
    if (smallest(file)) return "q2_k";
    if (file.starts_with("tq")) return "q4_k";
    return base;
}

std::string_view value_type(const Model& model, const Place& place) {
    const auto& [file, base] = model.mix;
    if (smallest(file)) {
        if (model.wide_group || model.four_experts) return "q4_k";
        return file == "iq2_s" ? "iq3_s" : "q2_k";
    }
    if (model.eight_experts) return "q8_0";
    std::string_view type = base;
    if (file == "q2_k") type = model.wide_group ? "q4_k" : "q3_k";
    if (file == "iq3_xxs") type = model.wide_group ? "q4_k" : "iq3_s";
    if (file == "iq3_s" && model.wide_group) type = "q4_k";
    if (file == "q3_k_m") type = place.layer < 2 ? "q5_k" : "q4_k";
    if (file == "q3_k_l") type = "q5_k";
    if ((file == "iq4_nl" || file == "iq4_xs") && model.wide_group) type = "q5_k";
    if ((file == "q4_k_m" || file == "q5_k_m") && place.more_bits()) type = "q6_k";
    if (file == "q4_k_s" && place.layer < 4) type = "q5_k";
    if (model.seventy_billion && (type == "q3_k" || type == "q4_k")) type = "q5_k";
    return type;
}

std::string_view query_or_key_type(const Model& model, bool is_key) {
    const auto& [file, base] = model.mix;
    if (is_key && model.eight_experts) return smallest(file) ? "q4_k" : "q8_0";
    return file == "iq3_xxs" ? "iq2_s" : base;
}

std::string_view fused_type(const Model& model) {
    const auto& [file, base] = model.mix;
    if (file == "q3_k_m" || file == "q3_k_l") return "q4_k";
    if (file == "q4_k_m") return "q5_k";
    if (file == "q5_k_m") return "q6_k";
    return base;
}

std::string_view output_type(const Model& model) {
    const auto& [file, base] = model.mix;
    if (smallest(file)) {
        if (model.eight_experts) return "q5_k";
        return file.starts_with("iq1") ? "iq2_xxs" : file == "iq2_s" ? "iq3_s" : base;
    }
    if (model.falcon) return file == "q3_k_l" ? "q4_k" : base;
    if (model.eight_experts) {
        const bool raised = file != "q3_k_l" && bits_per_element(*find_format(base)) < 5.0 && !file.starts_with("q4_0");
        return raised ? "q5_k" : base;
    }
    if (file == "q2_k") return "q3_k";
    if (file == "iq3_xxs") return "iq3_s";
    if (file == "q3_k_m") return "q4_k";
    if (file == "q3_k_l") return "q5_k";
    return base;
}

std::string_view down_type(const Model& model, const Place& place) {
    const auto& [file, base] = model.mix;
    if (smallest(file)) {
        if (!place.first_eighth()) return base;
        return file == "iq2_s" ? "iq3_s" : "q2_k";
    }
    if (file == "q2_k") return "q3_k";
    if (file == "iq3_xxs") return place.first_eighth() ? "q4_k" : "q3_k";
    if (file == "q3_k_m") {
        if (place.layer < place.layers / 16) return "q5_k";
        return !model.falcon || place.more_bits() ? "q4_k" : base;
    }
    if (file == "q3_k_l") return model.falcon ? "q4_k" : "q5_k";
    if (file == "q4_k_m" && model.falcon) {
        if (place.layer < place.layers / 16) return "q6_k";
        return place.more_bits() ? "q5_k" : base;
    }
    if (file == "q4_k_m" || file == "q5_k_m") return place.more_bits() ? "q6_k" : base;
    if (file == "iq4_nl" || file == "iq4_xs") return place.first_eighth() ? "q5_k" : base;
    if (file == "q4_k_s" && !model.falcon) return place.first_eighth() ? "q5_k" : base;
    return base;
}

/// Bits of a matrix of one role in one layer.
double matrix_bits(const Model& model, const Place& values, const Place& place, Role role, double row,
                   const Gqa* attention) {
    switch (role) {
        case Role::attention_qkv: {
            if (model.fused_qkv) return bits_of(fused_type(model), row);
            if (attention == nullptr) return bits_of(model.mix.base, row);
            const GqaShape& shape = attention->shape();
            const double gate = shape.gate ? shape.query() : shape.head_gate ? shape.heads : 0.0;
            const double sum = (shape.query() + gate) * bits_of(query_or_key_type(model, false), row) +
                               shape.key() * bits_of(query_or_key_type(model, true), row) +
                               shape.value() * bits_of(value_type(model, values), row);
            return sum / (shape.query() + gate + shape.key() + shape.value());
        }
        case Role::attention_out:
            return bits_of(output_type(model), row);
        case Role::ffn_down:
        case Role::expert_down:
        case Role::shared_down:
            return bits_of(down_type(model, place), row);
        default:
            return usually_quantised(role) || role == Role::indexer || role == Role::compressor ||
                           role == Role::mixer_state
                       ? bits_of(model.mix.base, row)
                       : small_bits;
    }
}

/// A matrix of a role and what stands beside it, of one layer or outside the layers.
struct Stored {
    Role role = Role::other;
    double row = 0.0;
    double cells = 0.0;
    double beside = 0.0;
};

std::vector<Stored> stored(const Lowered& lowered, bool inside) {
    std::vector<Stored> result;
    for (const Operator& op : lowered.operators) {
        if (op.parameters <= 0.0 || op.name.starts_with("layers") != inside) continue;
        double cells = 0.0;
        if (op.extent.pattern == Pattern::product) cells = op.extent.inner * op.extent.cols * op.extent.copies;
        if (op.extent.pattern == Pattern::experts) cells = op.extent.inner * op.extent.cols * op.extent.experts_total;
        if (cells > op.parameters) cells = 0.0;  // a tied head multiplies with a table that it does not store
        result.push_back({op.role, op.extent.inner, cells, op.parameters - cells});
    }
    return result;
}

/// Of several matrices under one role the bits are those of all together.
class Bits {
  public:
    void add(Role role, double parameters, double bits) {
        parameters_[static_cast<std::size_t>(role)] += parameters;
        sum_[static_cast<std::size_t>(role)] += parameters * bits;
    }
    void write(RoleTypes& types) const {
        for (std::size_t role = 0; role < role_count; ++role) {
            if (parameters_[role] > 0.0) types[role].file_bits = sum_[role] / parameters_[role];
        }
    }

  private:
    std::array<double, role_count> parameters_{};
    std::array<double, role_count> sum_{};
};

bool keeps_qkv_fused(std::string_view family) {
    constexpr auto fused = std::to_array<std::string_view>(
        {"falcon", "gpt2", "gpt_neox", "gpt_bigcode", "bloom", "mpt", "phi3", "dbrx", "chatglm", "codeshell", "qwen"});
    return std::find(fused.begin(), fused.end(), family) != fused.end();
}

}  // namespace

bool is_gguf(const Format& format) {
    return format.weight_only && format.value == DType::int8;
}

TypePlan gguf_plan(const Architecture& architecture, const Format& named, DType activation, const Format& kv) {
    const std::size_t layers = architecture.layers.size();
    TypePlan plan = uniform_plan(layers, named, activation, kv);
    Model model{.mix = mix_of(named.name)};
    model.falcon = architecture.family == "falcon";
    model.fused_qkv = keeps_qkv_fused(architecture.family);

    // Every kind of layer lowered alone, so that operators can be told apart.
    std::vector<std::vector<Stored>> of_kind;
    std::vector<const Gqa*> attention;
    std::vector<Stored> outside;
    for (std::size_t kind = 0; kind < architecture.kinds.size(); ++kind) {
        Architecture one = architecture;
        one.layers = {static_cast<int>(kind)};
        const Lowered lowered = lower(one, uniform_plan(1, named, activation, kv));
        of_kind.push_back(stored(lowered, true));
        outside = stored(lowered, false);
        attention.push_back(dynamic_cast<const Gqa*>(architecture.kinds[kind].mixer.get()));
        for (const Operator& op : lowered.operators) {
            if (op.extent.pattern != Pattern::experts) continue;
            model.eight_experts = op.extent.experts_total == 8.0;
            model.four_experts = op.extent.experts_total >= 4.0;
        }
        if (const Gqa* own = attention.back(); own != nullptr) {
            model.wide_group = own->shape().heads / own->shape().kv_heads >= 4.0;
            model.seventy_billion = layers == 80 && own->shape().heads != own->shape().kv_heads &&
                                    (architecture.family == "llama" || architecture.family == "qwen2");
        }
    }
    const auto has_values = [&](std::size_t layer) {
        return attention[static_cast<std::size_t>(architecture.layers[layer])] != nullptr;
    };
    Place values{0, 0};
    for (std::size_t layer = 0; layer < layers; ++layer) values.layers += has_values(layer) ? 1 : 0;
    for (std::size_t layer = 0; layer < layers; ++layer) {
        const auto kind = static_cast<std::size_t>(architecture.layers[layer]);
        Bits bits;
        for (const Stored& each : of_kind[kind]) {
            const double own = matrix_bits(model, values, {layer, layers}, each.role, each.row, attention[kind]);
            bits.add(each.role, each.cells, own);
            bits.add(each.role, each.beside, small_bits);
        }
        bits.write(plan.layers[layer]);
        if (has_values(layer)) ++values.layer;
    }

    Bits bits;
    const double width = architecture.embedding_width > 0.0 ? architecture.embedding_width : architecture.hidden;
    for (const Stored& each : outside) {
        const bool table = each.role == Role::embedding;
        const bool head = each.role == Role::head || (table && architecture.tied);
        const double cells = table ? each.beside : each.cells;  // a table is looked up in, not multiplied with
        const double own = table || head ? bits_of(table_type(model, head, width), width) : small_bits;
        bits.add(each.role, cells, own);
        bits.add(each.role, each.beside + each.cells - cells, small_bits);
    }
    bits.write(plan.outside);
    return plan;
}

}  // namespace roofline::model
