#include "roofline/io/module_patterns.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace roofline::io {
namespace {

using model::Role;

struct Home {
    Role role;
    std::string_view module;
};

// Every name under which a role's weights are known, in any family.
constexpr auto homes = std::to_array<Home>({
    {Role::attention_qkv, "self_attn.q_proj"},
    {Role::attention_qkv, "self_attn.k_proj"},
    {Role::attention_qkv, "self_attn.v_proj"},
    {Role::attention_qkv, "self_attn.qkv_proj"},
    {Role::attention_qkv, "mixer.q_proj"},
    {Role::attention_qkv, "attn.c_attn"},
    {Role::attention_out, "self_attn.o_proj"},
    {Role::attention_out, "mixer.o_proj"},
    {Role::attention_out, "attn.wo_a"},
    {Role::attention_out, "attn.wo_b"},
    {Role::latent_q_down, "self_attn.q_a_proj"},
    {Role::latent_q_down, "attn.wq_a"},
    {Role::latent_q_up, "self_attn.q_b_proj"},
    {Role::latent_q_up, "attn.wq_b"},
    {Role::latent_kv_down, "self_attn.kv_a_proj_with_mqa"},
    {Role::latent_kv_down, "attn.wkv"},
    {Role::latent_kv_up, "self_attn.kv_b_proj"},
    {Role::indexer, "self_attn.indexer.wq_b"},
    {Role::indexer, "attn.indexer.wq_b"},
    {Role::indexer, "self_attn.index_q_proj"},
    {Role::ffn_gate_up, "mlp.gate_proj"},
    {Role::ffn_gate_up, "mlp.up_proj"},
    {Role::ffn_gate_up, "mlp.gate_up_proj"},
    {Role::ffn_gate_up, "mixer.up_proj"},
    {Role::ffn_down, "mlp.down_proj"},
    {Role::ffn_down, "mixer.down_proj"},
    {Role::moe_latent, "mixer.fc1_latent_proj"},
    {Role::moe_latent, "mixer.fc2_latent_proj"},
    {Role::mixer_in, "mixer.in_proj"},
    {Role::mixer_in, "linear_attn.in_proj_qkv"},
    {Role::mixer_in, "linear_attn.in_proj_qkvz"},
    {Role::mixer_in, "linear_attn.in_proj_z"},
    {Role::mixer_in, "mamba.in_proj"},
    {Role::mixer_out, "mixer.out_proj"},
    {Role::mixer_out, "linear_attn.out_proj"},
    {Role::mixer_out, "mamba.out_proj"},
});

// Experts live in containers whose names other families use for something else, so these go by family. The first whose
// prefix fits counts; the last stands for everybody else.
struct ExpertHome {
    std::string_view family;
    std::string_view gate_up;
    std::string_view down;
    std::string_view shared_gate_up;
    std::string_view shared_down;
};
constexpr auto expert_homes = std::to_array<ExpertHome>({
    {"gemma4", "experts.0.gate_proj", "experts.0.down_proj", "", ""},
    {"nemotron_h", "mixer.experts.0.up_proj", "mixer.experts.0.down_proj", "mixer.shared_experts.up_proj",
     "mixer.shared_experts.down_proj"},
    {"deepseek_v4", "ffn.experts.0.w1", "ffn.experts.0.w2", "ffn.shared_experts.w1", "ffn.shared_experts.w2"},
    {"deepseek_ref", "ffn.experts.0.w1", "ffn.experts.0.w2", "ffn.shared_experts.w1", "ffn.shared_experts.w2"},
    {"mixtral", "block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w2", "", ""},
    {"minimax", "block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w2",
     "block_sparse_moe.shared_experts.gate_proj", "block_sparse_moe.shared_experts.down_proj"},
    {"step3", "moe.experts.0.gate_proj", "moe.experts.0.down_proj", "share_expert.gate_proj", "share_expert.down_proj"},
    {"qwen", "mlp.experts.0.gate_proj", "mlp.experts.0.down_proj", "mlp.shared_expert.gate_proj",
     "mlp.shared_expert.down_proj"},
    {"", "mlp.experts.0.gate_proj", "mlp.experts.0.down_proj", "mlp.shared_experts.gate_proj",
     "mlp.shared_experts.down_proj"},
});

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

/// "a(b|c)d" as "abd" and "acd". Expressions with more alternatives than anyone writes are left as they are.
std::vector<std::string> alternatives(const std::string& expression) {
    constexpr std::size_t most = 64;
    std::vector<std::string> open = {expression};
    std::vector<std::string> result;
    while (!open.empty() && open.size() + result.size() <= most) {
        const std::string text = open.back();
        open.pop_back();
        const std::size_t close = text.find(')');
        const std::size_t start = close == std::string::npos ? close : text.rfind('(', close);
        if (start == std::string::npos) {
            result.push_back(text);
            continue;
        }
        std::string_view inside = std::string_view(text).substr(start + 1, close - start - 1);
        if (inside.starts_with("?:")) inside.remove_prefix(2);
        while (true) {
            const std::size_t bar = inside.find('|');
            open.push_back(text.substr(0, start) + std::string(inside.substr(0, bar)) + text.substr(close + 1));
            if (bar == std::string_view::npos) break;
            inside = inside.substr(bar + 1);
        }
    }
    return open.empty() ? result : std::vector<std::string>{expression};
}

bool of_another_part(std::string_view pattern) {
    const std::string_view before = pattern.substr(0, pattern.find("layers."));
    return std::ranges::any_of(std::to_array<std::string_view>({"mtp", "vision", "visual", "audio"}),
                               [&](std::string_view part) { return before.find(part) != std::string_view::npos; });
}

}  // namespace

