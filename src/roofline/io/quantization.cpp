#include "roofline/io/quantization.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

namespace roofline::io {
namespace {

using model::Role;
using model::WeightType;

// Modules that hold the weights of a role, as checkpoints name them within a layer.
std::span<const std::string_view> modules_of(Role role) {
    static constexpr auto qkv =
        std::to_array<std::string_view>({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                         "self_attn.qkv_proj", "mixer.q_proj", "attn.c_attn"});
    static constexpr auto out =
        std::to_array<std::string_view>({"self_attn.o_proj", "mixer.o_proj", "attn.wo_a", "attn.wo_b"});
    static constexpr auto q_down = std::to_array<std::string_view>({"self_attn.q_a_proj", "attn.wq_a"});
    static constexpr auto q_up = std::to_array<std::string_view>({"self_attn.q_b_proj", "attn.wq_b"});
    static constexpr auto kv_down = std::to_array<std::string_view>({"self_attn.kv_a_proj_with_mqa", "attn.wkv"});
    static constexpr auto kv_up = std::to_array<std::string_view>({"self_attn.kv_b_proj"});
    static constexpr auto indexer =
        std::to_array<std::string_view>({"self_attn.indexer.wq_b", "attn.indexer.wq_b", "self_attn.index_q_proj"});
    static constexpr auto gate_up =
        std::to_array<std::string_view>({"mlp.gate_proj", "mlp.up_proj", "mlp.gate_up_proj", "mixer.up_proj"});
    static constexpr auto down = std::to_array<std::string_view>({"mlp.down_proj", "mixer.down_proj"});
    static constexpr auto expert_gate_up = std::to_array<std::string_view>(
        {"mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w1",
         "mixer.experts.0.up_proj", "ffn.experts.0.w1", "experts.0.gate_proj", "experts.gate_up_proj"});
    static constexpr auto expert_down = std::to_array<std::string_view>(
        {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "block_sparse_moe.experts.0.w2",
         "mixer.experts.0.down_proj", "ffn.experts.0.w2", "experts.0.down_proj", "experts.down_proj"});
    static constexpr auto shared_gate_up = std::to_array<std::string_view>(
        {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "ffn.shared_experts.w1",
         "mixer.shared_experts.up_proj", "block_sparse_moe.shared_experts.gate_proj", "share_expert.gate_proj"});
    static constexpr auto shared_down = std::to_array<std::string_view>(
        {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj", "ffn.shared_experts.w2",
         "mixer.shared_experts.down_proj", "block_sparse_moe.shared_experts.down_proj", "share_expert.down_proj"});
    static constexpr auto latent = std::to_array<std::string_view>({"mixer.fc1_latent_proj", "mixer.fc2_latent_proj"});
    static constexpr auto mixer_in =
        std::to_array<std::string_view>({"mixer.in_proj", "linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz",
                                         "linear_attn.in_proj_z", "mamba.in_proj"});
    static constexpr auto mixer_out =
        std::to_array<std::string_view>({"mixer.out_proj", "linear_attn.out_proj", "mamba.out_proj"});
    switch (role) {
        case Role::attention_qkv:
            return qkv;
        case Role::attention_out:
            return out;
        case Role::latent_q_down:
            return q_down;
        case Role::latent_q_up:
            return q_up;
        case Role::latent_kv_down:
            return kv_down;
        case Role::latent_kv_up:
            return kv_up;
        case Role::indexer:
            return indexer;
        case Role::ffn_gate_up:
            return gate_up;
        case Role::ffn_down:
            return down;
        case Role::expert_gate_up:
            return expert_gate_up;
        case Role::expert_down:
            return expert_down;
        case Role::shared_gate_up:
            return shared_gate_up;
        case Role::shared_down:
            return shared_down;
        case Role::moe_latent:
            return latent;
        case Role::mixer_in:
            return mixer_in;
        case Role::mixer_out:
            return mixer_out;
        default:
            return {};
    }
}

bool is_expert(Role role) {
    return role == Role::expert_gate_up || role == Role::expert_down;
}

/// '*' matches anything, dots too: as fnmatch does for the tools that write these lists.
bool glob(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == text[t] || pattern[p] == '?')) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// The simple expressions of compressed-tensors ("re:.*self_attn.*", "re:^lm_head$") as globs.
std::string glob_from_expression(std::string_view expression) {
    std::string result;
    for (std::size_t i = 0; i < expression.size(); ++i) {
        const char c = expression[i];
        if (c == '^' || c == '$') continue;
        if (c == '\\' && i + 1 < expression.size()) {
            const char escaped = expression[++i];
            result += escaped == 'd' ? '*' : escaped;
        } else if (c == '.' && i + 1 < expression.size() && (expression[i + 1] == '*' || expression[i + 1] == '+')) {
            result += '*';
            ++i;
        } else if (c == '+') {
            if (result.empty() || result.back() != '*') result += '*';
        } else {
            result += c;
        }
    }
    return result;
}

struct Rule {
    std::string pattern;
    std::optional<WeightType> type;  // empty: left in the checkpoint's own type
};

/// Rules, quick to ask layer by layer: lists of hundreds of modules name their layer.
class Rules {
  public:
    void add(std::string pattern, std::optional<WeightType> type) {
        const std::size_t at = pattern.find("layers.");
        if (at != std::string::npos) {
            std::size_t digits = at + 7;
            std::size_t end = digits;
            while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9') ++end;
            // "layers.1*" means layers 1 and 10 to 19; only a name that goes on with a dot is of one layer alone.
            if (end > digits && end - digits < 6 && (end == pattern.size() || pattern[end] == '.')) {
                by_layer_[std::stoul(pattern.substr(digits, end - digits))].push_back(
                    {pattern.substr(at), std::move(type)});
                return;
            }
            pattern = pattern.substr(pattern.starts_with("re:") ? 0 : at);
        }
        everywhere_.push_back({std::move(pattern), std::move(type)});
    }

