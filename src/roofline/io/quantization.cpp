#include "roofline/io/quantization.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "roofline/io/module_patterns.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/model/attention/gqa.hpp"
#include "roofline/model/predictor.hpp"

namespace roofline::io {
namespace {

using model::Role;
using model::WeightType;

bool is_expert(Role role) {
    return role == Role::expert_gate_up || role == Role::expert_down;
}

/// Patterns with the type each stands for; empty: left in the checkpoint's own type.
class Rules {
  public:
    void add(std::string pattern, const std::optional<WeightType>& type) {
        types_.push_back(type);
        written_.push_back(pattern);
        patterns_.add(std::move(pattern), types_.size() - 1);
    }
    /// Of a module outside the stack, by its whole name.
    const std::optional<WeightType>* find(const std::string& module) const {
        const auto found = std::find_if(written_.begin(), written_.end(),
                                        [&](const std::string& pattern) { return module_matches(pattern, module); });
        return found == written_.end() ? nullptr : &types_[static_cast<std::size_t>(found - written_.begin())];
    }
    const std::optional<WeightType>* find(std::size_t layer, std::string_view module) const {
        return type_at(patterns_.find(layer, module));
    }
    const std::optional<WeightType>* outside(Role role) const { return type_at(patterns_.find_outside(role)); }
    bool empty() const { return patterns_.empty(); }

