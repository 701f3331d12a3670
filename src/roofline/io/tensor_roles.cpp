#include "roofline/io/tensor_roles.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace roofline::io {

namespace {

using model::Role;

// How a name is looked at. "model.layers.3.mlp.experts.17.gate_up_proj_blocks" becomes
//   1. without its suffix: parameter kinds (".weight", ".bias") and quantisation side tensors (".weight_scale");
//   2. without its numbers: "model.layers.mlp.experts.gate_up_proj_blocks", and the number behind "layers" is kept;
//   3. the first rule that fits it gives the role;
//   4. if none does, once more without "_blocks", "_scales" or "_bias" at the end of the last word.

// Longest first where one ends in another.
constexpr std::array<std::string_view, 36> suffixes = {
    ".weight_scale_inv",
    ".weight_scale_2",
    ".weight_scale",
    ".weight_global_scale",
    ".weight_zero_point",
    ".weight_packed",
    ".weight_shape",
    ".weight_g_idx",
    ".weight_chan_scale",
    ".weight_offset",
    ".input_scale_inv",
    ".input_scale",
    ".input_global_scale",
    ".input_zero_point",
    ".input_amax",
    ".weight_amax",
    ".output_scale",
    ".activation_scale",
    ".k_scale",
    ".v_scale",
    ".q_scale",
    ".qweight",
    ".qzeros",
    ".scales",
    ".scale",
    ".biases",
    ".g_idx",
    ".nested_absmax",
    ".nested_quant_map",
    ".absmax",
    ".quant_map",
    ".SCB",
    ".base_layer",
    ".pre_quant_scale",
    ".weight",
    ".bias",
};
constexpr std::string_view bitsandbytes_state = ".quant_state.";  // followed by the name of the 4-bit type

constexpr std::array<std::string_view, 6> word_endings = {"_blocks",    "_scales", "_bias",
                                                          "_scale_inv", "_scale",  "_weight"};

constexpr std::array<std::string_view, 6> layer_words = {"layers", "blk", "h", "blocks", "block", "layer"};

constexpr std::array<std::string_view, 20> vision_words = {
    "vision_tower",
    "visual",
    "vision_model",
    "vision_encoder",
    "vision_language_adapter",
    "vision_adapter",
    "vit",
    "image_newline",
    "mm_projector",
    "multi_modal_projector",
    "embed_vision",
    "embed_audio",
    "audio_tower",
    "audio_model",
    "audio_encoder",
    "patch_merger",
    "vision_embed_tokens",
    "img_processor",
    "patch_merge_mlp",
    "vision_projection",
};
constexpr std::array<std::string_view, 3> vision_first_words = {"v", "mm", "a"};  // GGUF projector files

constexpr std::array<std::string_view, 9> mtp_words = {"mtp",   "nextn", "mtp_block",   "mtp_layers",   "eh_proj",
                                                       "enorm", "hnorm", "shared_head", "mtp_emb_norms"};

enum class Match {
    inside,  // `tail` is one of the words
    ends,    // the last words are `tail`
    starts,  // the last word starts with `tail`
    has,     // the last word contains `tail`
    whole,   // the name is `tail`
};

struct Rule {
    std::string_view within;  // a word that must be in the name too; empty: any name
    Match match;
    std::string_view tail;
    Role role;
};

// First fit wins, so the particular come before the general.
constexpr std::array rules = std::to_array<Rule>({
    // Sparse and compressed attention own whatever is under them, norms included.
    {"", Match::inside, "indexer", Role::indexer},
    {"", Match::starts, "indexer", Role::indexer},
    {"", Match::starts, "index_", Role::indexer},
    {"", Match::inside, "compressor", Role::compressor},
    {"", Match::starts, "attn_compressor", Role::compressor},
    {"", Match::starts, "compressor", Role::compressor},

    // Multi-token prediction has a head of its own in some checkpoints.
    {"", Match::ends, "shared_head.head", Role::head},
    {"", Match::ends, "shared_head_head", Role::head},
    {"", Match::ends, "eh_proj", Role::other},

    // Every other norm, before words like "output" or "router" can claim it.
    {"", Match::has, "norm", Role::norm},
    {"", Match::starts, "ln_", Role::norm},
    {"", Match::ends, "ln1", Role::norm},
    {"", Match::ends, "ln2", Role::norm},
    {"", Match::starts, "layer_norm", Role::norm},
    {"", Match::ends, "time_mix_ln", Role::norm},

    // Tables and head.
    {"", Match::ends, "embed_tokens", Role::embedding},
    {"", Match::ends, "embed_tokens_per_layer", Role::embedding},
    {"", Match::ends, "token_embd", Role::embedding},
    {"", Match::ends, "per_layer_token_embd", Role::embedding},
    {"", Match::ends, "tok_embeddings", Role::embedding},
    {"", Match::ends, "word_embeddings", Role::embedding},
    {"", Match::ends, "wte", Role::embedding},
    {"", Match::ends, "embed_in", Role::embedding},
    {"", Match::ends, "backbone.embeddings", Role::embedding},
    {"", Match::ends, "backbone.embedding", Role::embedding},
    {"", Match::ends, "model.embeddings", Role::embedding},
    {"", Match::whole, "embeddings", Role::embedding},
    {"", Match::whole, "embed", Role::embedding},
    {"mtp", Match::ends, "embed", Role::embedding},
    {"", Match::ends, "embed_positions", Role::position},
    {"", Match::ends, "position_embeddings", Role::position},
    {"", Match::ends, "position_embd", Role::position},
    {"", Match::ends, "wpe", Role::position},
    {"", Match::ends, "lm_head", Role::head},
    {"", Match::ends, "embed_out", Role::head},
    {"", Match::ends, "output_layer", Role::head},
    {"", Match::whole, "output", Role::head},
    {"", Match::whole, "head", Role::head},
    {"mtp", Match::ends, "head", Role::head},

    // State-space and linear attention.
    {"", Match::starts, "in_proj_", Role::mixer_in},  // linear_attn.in_proj_qkvz, _ba, _qkv, _z, _a, _b
    {"linear_attn", Match::ends, "out_proj", Role::mixer_out},
    {"linear_attn", Match::ends, "o_proj", Role::mixer_out},
    {"mixer", Match::ends, "in_proj", Role::mixer_in},
    {"mixer", Match::ends, "out_proj", Role::mixer_out},
    {"mamba", Match::ends, "in_proj", Role::mixer_in},
    {"mamba", Match::ends, "out_proj", Role::mixer_out},
    {"mamba", Match::ends, "x_proj", Role::mixer_state},
    {"mixer", Match::ends, "x_proj", Role::mixer_state},
    {"", Match::ends, "dt_proj", Role::mixer_state},
    {"conv", Match::ends, "in_proj", Role::mixer_in},
    {"conv", Match::ends, "out_proj", Role::mixer_out},
    {"conv", Match::ends, "conv", Role::mixer_state},
    {"shortconv", Match::ends, "in_proj", Role::mixer_in},
    {"shortconv", Match::ends, "out_proj", Role::mixer_out},
    {"shortconv", Match::ends, "conv", Role::mixer_state},
    {"", Match::has, "conv1d", Role::mixer_state},
    {"", Match::ends, "A_log", Role::mixer_state},
    {"", Match::ends, "D", Role::mixer_state},
    {"", Match::ends, "dt_bias", Role::mixer_state},
    {"", Match::ends, "f_a_proj", Role::mixer_in},
    {"", Match::ends, "f_b_proj", Role::mixer_in},
    {"", Match::ends, "g_a_proj", Role::mixer_in},
    {"", Match::ends, "g_b_proj", Role::mixer_in},
    {"self_attn", Match::ends, "b_proj", Role::mixer_in},
    {"", Match::ends, "ssm_in", Role::mixer_in},
    {"", Match::ends, "ssm_ba", Role::mixer_in},
    {"", Match::ends, "ssm_alpha", Role::mixer_in},
    {"", Match::ends, "ssm_beta", Role::mixer_in},
    {"", Match::starts, "ssm_f_", Role::mixer_in},
    {"", Match::starts, "ssm_g", Role::mixer_in},
    {"", Match::ends, "ssm_out", Role::mixer_out},
    {"", Match::starts, "ssm_", Role::mixer_state},
    {"", Match::ends, "time_mix_key", Role::mixer_in},
    {"", Match::ends, "time_mix_value", Role::mixer_in},
    {"", Match::ends, "time_mix_receptance", Role::mixer_in},
    {"", Match::ends, "time_mix_gate", Role::mixer_in},
    {"", Match::ends, "time_mix_output", Role::mixer_out},
    {"", Match::starts, "time_mix_", Role::mixer_state},
    {"", Match::ends, "channel_mix_key", Role::ffn_gate_up},
    {"", Match::ends, "channel_mix_receptance", Role::ffn_gate_up},
    {"", Match::ends, "channel_mix_value", Role::ffn_down},

    // What stands around experts.
    {"", Match::ends, "e_score_correction_bias", Role::router},
    {"", Match::ends, "exp_probs_b", Role::router},
    {"", Match::ends, "expert_bias", Role::router},
    {"", Match::ends, "router_bias", Role::router},
    {"", Match::ends, "shared_expert_gate", Role::router},
    {"", Match::starts, "ffn_gate_inp", Role::router},
    {"", Match::ends, "ffn_gate_tid2eid", Role::router},
    {"", Match::inside, "router", Role::router},
    {"", Match::ends, "gate", Role::router},
    {"", Match::ends, "gate.wg", Role::router},
    {"", Match::ends, "gate.tid2eid", Role::router},
    {"", Match::ends, "fc1_latent_proj", Role::moe_latent},
    {"", Match::ends, "fc2_latent_proj", Role::moe_latent},
    {"", Match::starts, "ffn_latent_", Role::moe_latent},
    {"", Match::starts, "ffn_routed_", Role::moe_latent},

    // Shared experts, in all their spellings, before the routed ones.
    {"shared_experts", Match::ends, "down_proj", Role::shared_down},
    {"shared_experts", Match::ends, "w2", Role::shared_down},
    {"shared_experts", Match::has, "", Role::shared_gate_up},
    {"shared_expert", Match::ends, "down_proj", Role::shared_down},
    {"shared_expert", Match::ends, "w2", Role::shared_down},
    {"shared_expert", Match::has, "", Role::shared_gate_up},
    {"share_expert", Match::ends, "down_proj", Role::shared_down},
    {"share_expert", Match::has, "", Role::shared_gate_up},
    {"shared_mlp", Match::ends, "down_proj", Role::shared_down},
    {"shared_mlp", Match::ends, "output_linear", Role::shared_down},
    {"shared_mlp", Match::has, "", Role::shared_gate_up},
    {"", Match::ends, "ffn_gate_shexp", Role::shared_gate_up},
    {"", Match::ends, "ffn_up_shexp", Role::shared_gate_up},
    {"", Match::ends, "ffn_gate_up_shexp", Role::shared_gate_up},
    {"", Match::ends, "ffn_down_shexp", Role::shared_down},

    // Routed experts.
    {"experts", Match::ends, "down_proj", Role::expert_down},
    {"experts", Match::ends, "w2", Role::expert_down},
    {"experts", Match::ends, "down_proj_blocks", Role::expert_down},
    {"experts", Match::ends, "down_proj_scales", Role::expert_down},
    {"experts", Match::ends, "down_proj_bias", Role::expert_down},
    {"experts", Match::starts, "down_proj", Role::expert_down},
    {"experts", Match::starts, "gate_up_proj", Role::expert_gate_up},
    {"experts", Match::ends, "gate_proj", Role::expert_gate_up},
    {"experts", Match::ends, "up_proj", Role::expert_gate_up},
    {"experts", Match::ends, "w1", Role::expert_gate_up},
    {"experts", Match::ends, "w3", Role::expert_gate_up},
    {"experts", Match::ends, "v1", Role::expert_gate_up},
    {"experts", Match::starts, "w13", Role::expert_gate_up},
    {"switch_mlp", Match::ends, "down_proj", Role::expert_down},  // MLX
    {"switch_mlp", Match::has, "", Role::expert_gate_up},
    {"moe", Match::ends, "gate_proj", Role::expert_gate_up},
    {"moe", Match::ends, "up_proj", Role::expert_gate_up},
    {"moe", Match::ends, "down_proj", Role::expert_down},
    {"block_sparse_moe", Match::ends, "input_linear", Role::expert_gate_up},
    {"block_sparse_moe", Match::ends, "output_linear", Role::expert_down},
    {"", Match::ends, "ffn_gate_exps", Role::expert_gate_up},
    {"", Match::ends, "ffn_up_exps", Role::expert_gate_up},
    {"", Match::ends, "ffn_gate_up_exps", Role::expert_gate_up},
    {"", Match::ends, "ffn_down_exps", Role::expert_down},
    {"", Match::ends, "ffn_gate_chexps", Role::expert_gate_up},
    {"", Match::ends, "ffn_up_chexps", Role::expert_gate_up},
    {"", Match::ends, "ffn_down_chexps", Role::expert_down},

    // Latent attention.
    {"", Match::ends, "q_a_proj", Role::latent_q_down},
    {"", Match::ends, "q_b_proj", Role::latent_q_up},
    {"", Match::ends, "kv_a_proj_with_mqa", Role::latent_kv_down},
    {"", Match::ends, "fused_qkv_a_proj_with_mqa", Role::latent_kv_down},
    {"", Match::ends, "kv_b_proj", Role::latent_kv_up},
    {"", Match::ends, "embed_q", Role::latent_kv_up},  // MLX: the two halves of kv_b_proj
    {"", Match::ends, "unembed_out", Role::latent_kv_up},
    {"", Match::ends, "wq_a", Role::latent_q_down},
    {"", Match::ends, "wq_b", Role::latent_q_up},
    {"", Match::ends, "wkv_a", Role::latent_kv_down},
    {"", Match::ends, "wkv_b", Role::latent_kv_up},
    {"", Match::ends, "wkv", Role::latent_kv_down},
    {"", Match::ends, "kv_proj", Role::latent_kv_down},
    {"", Match::ends, "wo_a", Role::attention_out},
    {"", Match::ends, "wo_b", Role::attention_out},
    {"", Match::ends, "attn_q_a", Role::latent_q_down},
    {"", Match::ends, "attn_q_b", Role::latent_q_up},
    {"", Match::ends, "attn_kv_a_mqa", Role::latent_kv_down},
    {"", Match::ends, "attn_kv", Role::latent_kv_down},
    {"", Match::ends, "attn_kv_b", Role::latent_kv_up},
    {"", Match::ends, "attn_k_b", Role::latent_kv_up},
    {"", Match::ends, "attn_v_b", Role::latent_kv_up},
    {"", Match::ends, "attn_output_a", Role::attention_out},
    {"", Match::ends, "attn_output_b", Role::attention_out},

    // Attention.
    {"", Match::ends, "q_proj", Role::attention_qkv},
    {"", Match::ends, "k_proj", Role::attention_qkv},
    {"", Match::ends, "v_proj", Role::attention_qkv},
    {"", Match::ends, "qkv_proj", Role::attention_qkv},
    {"", Match::ends, "query_key_value", Role::attention_qkv},
    {"", Match::ends, "c_attn", Role::attention_qkv},
    {"", Match::ends, "Wqkv", Role::attention_qkv},
    {"", Match::ends, "wqkv", Role::attention_qkv},
    {"", Match::ends, "wq", Role::attention_qkv},
    {"", Match::ends, "wk", Role::attention_qkv},
    {"", Match::ends, "wv", Role::attention_qkv},
    {"", Match::ends, "attn_q", Role::attention_qkv},
    {"", Match::ends, "attn_k", Role::attention_qkv},
    {"", Match::ends, "attn_v", Role::attention_qkv},
    {"", Match::ends, "attn_qkv", Role::attention_qkv},
    {"", Match::ends, "attn_gate", Role::attention_qkv},
    {"self_attn", Match::ends, "gate_proj", Role::attention_qkv},
    {"self_attn", Match::ends, "g_proj", Role::attention_qkv},
    {"", Match::ends, "o_proj", Role::attention_out},
    {"", Match::ends, "wo", Role::attention_out},
    {"", Match::ends, "attn_output", Role::attention_out},
    {"", Match::ends, "attn_o", Role::attention_out},
    {"attn", Match::ends, "c_proj", Role::attention_out},
    {"attn", Match::ends, "out_proj", Role::attention_out},
    {"self_attn", Match::ends, "out_proj", Role::attention_out},
    {"self_attn", Match::ends, "dense", Role::attention_out},
    {"self_attention", Match::ends, "dense", Role::attention_out},
    {"attention", Match::ends, "dense", Role::attention_out},

    // Dense feed-forward.
    {"", Match::ends, "gate_proj", Role::ffn_gate_up},
    {"", Match::ends, "up_proj", Role::ffn_gate_up},
    {"", Match::ends, "gate_up_proj", Role::ffn_gate_up},
    {"", Match::ends, "down_proj", Role::ffn_down},
    {"", Match::ends, "w1", Role::ffn_gate_up},
    {"", Match::ends, "w3", Role::ffn_gate_up},
    {"", Match::ends, "w2", Role::ffn_down},
    {"", Match::ends, "c_fc", Role::ffn_gate_up},
    {"mlp", Match::ends, "c_proj", Role::ffn_down},
    {"", Match::ends, "fc1", Role::ffn_gate_up},
    {"", Match::ends, "fc2", Role::ffn_down},
    {"", Match::ends, "fc_in", Role::ffn_gate_up},
    {"", Match::ends, "fc_out", Role::ffn_down},
    {"", Match::ends, "dense_h_to_4h", Role::ffn_gate_up},
    {"", Match::ends, "dense_4h_to_h", Role::ffn_down},
    {"", Match::ends, "ffn_gate", Role::ffn_gate_up},
    {"", Match::ends, "ffn_up", Role::ffn_gate_up},
    {"", Match::ends, "ffn_down", Role::ffn_down},
});

bool is_number(std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_suffix(std::string_view name) {
    // bitsandbytes hangs its tables under the weight: "q_proj.weight.absmax".
    if (auto at = name.rfind(bitsandbytes_state); at != std::string_view::npos) {
        name = name.substr(0, at);
    }
    for (int round = 0; round < 2; ++round) {
        for (std::string_view suffix : suffixes) {
            if (name.size() > suffix.size() && name.ends_with(suffix)) {
                name.remove_suffix(suffix.size());
                break;
            }
        }
    }
    return name;
}

// The words of a name without its numbers, joined by dots again and led by one, so that ".x" finds a whole word.
struct Words {
    std::string joined;  // ".model.layers.mlp.experts.up_proj"
    std::optional<int> layer;

    std::string_view last() const {
        std::string_view all = joined;
        return all.substr(all.rfind('.') + 1);
    }
    bool has(std::string_view word) const {
        for (std::size_t at = joined.find(word); at != std::string::npos; at = joined.find(word, at + 1)) {
            std::size_t end = at + word.size();
            if (joined[at - 1] == '.' && (end == joined.size() || joined[end] == '.')) {
                return true;
            }
        }
        return false;
    }
    bool ends(std::string_view tail) const {
        return joined.size() > tail.size() && joined.ends_with(tail) && joined[joined.size() - tail.size() - 1] == '.';
    }
};

Words words_of(std::string_view name) {
    Words words;
    std::string_view previous;
    for (std::size_t begin = 0; begin <= name.size();) {
        std::size_t end = std::min(name.find('.', begin), name.size());
        std::string_view word = name.substr(begin, end - begin);
        if (is_number(word)) {
            bool after_layers = std::find(layer_words.begin(), layer_words.end(), previous) != layer_words.end();
            if (after_layers && !words.layer && word.size() <= 6) {
                int number = 0;
                for (char c : word) {
                    number = number * 10 + (c - '0');
                }
                words.layer = number;
            } else if (previous == "ffn_gate" || previous == "ffn_up" || previous == "ffn_down") {
                words.joined += "_exps";  // GGUF files of 2023 hold one tensor for each expert: "blk.0.ffn_up.3.weight"
            }
        } else if (!word.empty()) {
            words.joined += '.';
            words.joined += word;
        }
        previous = word;
        begin = end + 1;
    }
    return words;
}

bool fits(const Rule& rule, const Words& words, std::string_view last) {
    bool tail = false;
    switch (rule.match) {
        case Match::inside:
            tail = words.has(rule.tail);
            break;
        case Match::ends:
            tail = words.ends(rule.tail);
            break;
        case Match::starts:
            tail = last.starts_with(rule.tail);
            break;
        case Match::has:
            tail = last.find(rule.tail) != std::string_view::npos;
            break;
        case Match::whole:
            tail = words.joined.size() == rule.tail.size() + 1 && words.ends(rule.tail);
            break;
    }
    return tail && (rule.within.empty() || words.has(rule.within));
}

std::optional<Role> match(const Words& words) {
    std::string_view last = words.last();
    auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return fits(rule, words, last); });
    return found == rules.end() ? std::nullopt : std::optional(found->role);
}