    const Rule* find(std::size_t layer, std::string_view module) const {
        const std::string name = fmt::format("layers.{}.{}", layer, module);
        const auto matches = [&](const Rule& rule) { return module_matches(rule.pattern, name); };
        if (const auto own = by_layer_.find(layer); own != by_layer_.end()) {
            const auto found = std::find_if(own->second.begin(), own->second.end(), matches);
            if (found != own->second.end()) return &*found;
        }
        const auto found = std::find_if(everywhere_.begin(), everywhere_.end(), matches);
        return found == everywhere_.end() ? nullptr : &*found;
    }

    const Rule* head() const {
        for (const Rule& rule : everywhere_) {
            if (rule.pattern.ends_with("lm_head")) return &rule;
        }
        return nullptr;
    }
    bool empty() const { return by_layer_.empty() && everywhere_.empty(); }

  private:
    std::map<std::size_t, std::vector<Rule>> by_layer_;
    std::vector<Rule> everywhere_;
};

WeightType weights(std::string_view format, DType activation) {
    return {.format = *find_format(format), .activation = activation, .file_bits = std::nullopt};
}

/// Weight-only integers with a scale (and a zero point) per group.
WeightType integer_weights(double bits, double group, bool zero_point, DType stream) {
    WeightType type = weights("int4", stream);
    type.format.element_bits = bits;
    type.format.group = group > 0.0 ? static_cast<int>(group) : 0;
    if (group <= 0.0) type.format.scaling = Scaling::channel;  // -1 or absent: one scale per output channel
    type.format.scale_bits = 16.0 + (zero_point ? bits : 0.0);
    if (bits == 8.0) type.format.name = "int8";
    return type;
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
                            ? stored.number_or("group_size", 0.0)
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

struct Quantisation {
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
        to.listed.add(pattern,
                      modelopt_type(entry.text_or("quant_algo", ""), entry.number_or("group_size", 16.0), stream));
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

void read_quantization_config(Fields& quantization, Quantisation& to, DType stream, std::vector<std::string>& notes) {
    const std::string method = quantization.text_or("quant_method", "");
    add_listed(quantization, to, stream);
    // Modules left out of a finer method on top of an 8-bit checkpoint stay in 8 bits.
    if (method != "fp8" || !quantization.has("quantized_layers")) add_exclusions(quantization, to);
    if (method == "fp8" || method == "fbgemm_fp8") {
        const bool blocks = quantization.has("weight_block_size");
        to.quantised = weights(blocks ? "fp8_block" : "fp8", DType::fp8);
    } else if (method == "mxfp4") {
        to.quantised = weights("mxfp4", stream);
        to.quantised->format.weight_only = true;
        to.experts_only = true;
    } else if (method == "awq" || method == "gptq" || method == "auto-round") {
        // GPTQ files store zero points even where they are symmetric.
        to.quantised = integer_weights(quantization.size_or("bits", 4.0), quantization.number_or("group_size", 128.0),
                                       quantization.flag("zero_point", true), stream);
    } else if (method == "bitsandbytes") {
        const bool four = quantization.flag("load_in_4bit", false);
        to.quantised = integer_weights(four ? 4.0 : 8.0, four ? 64.0 : -1.0, false, stream);
        // NF4: one fp32 maximum for 64 weights, itself in 8 bits (and 32 for every 256 of them) if quantised twice.
        if (four)
            to.quantised->format.scale_bits =
                quantization.flag("bnb_4bit_use_double_quant", false) ? 8.0 + 32.0 / 256.0 : 32.0;
    } else if (method == "compressed-tensors" || method == "modelopt" || method == "modelopt_fp4" ||
               quantization.has("config_groups") || quantization.has("quant_algo")) {
        if (const auto named = modelopt_type(quantization.text_or("quant_algo", ""), 16.0, stream))
            to.quantised = named;
        read_config_groups(quantization, to, stream);
        const Json* kv = quantization.find("kv_cache_scheme");
        if (kv != nullptr && kv->is_string()) {
            to.kv = kv->get_ref<const std::string&>() == "FP8" ? std::optional(*find_format("fp8")) : std::nullopt;
        } else if (kv != nullptr) {
            Fields scheme = quantization.child("kv_cache_scheme");
            if (scheme.size_or("num_bits", 16.0) == 8.0) to.kv = *find_format("fp8");
        }
    } else if (!method.empty()) {
        notes.push_back(fmt::format(
            "quantisation \"{}\" is not known here; weights are counted in the checkpoint's plain type", method));
    }
}

void read_hf_quant_config(Fields& quantization, Quantisation& to, DType stream, std::vector<std::string>& notes) {
    const std::string algorithm = quantization.text_or("quant_algo", "");
    const bool said_before = to.quantised.has_value() || to.listed_only;
    if (to.listed.empty()) add_listed(quantization, to, stream);
    if (!said_before) {
        to.quantised = modelopt_type(algorithm, quantization.number_or("group_size", 16.0), stream);
        to.listed_only = algorithm == "MIXED_PRECISION";
        add_exclusions(quantization, to);
        if (!to.quantised && !to.listed_only && !algorithm.empty()) {
            notes.push_back(
                fmt::format("quantisation \"{}\" is not known here; weights are counted in the checkpoint's plain type",
                            algorithm));
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

std::string summarise(const model::TypePlan& plan, const model::Architecture& architecture) {
    std::vector<std::string> seen;
    for (const auto& layer : plan.layers) {
        for (std::size_t role = 0; role < model::role_count; ++role) {
            if (!model::usually_quantised(static_cast<Role>(role))) continue;
            std::string format(layer[role].format.name);
            if (std::find(seen.begin(), seen.end(), format) == seen.end()) seen.push_back(std::move(format));
        }
    }
    (void)architecture;
    return fmt::format("{}", fmt::join(seen, " + "));
}

}  // namespace

bool module_matches(std::string_view pattern, std::string_view module) {
    if (pattern.starts_with("re:")) return glob("*" + glob_from_expression(pattern.substr(3)), module);
    if (pattern.find('*') != std::string_view::npos) {
        const std::string inside = std::string(pattern) + ".*";  // a module stands for everything in it
        if (glob(pattern, module) || glob(inside, module)) return true;
        return !pattern.starts_with('*') && (glob("*." + std::string(pattern), module) || glob("*." + inside, module));
    }
    // A plain name speaks of the module itself and of everything inside it, wherever it stands.
    const std::string within = "." + std::string(module) + ".";
    return within.find("." + std::string(pattern) + ".") != std::string::npos;
}

CheckpointTypes read_types(Fields& language, const Json& whole, const model::Architecture& architecture,
                           std::vector<std::string>& notes) {
    std::optional<Problem> ignored;  // the whole config was checked to be an object before
    Fields outer(whole, language.file(), "", ignored);
    const DType plain = checkpoint_dtype(language, outer);
    Quantisation quantisation;
    Fields* holder = language.has("quantization_config") ? &language
                     : outer.has("quantization_config")  ? &outer
                                                         : nullptr;
    if (holder != nullptr) {
        Fields config = holder->child("quantization_config");
        read_quantization_config(config, quantisation, plain, notes);
    }
    if (outer.has("hf_quant_config")) {
        Fields file = outer.child("hf_quant_config");
        if (file.has("quantization")) {
            Fields config = file.child("quantization");
            read_hf_quant_config(config, quantisation, plain, notes);
        }
    }
    if (ignored && !language.failed()) notes.push_back(ignored->text);

    CheckpointTypes result;
    model::TypePlan& plan = result.plan;
    plan = model::uniform_plan(architecture.layers.size(), plain_format(plain), plain,
                               quantisation.kv.value_or(plain_format(plain)));
    plan.attention = plain;
    const auto type_of = [&](std::size_t layer, Role role) -> std::optional<WeightType> {
        if (!model::usually_quantised(role) && role != Role::indexer) return std::nullopt;
        for (const Rules* rules : {&quantisation.listed, &quantisation.targets, &quantisation.excluded}) {
            for (const std::string_view module : modules_of(role)) {
                if (const Rule* rule = rules->find(layer, module)) return rule->type;
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
            if (const Rule* head = rules->head(); head != nullptr && head->type)
                plan.outside[static_cast<std::size_t>(Role::head)] = *head->type;
        }
    }
    // DeepSeek V4 says of its experts alone that they are 4-bit floats, beside an 8-bit quantization_config.
    if (language.text_or("expert_dtype", "") == "fp4" && quantisation.listed.empty()) {
        for (auto& layer : plan.layers) {
            for (const Role role : {Role::expert_gate_up, Role::expert_down})
                layer[static_cast<std::size_t>(role)] = weights("mxfp4", DType::fp8);
        }
    }
    result.summary = summarise(plan, architecture);
    return result;
}

}  // namespace roofline::io