  private:
    const std::optional<WeightType>* type_at(std::size_t meaning) const {
        return meaning == ModulePatterns::npos ? nullptr : &types_[meaning];
    }
    ModulePatterns patterns_;
    std::vector<std::optional<WeightType>> types_;
    std::vector<std::string> written_;
};

WeightType weights(std::string_view format, DType activation) {
    return {.format = *find_format(format), .activation = activation, .file_bits = std::nullopt};
}

/// Weight-only integers with a scale (and a zero point) per group.
WeightType integer_weights(double bits, double group, bool zero_point, DType stream) {
    constexpr auto names = std::to_array<std::string_view>({"int2", "int3", "int4", "int5", "int6"});
    WeightType type = weights(bits >= 2.0 && bits <= 6.0 ? names[static_cast<std::size_t>(bits) - 2] : "int4", stream);
    type.format.element_bits = bits;
    type.format.group = group > 0.0 ? static_cast<int>(group) : 0;
    if (group <= 0.0) type.format.scaling = Scaling::channel;  // -1 or absent: one scale per output channel
    type.format.scale_bits = 16.0 + (zero_point ? bits : 0.0);
    if (bits == 8.0) type.format.name = "int8";
    return type;
}

/// A group of weights that share a scale; 0 (or -1, as some files write it) means one scale per output channel.
double read_group_size(Fields& fields, double fallback) {
    const double size = fields.number_or("group_size", fallback);
    if (size == -1.0 || size == 0.0) return 0.0;
    if (!(size >= 1.0 && size <= 65536.0 && size == std::floor(size))) {
        fields.complain("group_size", fmt::format("is {}, expected a whole number from 1 to 65536, or -1", size));
        return fallback;
    }
    return size;
}

/// NVIDIA's names for what it did to a module.
std::optional<WeightType> modelopt_type(std::string_view algorithm, double group, DType stream) {
    if (algorithm == "FP8") return weights("fp8", DType::fp8);
    if (algorithm == "FP8_PB_WO" || algorithm == "FP8_BLOCK_SCALES") return weights("fp8_block", DType::fp8);
    if (algorithm == "MXFP8") return weights("mxfp8", DType::fp8);
    if (algorithm == "NVFP4" || algorithm == "NVFP4_AWQ") return weights("nvfp4", DType::fp4);
    if (algorithm == "W4A16_NVFP4") return weights("nvfp4", stream);
    if (algorithm == "W4A8_NVFP4_FP8") return weights("nvfp4", DType::fp8);
    if (algorithm == "MXFP4" || algorithm == "W4A8_MXFP4_FP8")
        return weights("mxfp4", algorithm == "MXFP4" ? DType::fp4 : DType::fp8);
    if (algorithm == "W4A16_AWQ" || algorithm == "W4A16") return integer_weights(4.0, group, false, stream);
    if (algorithm == "W8A16" || algorithm == "W8A16_GPTQ") return integer_weights(8.0, group, false, stream);
    if (algorithm == "W8A8_SQ_PER_CHANNEL" || algorithm == "INT8_SQ") return weights("int8", DType::int8);
    return std::nullopt;
}

/// One entry of compressed-tensors' or modelopt's config_groups.
std::optional<WeightType> group_type(Fields& group, DType stream) {
    if (!group.has("weights")) return std::nullopt;
    Fields stored = group.child("weights");
    const double bits = stored.size_or("num_bits", 16.0);
    const std::string kind = stored.text_or("type", "int");
    const double size = stored.find("group_size") != nullptr && stored.find("group_size")->is_number()
                            ? read_group_size(stored, 0.0)
                            : 0.0;
    DType activation = stream;
    if (group.has("input_activations")) {
        Fields input = group.child("input_activations");
        const double width = input.size_or("num_bits", 16.0);
        const bool is_float = input.text_or("type", "float") == "float";
        if (width == 8.0) activation = is_float ? DType::fp8 : DType::int8;
        if (width == 4.0) activation = is_float ? DType::fp4 : DType::int4;
    }
    if (kind == "float" && bits == 8.0)
        return weights(stored.text_or("strategy", "") == "block" ? "fp8_block" : "fp8", activation);
    if (kind == "float" && bits == 4.0) return weights(size == 32.0 ? "mxfp4" : "nvfp4", activation);
    if (kind == "int" && activation == DType::int8 && bits == 8.0) return weights("int8", activation);
    if (kind == "int" && bits <= 8.0) return integer_weights(bits, size, !stored.flag("symmetric", true), stream);
    return std::nullopt;
}

/// Counted in the plain type, weights of an unknown quantisation would come out two to eight times too large.
void refuse_method(Fields& quantization, std::string_view key, std::string_view name) {
    quantization.complain(key, fmt::format("is \"{}\", a quantisation that is not known here", printable(name)));
}

struct Quantisation {
    bool mlx = false;                     // tables and routers are quantised like every other matrix
    std::optional<WeightType> quantised;  // what modules get unless a rule says otherwise
    // From the most particular to the most general: modules listed with their own method, targets of a group, modules
    // left out.
    Rules listed;
    Rules targets;
    Rules excluded;
    bool experts_only = false;
    bool listed_only = false;  // only modules that a rule names are quantised
    std::optional<Format> kv;
};

void add_exclusions(Fields& from, Quantisation& to) {
    for (const char* key : {"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"}) {
        for (std::string& pattern : from.texts(key)) to.excluded.add(std::move(pattern), std::nullopt);
    }
}

/// "quantized_layers": modules with the method that was used on each.
void add_listed(Fields& from, Quantisation& to, DType stream) {
    if (!from.has("quantized_layers")) return;
    Fields listed = from.child("quantized_layers");
    for (const std::string& pattern : listed.keys()) {
        Fields entry = listed.child(pattern);
        to.listed.add(pattern, modelopt_type(entry.text_or("quant_algo", ""), read_group_size(entry, 16.0), stream));
    }
}

void read_config_groups(Fields& quantization, Quantisation& to, DType stream) {
    if (!quantization.has("config_groups")) return;
    Fields groups = quantization.child("config_groups");
    for (const std::string& name : groups.keys()) {
        Fields group = groups.child(name);
        const auto type = group_type(group, stream);
        const auto targets = group.texts("targets");
        const bool all = targets.empty() || std::find(targets.begin(), targets.end(), "Linear") != targets.end();
        if (all) {
            to.quantised = type;
        } else {
            to.listed_only = !to.quantised;
            for (const std::string& target : targets) to.targets.add(target, type);
        }
    }
}

/// What MLX calls its quantisation, of all modules or of one: bits, group_size, mode. Groups have a scale and a bias as
/// wide as the activations, those of 4- and 8-bit floats an 8-bit scale.
WeightType mlx_type(Fields& fields, DType stream) {
    const std::string mode = fields.text_or("mode", "affine");
    if (mode == "mxfp4" || mode == "nvfp4" || mode == "mxfp8") {
        WeightType type = weights(mode, stream);
        type.format.weight_only = true;
        return type;
    }
    const double width = fields.size("bits");
    const double group = fields.size_or("group_size", 64.0);
    if (mode != "affine")
        fields.complain("mode", fmt::format("is \"{}\", expected affine, mxfp4, nvfp4 or mxfp8", printable(mode)));
    if (!(width >= 2.0 && width <= 8.0) || width == 7.0)
        fields.complain("bits", fmt::format("is {}, expected 2, 3, 4, 5, 6 or 8", width));
    if (group > 65536.0) fields.complain("group_size", fmt::format("is {}, expected at most 65536", group));
    WeightType type = integer_weights(width, std::min(group, 65536.0), false, stream);
    type.format.scale_bits = 2.0 * bits(stream);
    return type;
}

/// "quantization" as mlx-lm writes it: the quantisation of all modules, and beside it those that differ, each under its
/// path with its own or with false.
void read_mlx(Fields& quantization, Quantisation& to, DType stream) {
    to.mlx = true;
    to.quantised = mlx_type(quantization, stream);
    for (const std::string& key : quantization.keys()) {
        const Json* value = quantization.find(key);
        if (value == nullptr) continue;
        if (value->is_object()) {
            Fields own = quantization.child(key);
            to.listed.add(key, mlx_type(own, stream));
        } else if (value->is_boolean() && key.find('.') != std::string::npos) {
            to.listed.add(key, value->get<bool>() ? to.quantised : std::nullopt);
        }
    }
}

/// MLX quantises what stands outside the layers too; in a model of tied embeddings the head is the table.
void set_mlx_tables(const Quantisation& quantisation, bool tied, model::TypePlan& plan) {
    for (const Role role : {Role::embedding, Role::head, Role::position}) {
        const auto* own = quantisation.listed.outside(tied && role == Role::head ? Role::embedding : role);
        const auto& type = own != nullptr ? *own : quantisation.quantised;
        if (type) plan.outside[static_cast<std::size_t>(role)] = *type;
    }
}

/// Every matrix but the gates that DeepSeek and its kin keep as bare arrays.
bool mlx_quantises(Role role, std::string_view family) {
    const bool bare_gate = family.starts_with("deepseek") || family.starts_with("kimi") || family.starts_with("glm");
    return model::usually_quantised(role) || role == Role::indexer || (role == Role::router && !bare_gate);
}

/// q, k and v are one product here, but recipes such as 4 bits with 6 for some values treat them apart: then the bits
/// are those of the three together.
std::optional<WeightType> mlx_qkv_type(const Quantisation& quantisation, std::size_t layer, const model::Block& mixer,
                                       DType plain) {
    const auto* attention = dynamic_cast<const model::Gqa*>(&mixer);
    const auto find = [&](std::string_view module) {
        const auto* own = quantisation.listed.find(layer, module);
        return own != nullptr ? *own : quantisation.quantised;
    };
    if (const auto* fused = quantisation.listed.find(layer, "self_attn.qkv_proj")) return *fused;
    const auto query = find("self_attn.q_proj");
    const auto key = find("self_attn.k_proj");
    const auto value = find("self_attn.v_proj");
    if (attention == nullptr) return query;
    const auto width = [&](const std::optional<WeightType>& type) {
        return type ? bits_per_element(type->format) : static_cast<double>(bits(plain));
    };
    const model::GqaShape& shape = attention->shape();
    const double columns = shape.query() + shape.key() + shape.value();
    const double sum = shape.query() * width(query) + shape.key() * width(key) + shape.value() * width(value);
    if (sum == columns * width(query)) return query;
    WeightType type = query.value_or(value.value_or(key.value_or(WeightType{})));
    type.file_bits = sum / columns;
    return type;
}

/// A number type as Quark and Quanto name it.
std::optional<WeightType> named_type(std::string_view name, double group, DType activation, DType stream) {
    if (name == "fp8_e4m3" || name == "fp8_e5m2" || name == "float8" || name == "qfloat8")
        return weights("fp8", activation);
    if (name == "fp4" || name == "mxfp4") return weights("mxfp4", activation);
    if (name == "int8" || name == "qint8")
        return activation == DType::int8 ? weights("int8", activation) : integer_weights(8.0, group, false, stream);
    if (name == "int4" || name == "uint4" || name == "qint4") return integer_weights(4.0, group, true, stream);
    if (name == "int2" || name == "qint2") return integer_weights(2.0, group, true, stream);
    return std::nullopt;
}

/// AMD's Quark: one entry for all layers; layers with one of their own are not known here.
void read_quark(Fields& quantization, Quantisation& to, DType stream) {
    for (std::string& pattern : quantization.texts("exclude")) to.excluded.add(std::move(pattern), std::nullopt);
    if (const Json* own = quantization.find("layer_quant_config"); own != nullptr && !own->empty()) {
        quantization.complain("layer_quant_config", "is set: layers quantised apart by Quark are not known here");
        return;
    }
    Fields all = quantization.child("global_quant_config");
    Fields stored = all.child("weight");
    DType activation = stream;
    if (all.has("input_tensors")) {
        const std::string input = all.child("input_tensors").text_or("dtype", "");
        if (input.starts_with("fp8")) activation = DType::fp8;
        if (input == "fp4") activation = DType::fp4;
        if (input == "int8") activation = DType::int8;
    }
    const std::string type = stored.text_or("dtype", "");
    to.quantised = named_type(type, stored.has("group_size") ? read_group_size(stored, 0.0) : 0.0, activation, stream);
    if (!to.quantised) refuse_method(stored, "dtype", type);
}

/// Methods met now and then; false if it is none of these either.
bool read_rare_method(Fields& quantization, std::string_view method, Quantisation& to, DType stream) {
    if (method == "bitnet") {
        to.quantised = integer_weights(2.0, 0.0, false, stream);  // four weights of -1, 0, 1 in a byte
    } else if (method == "eetq") {
        to.quantised = integer_weights(8.0, 0.0, false, stream);
    } else if (method == "hqq") {
        Fields all = quantization.child("quant_config");
        Fields stored = all.child("weight_quant_params");
        to.quantised = integer_weights(stored.size("nbits"), read_group_size(stored, 64.0), false, stream);
        to.quantised->format.scale_bits = 32.0;  // scale and zero point in 16 bits each
    } else if (method == "quanto") {
        const std::string type = quantization.text_or("weights", "");
        to.quantised = named_type(type, type == "int8" || type == "float8" ? 0.0 : 128.0, stream, stream);
        if (!to.quantised) refuse_method(quantization, "weights", type);
    } else if (method == "exl2" || method == "exl3") {
        // The average that was asked for, scales included; the head has its own.
        const auto average = [&](const char* key, double fallback) {
            WeightType type = weights("int4", stream);
            type.file_bits = quantization.has(key) ? quantization.positive(key) : fallback;
            return type;
        };
        to.quantised = average("bits", 4.0);
        to.targets.add("lm_head", average("head_bits", 6.0));
    } else if (method == "quark") {
        read_quark(quantization, to, stream);
    } else {
        return false;
    }
    return true;
}

void read_quantization_config(Fields& quantization, Quantisation& to, DType stream) {
    const std::string method = quantization.text_or("quant_method", "");
    add_listed(quantization, to, stream);
    // Modules left out of a finer method on top of an 8-bit checkpoint stay in 8 bits.
    if (method != "fp8" || !quantization.has("quantized_layers")) add_exclusions(quantization, to);
    if (method == "fp8" || method == "fbgemm_fp8") {
        const bool blocks = quantization.has("weight_block_size");
        to.quantised = weights(blocks ? "fp8_block" : "fp8", DType::fp8);
        if (const auto block = quantization.numbers("weight_block_size"); !block.empty()) {
            if (block[0] >= 1.0 && block[0] <= 65536.0) {
                to.quantised->format.group = static_cast<int>(block[0]);
            } else {
                quantization.complain("weight_block_size", "is out of range, expected sizes from 1 to 65536");
            }
        }
    } else if (method == "mxfp4") {
        to.quantised = weights("mxfp4", stream);
        to.quantised->format.weight_only = true;
        to.experts_only = true;
    } else if (method == "awq" || method == "gptq" || method == "auto-round") {
        // GPTQ files store zero points even where they are symmetric.
        to.quantised = integer_weights(quantization.size_or("bits", 4.0), read_group_size(quantization, 128.0),
                                       quantization.flag("zero_point", true), stream);
    } else if (method == "bitsandbytes") {
        const bool four = quantization.flag("load_in_4bit", false);
        to.quantised = integer_weights(four ? 4.0 : 8.0, four ? 64.0 : -1.0, false, stream);
        // NF4: one fp32 maximum for 64 weights, itself in 8 bits (and 32 for every 256 of them) if quantised twice.
        if (four) {
            to.quantised->format.scale_bits =
                quantization.flag("bnb_4bit_use_double_quant", false) ? 8.0 + 32.0 / 256.0 : 32.0;
        }
    } else if (method == "compressed-tensors" || method == "modelopt" || method == "modelopt_fp4" ||
               quantization.has("config_groups") || quantization.has("quant_algo")) {
        const std::string algorithm = quantization.text_or("quant_algo", "");
        to.quantised = modelopt_type(algorithm, 16.0, stream);
        to.listed_only = algorithm == "MIXED_PRECISION" && !to.listed.empty();
        read_config_groups(quantization, to, stream);
        if (!to.quantised && !to.listed_only && to.targets.empty()) {
            // Only the cache may be quantised; then nothing is said of the weights.
            if (!algorithm.empty())
                refuse_method(quantization, "quant_algo", algorithm);
            else if (quantization.has("config_groups") || !quantization.has("kv_cache_scheme"))
                refuse_method(quantization, "quant_method", method);
        }
        const Json* kv = quantization.find("kv_cache_scheme");
        if (kv != nullptr && kv->is_string()) {
            to.kv = kv->get_ref<const std::string&>() == "FP8" ? std::optional(*find_format("fp8")) : std::nullopt;
        } else if (kv != nullptr) {
            Fields scheme = quantization.child("kv_cache_scheme");
            if (scheme.size_or("num_bits", 16.0) == 8.0) to.kv = *find_format("fp8");
        }
    } else if (!method.empty() && !read_rare_method(quantization, method, to, stream)) {
        refuse_method(quantization, "quant_method", method);
    }
}

void read_hf_quant_config(Fields& quantization, Quantisation& to, DType stream) {
    const std::string algorithm = quantization.text_or("quant_algo", "");
    const bool said_before = to.quantised.has_value() || to.listed_only;
    if (to.listed.empty()) add_listed(quantization, to, stream);
    if (!said_before) {
        to.quantised = modelopt_type(algorithm, read_group_size(quantization, 16.0), stream);
        to.listed_only = algorithm == "MIXED_PRECISION";
        add_exclusions(quantization, to);
        if (!to.quantised && !to.listed_only && !algorithm.empty()) {
            refuse_method(quantization, "quant_algo", algorithm);
        }
    }
    if (quantization.text_or("kv_cache_quant_algo", "") == "FP8") to.kv = *find_format("fp8");
}

DType checkpoint_dtype(Fields& language, Fields& whole) {
    for (Fields* fields : {&language, &whole}) {
        for (const char* key : {"torch_dtype", "dtype"}) {
            if (!fields->has(key)) continue;
            const std::string text = fields->text_or(key, "bfloat16");
            if (text == "auto") continue;
            if (const auto type = parse_dtype(text)) return *type;
            fields->complain(key, fmt::format("is \"{}\", expected a number type such as bfloat16", text));
        }
    }
    return DType::bf16;
}

/// F49: layers that predict are stored as those of the stack that are like them, except for modules that a list leaves
/// out, or, where only what is listed is quantised, does not name.
std::vector<model::RoleTypes> predictor_types(const model::Architecture& architecture, const model::TypePlan& plan,
                                              const Quantisation& quantisation) {
    if (architecture.predictors <= 0.0) return {};
    std::vector<model::RoleTypes> layers = model::predictor_types(architecture, plan).layers;
    const auto left_plain = [&](std::size_t number, std::string_view module) {
        const std::string names[] = {fmt::format("mtp.layers.{}.{}", number, module),
                                     fmt::format("model.layers.{}.{}", architecture.layers.size() + number, module)};
        for (const Rules* rules : {&quantisation.listed, &quantisation.targets, &quantisation.excluded}) {
            for (const std::string& name : names) {
                if (const auto* type = rules->find(name)) return !type->has_value();
            }
        }
        return quantisation.listed_only;
    };
    for (std::size_t number = 0; number < layers.size(); ++number) {
        for (std::size_t role = 0; role < model::role_count; ++role) {
            const auto modules = modules_of(static_cast<Role>(role), architecture.family);
            if (model::usually_quantised(static_cast<Role>(role)) &&
                std::ranges::any_of(modules, [&](std::string_view each) { return left_plain(number, each); }))
                layers[number][role] = {
                    .format = plain_format(plan.stream), .activation = plan.stream, .file_bits = std::nullopt};
        }
    }
    return layers;
}

}  // namespace

Result<CheckpointTypes> read_types(Fields& language, const Json& whole, const model::Architecture& architecture) {
    std::optional<Problem> problem;
    Fields outer(whole, language.file(), "", problem);
    const DType plain = checkpoint_dtype(language, outer);
    Quantisation quantisation;
    Fields* holder = language.has("quantization_config") ? &language
                     : outer.has("quantization_config")  ? &outer
                                                         : nullptr;
    Fields* mlx = language.has("quantization") ? &language : outer.has("quantization") ? &outer : nullptr;
    if (mlx != nullptr && mlx->find("quantization")->is_object()) {
        Fields config = mlx->child("quantization");
        read_mlx(config, quantisation, plain);
    } else if (holder != nullptr) {
        Fields config = holder->child("quantization_config");
        if (config.has("quant_method") || !config.has("bits"))
            read_quantization_config(config, quantisation, plain);
        else
            read_mlx(config, quantisation, plain);  // mlx-lm writes the same under this name too
    }
    if (outer.has("hf_quant_config")) {
        Fields file = outer.child("hf_quant_config");
        if (file.has("quantization")) {
            Fields config = file.child("quantization");
            read_hf_quant_config(config, quantisation, plain);
        }
    }

    if (problem) return std::unexpected(*problem);

    CheckpointTypes result;
    model::TypePlan& plan = result.plan;
    plan = model::uniform_plan(architecture.layers.size(), plain_format(plain), plain,
                               quantisation.kv.value_or(plain_format(plain)));
    plan.attention = plain;
    const auto type_of = [&](std::size_t layer, Role role) -> std::optional<WeightType> {
        const bool by_mlx = quantisation.mlx && mlx_quantises(role, architecture.family);
        if (!model::usually_quantised(role) && role != Role::indexer && !by_mlx) return std::nullopt;
        const auto& kind = architecture.kinds[static_cast<std::size_t>(architecture.layers[layer])];
        if (by_mlx && role == Role::attention_qkv && kind.mixer)
            return mlx_qkv_type(quantisation, layer, *kind.mixer, plain);
        const auto modules =
            quantisation.mlx ? mlx_modules_of(role, architecture.family) : modules_of(role, architecture.family);
        for (const Rules* rules : {&quantisation.listed, &quantisation.targets, &quantisation.excluded}) {
            for (const std::string_view module : modules) {
                if (const auto* type = rules->find(layer, module)) return *type;
            }
        }
        if (quantisation.listed_only || (quantisation.experts_only && !is_expert(role))) return std::nullopt;
        return quantisation.quantised;
    };
    if (quantisation.quantised || quantisation.listed_only || !quantisation.listed.empty()) {
        for (std::size_t layer = 0; layer < plan.layers.size(); ++layer) {
            for (std::size_t role = 0; role < model::role_count; ++role) {
                if (const auto type = type_of(layer, static_cast<Role>(role))) plan.layers[layer][role] = *type;
            }
        }
        // The head is quantised only where a list says so by name.
        for (const Rules* rules : {&quantisation.targets, &quantisation.listed}) {
            if (const auto* head = rules->outside(Role::head); head != nullptr && *head)
                plan.outside[static_cast<std::size_t>(Role::head)] = **head;
        }
        if (quantisation.mlx) set_mlx_tables(quantisation, architecture.tied, plan);
    }
    plan.predictor = predictor_types(architecture, plan, quantisation);
    // DeepSeek V4 says of its experts alone that they are 4-bit floats, beside an 8-bit quantization_config.
    if (language.text_or("expert_dtype", "") == "fp4" && quantisation.listed.empty()) {
        for (auto* layers : {&plan.layers, &plan.predictor}) {
            for (auto& layer : *layers) {
                for (const Role role : {Role::expert_gate_up, Role::expert_down})
                    layer[static_cast<std::size_t>(role)] = weights("mxfp4", DType::fp8);
            }
        }
    }
    return result;
}

}  // namespace roofline::io