template <std::size_t N>
bool has_any(const Words& words, const std::array<std::string_view, N>& candidates) {
    return std::any_of(candidates.begin(), candidates.end(), [&](std::string_view word) { return words.has(word); });
}

}  // namespace

TensorPlace place_tensor(std::string_view name) {
    TensorPlace place;
    Words words = words_of(without_suffix(name));
    if (words.joined.empty()) {
        return place;
    }
    place.layer = words.layer;
    std::string_view first = std::string_view(words.joined).substr(1);
    first = first.substr(0, first.find('.'));
    place.vision = has_any(words, vision_words) || words.last().starts_with("vis_") ||
                   std::find(vision_first_words.begin(), vision_first_words.end(), first) != vision_first_words.end();
    if (place.vision) {
        return place;
    }
    place.mtp = has_any(words, mtp_words);

    std::optional<Role> role = match(words);
    if (!role) {
        for (std::string_view ending : word_endings) {
            if (words.last().size() > ending.size() && words.last().ends_with(ending)) {
                words.joined.resize(words.joined.size() - ending.size());
                role = match(words);
                break;
            }
        }
    }
    place.role = role.value_or(Role::other);
    return place;
}

std::vector<TensorPlace> place_tensors(std::span<const StoredTensor> tensors) {
    struct Company {
        bool mtp = false;
        bool state_space = false;
    };
    // MTP blocks that number their layers from 0 again ("mtp.layers.0.") must not mark the model's own layer 0.
    auto numbered_apart = [](std::string_view name) {
        return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
               name.find("mtp_layers.") != std::string_view::npos;
    };
    auto is_linear_input = [](std::string_view name) {
        constexpr auto nowhere = std::string_view::npos;
        return name.starts_with("blk.") && (name.find(".attn_qkv.") != nowhere || name.find(".attn_gate.") != nowhere);
    };

    std::vector<TensorPlace> places;
    places.reserve(tensors.size());
    std::map<int, Company> layers;
    for (const StoredTensor& tensor : tensors) {
        const TensorPlace& place = places.emplace_back(place_tensor(tensor.name));
        if (place.layer && !place.vision && !numbered_apart(tensor.name)) {
            Company& company = layers[*place.layer];
            company.mtp = company.mtp || place.mtp;
            company.state_space = company.state_space || tensor.name.find(".ssm_") != std::string::npos;
        }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        TensorPlace& place = places[i];
        if (!place.layer || place.vision || numbered_apart(tensors[i].name)) {
            continue;
        }
        const Company& company = layers[*place.layer];
        place.mtp = place.mtp || company.mtp;
        if (company.state_space && is_linear_input(tensors[i].name)) {
            place.role = Role::mixer_in;
        }
    }
    return places;
}

}  // namespace roofline::io