bool module_matches(std::string_view pattern, std::string_view module) {
    if (pattern.starts_with("re:")) {
        const auto all = alternatives(std::string(pattern.substr(3)));
        return std::ranges::any_of(
            all, [&](const std::string& one) { return glob("*" + glob_from_expression(one), module); });
    }
    if (pattern.find('*') != std::string_view::npos) {
        const std::string inside = std::string(pattern) + ".*";  // a module stands for everything in it
        if (glob(pattern, module) || glob(inside, module)) return true;
        return !pattern.starts_with('*') && (glob("*." + std::string(pattern), module) || glob("*." + inside, module));
    }
    // A plain name speaks of the module itself and of everything inside it, wherever it stands.
    const std::string within = "." + std::string(module) + ".";
    return within.find("." + std::string(pattern) + ".") != std::string::npos;
}

std::vector<std::string_view> modules_of(Role role, std::string_view family) {
    std::vector<std::string_view> modules;
    const auto home = std::ranges::find_if(
        expert_homes, [&](const ExpertHome& candidate) { return family.starts_with(candidate.family); });
    const auto add = [&](std::string_view module) {
        if (!module.empty()) modules.push_back(module);
    };
    switch (role) {
        case Role::expert_gate_up:
            add(home->gate_up);
            break;
        case Role::expert_down:
            add(home->down);
            break;
        case Role::shared_gate_up:
            add(home->shared_gate_up);
            break;
        case Role::shared_down:
            add(home->shared_down);
            break;
        default:
            for (const Home& known : homes) {
                if (known.role == role) modules.push_back(known.module);
            }
    }
    return modules;
}

std::vector<std::string_view> mlx_modules_of(Role role, std::string_view family) {
    switch (role) {
        case Role::expert_gate_up:
            return {"mlp.switch_mlp.gate_proj", "block_sparse_moe.switch_mlp.gate_proj", "mlp.experts.gate_proj"};
        case Role::expert_down:
            return {"mlp.switch_mlp.down_proj", "block_sparse_moe.switch_mlp.down_proj", "mlp.experts.down_proj"};
        case Role::router:
            return {"mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"};
        case Role::latent_kv_up:
            return {"self_attn.kv_b_proj", "self_attn.embed_q", "self_attn.unembed_out"};
        default:
            return modules_of(role, family);
    }
}

void ModulePatterns::add(std::string pattern, std::size_t meaning) {
    if (of_another_part(pattern)) return;
    const std::size_t at = pattern.find("layers.");
    if (at != std::string::npos && !pattern.starts_with("re:")) {
        const std::size_t digits = at + 7;
        std::size_t end = digits;
        while (end < pattern.size() && pattern[end] >= '0' && pattern[end] <= '9') ++end;
        // "layers.1*" means layers 1 and 10 to 19; only a name that goes on with a dot is of one layer alone.
        if (end > digits && end - digits < 6 && (end == pattern.size() || pattern[end] == '.')) {
            const auto layer = static_cast<std::size_t>(std::strtoul(pattern.c_str() + digits, nullptr, 10));
            by_layer_[layer].push_back({pattern.substr(at), meaning});
            return;
        }
        pattern = pattern.substr(at);
    }
    everywhere_.push_back({std::move(pattern), meaning});
}

std::size_t ModulePatterns::find(std::size_t layer, std::string_view module) const {
    const std::string name = fmt::format("layers.{}.{}", layer, module);
    const auto first = [&](const std::vector<Entry>& entries) {
        const auto found =
            std::ranges::find_if(entries, [&](const Entry& entry) { return module_matches(entry.pattern, name); });
        return found == entries.end() ? npos : found->meaning;
    };
    if (const auto own = by_layer_.find(layer); own != by_layer_.end()) {
        if (const std::size_t meaning = first(own->second); meaning != npos) return meaning;
    }
    return first(everywhere_);
}

std::size_t ModulePatterns::find_outside(Role role) const {
    const auto named = [&](std::string_view pattern) {
        const auto ends = [&](std::string_view name) {
            if (!pattern.ends_with(name)) return false;
            return pattern.size() == name.size() || pattern[pattern.size() - name.size() - 1] == '.';
        };
        switch (role) {
            case Role::head:
                return pattern.ends_with("lm_head") || pattern == "head";
            case Role::embedding:
                return ends("embed_tokens") || ends("wte") || ends("word_embeddings") || ends("tok_embeddings") ||
                       ends("embed_in") || ends("embeddings");
            case Role::position:
                return ends("wpe") || ends("embed_positions");
            default:
                return false;
        }
    };
    const auto found = std::ranges::find_if(everywhere_, [&](const Entry& entry) { return named(entry.pattern); });
    return found == everywhere_.end() ? npos : found->meaning;
}

}  // namespace roofline::io
