#include "roofline/analyze/structure.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "roofline/analyze/mixers.hpp"

namespace roofline::analyze {
namespace {

using Sort = Piece::Sort;

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

bool holds_any(const std::string& text, std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return text.find(part) != std::string::npos; });
}

/// Attention: one operator, or score product, softmax, value product.
std::vector<Region> attention_cores(std::span<const Piece> pieces) {
    std::vector<Region> cores;
    const auto is_product = [&](std::size_t i) {
        return pieces[i].sort == Sort::batched || (pieces[i].sort == Sort::product && pieces[i].columns == 0.0);
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!cores.empty() && i < cores.back().end) continue;
        if (pieces[i].sort == Sort::attention) {
            std::size_t end = i + 1;
            while (end < pieces.size() && (pieces[end].sort == Sort::attention || pieces[end].sort == Sort::tail))
                ++end;
            cores.push_back({i, end});
        } else if (pieces[i].sort == Sort::softmax) {
            const std::size_t floor = cores.empty() ? 0 : cores.back().end;
            std::size_t before = i;
            while (before > floor && !is_product(before)) --before;
            // Some runtimes project the values only when the scores are done: one product may stand in between.
            std::size_t after = i;
            std::size_t passed = 0;
            for (; after < pieces.size() && !is_product(after); ++after) {
                if (pieces[after].sort == Sort::product && ++passed > 1) break;
            }
            if (!is_product(before) || after == pieces.size() || !is_product(after)) continue;
            cores.push_back({before, after + 1});
        }
    }
    return cores;
}

/// How many products stand before a core that belong to it. Between two cores lie out + ffn + qkv, behind the last
/// out + ffn + head: the difference tells, unless layers differ (experts one by one), and then what precedes the first
/// core does.
std::size_t products_before_core(const std::vector<std::vector<std::size_t>>& between) {
    const std::size_t first = between.front().size();
    if (between.size() < 3) return first;
    const std::size_t each = between[1].size();
    for (std::size_t i = 1; i + 1 < between.size(); ++i) {
        if (between[i].size() != each) return first;
    }
    const std::size_t last = between.back().size();
    if (each + 1 > last && each + 1 - last <= first) return each + 1 - last;
    return first;
}

class Search {
  public:
    Search(std::span<const Piece> pieces, std::set<MixerProducts>& mixers) : pieces_(pieces), known_mixers_(mixers) {
        found_.roles.resize(pieces.size());
        found_.layer_of.assign(pieces.size(), -1.0);
    }

    Found run() {
        cores_ = attention_cores(pieces_);
        add_mixers();
        if (cores_.empty()) {
            alone();
            return std::move(found_);
        }
        list_products();
        found_.layers = static_cast<double>(cores_.size());
        before_first();
        for (std::size_t core = 0; core < cores_.size(); ++core) layer(core);
        inherit_tails();
        return std::move(found_);
    }

  private:
    void add_mixers() {
        residuals_ = residuals(pieces_);
        mixers_ = find_mixers(pieces_, residuals_, cores_, known_mixers_);
        cores_.insert(cores_.end(), mixers_.begin(), mixers_.end());
        std::sort(cores_.begin(), cores_.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
    }

    bool is_mixer(const Region& core) const {
        return std::any_of(mixers_.begin(), mixers_.end(),
                           [&](const Region& mixer) { return mixer.begin == core.begin; });
    }

    /// Products before a core that belong to it. In a stack of several kinds each layer has its own number: what stands
    /// behind the last sum with what went around.
    std::size_t projections_of(std::size_t core) const {
        const auto& all = between_[core];
        if (mixers_.empty()) return std::min(before_core_, all.size());
        std::size_t count = 0;
        for (std::size_t k = all.size(); k-- > 0; ++count) {
            const auto summed = std::lower_bound(residuals_.begin(), residuals_.end(), all[k]);
            if (summed != residuals_.end() && *summed < cores_[core].begin) break;
        }
        return count;
    }

    void set(std::size_t piece, std::string name) {
        if (!found_.roles[piece].name.empty()) return;
        found_.roles[piece].group = group_of(name);
        found_.roles[piece].name = std::move(name);
    }
    void set_range(std::size_t begin, std::size_t end, const std::string& name) {
        for (std::size_t i = begin; i < end; ++i) set(i, name);
    }

    /// No attention: what can be told is told by kind.
    void alone() {
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (pieces_[i].sort == Sort::collective) found_.roles[i].group = Group::communication;
            if (pieces_[i].sort == Sort::norm) found_.roles[i].group = Group::norm;
            if (pieces_[i].sort == Sort::embedding) found_.roles[i].group = Group::embedding;
        }
    }

    void list_products() {
        between_.resize(cores_.size() + 1);
        std::size_t core = 0;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            while (core < cores_.size() && i >= cores_[core].end) ++core;
            if (core < cores_.size() && i >= cores_[core].begin) continue;
            if (pieces_[i].sort == Sort::product || pieces_[i].sort == Sort::grouped) between_[core].push_back(i);
        }
        before_core_ = products_before_core(between_);
        if (!mixers_.empty()) before_core_ = projections_of(0);
        if (between_[0].size() > before_core_) {  // products that prepare something: positions, masks
            between_[0].erase(between_[0].begin(), between_[0].end() - static_cast<std::ptrdiff_t>(before_core_));
        }
    }

    void collectives(std::size_t begin, std::size_t end, const char* name) {
        for (std::size_t i = begin; i < end; ++i) {
            if (pieces_[i].sort == Sort::collective) set(i, name);
        }
    }

    /// Up to the first projection: embedding, positions, then the first norm.
    void before_first() {
        const std::size_t end = between_[0].empty() ? cores_[0].begin : between_[0].front();
        collectives(0, end, "embedding_all_reduce");
        std::size_t seen = 0;
        std::size_t norm = end;  // the norm is what stands last: from a copy or norm on that nothing else interrupts
        for (std::size_t i = 0; i < end; ++i) {
            if (pieces_[i].sort == Sort::embedding) set(i, seen++ == 0 ? "embedding" : "positions");
        }
        while (norm > 0 && found_.roles[norm - 1].name.empty() && pieces_[norm - 1].sort != Sort::batched &&
               pieces_[norm - 1].sort != Sort::concatenate && end - norm < 12)
            --norm;
        for (std::size_t i = 0; i < end; ++i) {
            if (pieces_[i].sort == Sort::norm) {
                norm = i;
                break;
            }
        }
        set_range(0, norm, "positions");
        set_range(norm, end, "layers.attention.norm");
    }

    /// From the projections of one core to those of the next.
    void layer(std::size_t core) {
        const bool last = core + 1 == cores_.size();
        std::vector<std::size_t> projections;
        if (core == 0) {
            projections = between_[0];
        } else {
            const auto& all = between_[core];
            const std::size_t count = projections_of(core);
            projections.assign(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
        }
        const std::size_t begin = projections.empty() ? cores_[core].begin : projections.front();
        for (const std::size_t i : projections) set(i, "layers.attention.qkv");
        for (std::size_t i = begin; i < cores_[core].begin; ++i) {
            const bool into_cache = pieces_[i].sort == Sort::concatenate && i + 8 > cores_[core].begin &&
                                    is_cache_write(i, cores_[core].begin);
            const bool expands = pieces_[i].sort == Sort::copy && pieces_[i].rank >= 5;
            set(i, into_cache ? "layers.attention.kv_write"
                   : expands  ? "layers.attention.expand"
                              : "layers.attention.rotary");
        }
        const char* own = is_mixer(cores_[core]) ? "layers.attention.mixer" : "layers.attention.core";
        for (std::size_t i = cores_[core].begin; i < cores_[core].end; ++i) {
            const bool projects = pieces_[i].sort == Sort::product && pieces_[i].columns > 0.0;
            set(i, projects ? "layers.attention.qkv" : own);
        }

        std::vector<std::size_t> rest = between_[core + 1];
        std::size_t head = pieces_.size();
        if (last) {
            head = find_head(rest);
        } else {
            rest.resize(rest.size() - projections_of(core + 1));
        }
        const std::size_t end = last ? head : next_projection(core + 1);
        const std::size_t out = rest.empty() ? cores_[core].end : rest.front();
        set_range(cores_[core].end, out, "layers.attention.copy");
        if (!rest.empty()) {
            set(out, "layers.attention.out");
            rest.erase(rest.begin());
            width_ = pieces_[out].columns;
        }
        feed_forward(std::min(out + 1, end), end, rest, last);
        for (std::size_t i = begin; i < end && i < pieces_.size(); ++i) found_.layer_of[i] = static_cast<double>(core);
        if (last) behind_head(head);
    }

    /// The two nearest concatenations before a core append keys and values; those further away turn positions.
    bool is_cache_write(std::size_t piece, std::size_t core) const {
        std::size_t seen = 0;
        for (std::size_t i = core; i-- > piece + 1;) {
            if (pieces_[i].sort == Sort::concatenate) ++seen;
        }
        // Turning positions halves a tensor and adds it again: an add follows.
        for (std::size_t i = piece + 1; i < std::min(core, piece + 3); ++i) {
            if (pieces_[i].sort == Sort::add) return false;
        }
        return seen < 2;
    }

    std::size_t next_projection(std::size_t core) const {
        const auto& all = between_[core];
        const std::size_t count = projections_of(core);
        return count == 0 ? cores_[core].begin : all[all.size() - count];
    }

    /// The last product, if none like it is part of a layer.
    std::size_t find_head(std::vector<std::size_t>& rest) const {
        if (rest.size() < 2) return pieces_.size();
        const Piece& candidate = pieces_[rest.back()];
        if (candidate.sort == Sort::grouped) return pieces_.size();
        if (candidate.columns > 0.0) {
            for (std::size_t core = 1; core <= cores_.size(); ++core) {
                for (const std::size_t i : between_[core]) {
                    const Piece& other = pieces_[i];
                    if (i != rest.back() && other.columns == candidate.columns && other.inner == candidate.inner)
                        return pieces_.size();
                }
            }
            for (const std::size_t i : between_[0]) {
                if (pieces_[i].columns == candidate.columns && pieces_[i].inner == candidate.inner)
                    return pieces_.size();
            }
        }
        const std::size_t head = rest.back();
        rest.pop_back();
        return head;
    }

    /// A router makes few numbers of many, and what follows it reads the same input. The first half of a pair of narrow
    /// matrices is narrow too, but the second reads what it made.
    bool is_router(const std::vector<std::size_t>& products) const {
        if (products.size() < 3) return false;
        const Piece& first = pieces_[products[0]];
        const Piece& second = pieces_[products[1]];
        return first.sort == Sort::product && first.columns > 0.0 && first.columns * 8.0 <= first.inner &&
               second.inner == first.inner;
    }

    void feed_forward(std::size_t begin, std::size_t end, std::vector<std::size_t> products, bool last) {
        end = std::min(end, pieces_.size());
        bool experts = is_router(products);
        for (std::size_t i = begin; i < end; ++i)
            experts = experts || pieces_[i].sort == Sort::choose || pieces_[i].sort == Sort::grouped;
        if (experts) {  // all of them as one batched product
            for (std::size_t i = begin; i < end; ++i) {
                if (pieces_[i].sort == Sort::batched && pieces_[i].columns > 0.0) products.push_back(i);
            }
            std::sort(products.begin(), products.end());
        }
        found_.experts = found_.experts || experts;
        const std::string block = experts ? "layers.ffn.experts." : "layers.ffn.";
        const std::size_t first = products.empty() ? end : products.front();
        const std::size_t added = residual(begin, first, "layers.attention.residual", "layers.attention.all_reduce");
        if (added < first) set_range(begin, added, "layers.attention.post_norm");
        set_range(begin, first, products.empty() ? (last ? "final_norm" : "layers.attention.norm") : "layers.ffn.norm");
        if (products.empty()) return;

        std::vector<std::size_t> down;
        std::vector<std::size_t> up;
        for (std::size_t k = 0; k < products.size(); ++k) {
            const Piece& piece = pieces_[products[k]];
            const bool router = experts && k == 0 && piece.sort == Sort::product && products.size() > 2;
            if (router) {
                set(products[k], "layers.ffn.router");
                continue;
            }
            const bool known = piece.columns > 0.0 && width_ > 0.0;
            const bool is_down = known ? piece.columns == width_ && (piece.inner != width_ || k + 1 == products.size())
                                       : k + 1 == products.size();
            (is_down ? down : up).push_back(products[k]);
        }
        const bool gated = experts || up.size() != 1 || down.empty() || pieces_[up[0]].columns == 0.0 ||
                           pieces_[up[0]].columns != pieces_[down[0]].inner;
        for (const std::size_t i : up) set(i, block + (gated ? "gate_up" : "up"));
        for (const std::size_t i : down) set(i, block + "down");
        if (experts) {
            const std::size_t first_expert = up.empty() ? first : up.front();
            set_range(first, first_expert, "layers.ffn.choose");
        }
        const std::size_t behind = down.empty() ? products.back() + 1 : down.back() + 1;
        set_range(first, std::min(behind, end), block + "activation");
        const std::size_t summed = residual(behind, end, "layers.ffn.residual", "layers.ffn.all_reduce");
        if (experts) {  // from the last product to the residual
            set_range(behind, summed, block + "combine");
        } else if (summed < end) {
            set_range(behind, summed, "layers.ffn.post_norm");
        }
        set_range(behind, end, last ? "final_norm" : "layers.attention.norm");
    }

    /// The first addition after a block, and the collective before it. Gives its place; `end` where there is none.
    std::size_t residual(std::size_t begin, std::size_t end, const char* name, const char* collective) {
        collectives(begin, end, collective);
        for (std::size_t i = begin; i < end; ++i) {
            if (pieces_[i].sort != Sort::add) continue;
            set(i, name);
            return i;
        }
        return end;
    }

    void behind_head(std::size_t head) {
        if (head >= pieces_.size()) return;
        set(head, "head");
        collectives(head + 1, pieces_.size(), "head_all_gather");
        set_range(head + 1, pieces_.size(), "sampling");
    }

    void inherit_tails() {
        for (std::size_t i = 1; i < pieces_.size(); ++i) {
            if (pieces_[i].sort == Sort::tail) found_.roles[i] = found_.roles[i - 1];
        }
    }

    std::span<const Piece> pieces_;
    std::set<MixerProducts>& known_mixers_;
    Found found_;
    std::vector<Region> cores_;  // of attention and of mixers
    std::vector<Region> mixers_;
    std::vector<std::size_t> residuals_;
    std::vector<std::vector<std::size_t>> between_;
    std::size_t before_core_ = 0;
    double width_ = 0.0;
};

}  // namespace

Group group_of(std::string_view role) {
    if (role.ends_with("all_reduce") || role.ends_with("all_gather")) return Group::communication;
    if (role.ends_with("norm")) return Group::norm;
    if (role.starts_with("layers.attention")) return Group::attention;
    if (role.starts_with("layers.ffn.experts") || role == "layers.ffn.router" || role == "layers.ffn.choose")
        return Group::moe;
    if (role.starts_with("layers.ffn")) return Group::ffn;
    if (role == "embedding" || role == "positions") return Group::embedding;
    if (role == "head" || role == "sampling" || role == "loss") return Group::head;
    return Group::other;
}

Found find_roles(std::span<const Piece> pieces, std::set<MixerProducts>& mixers) {
    const auto forward = static_cast<std::size_t>(
        std::find_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.sort == Sort::backward; }) -
        pieces.begin());
    Found found = Search(pieces.first(forward), mixers).run();
    found.trains = forward < pieces.size();
    found.forward = forward;
    if (found.trains) {
        for (Role& role : found.roles) {
            if (role.name == "sampling") role.name = "loss";
        }
    }
    found.roles.resize(pieces.size());
    found.layer_of.resize(pieces.size(), -1.0);
    return found;
}

namespace {

/// Kernels that torch.compile made carry the operators they fuse in their names, also those whose inputs they only
/// prepare: what they do shows in the last ones.
Piece::Sort sort_of_compiled(const std::string& name) {
    if (name.starts_with("triton_tem")) {
        if (holds_any(name, {"bmm"})) return Sort::batched;
        return holds_any(name, {"mm"}) ? Sort::product : Sort::attention;
    }
    if (holds_any(name, {"backward"})) return Sort::backward;
    if (holds_any(name, {"embedding"}) && name.ends_with("_0")) return Sort::embedding;
    if (holds_any(name, {"softmax"}) && !holds_any(name, {"log_softmax"})) return Sort::softmax;
    return holds_any(name, {"rsqrt", "native_layer_norm"}) ? Sort::norm : Sort::other;
}

/// Convolutions over a few tokens, scans, delta rules: by the names that libraries give them.
bool mixes_tokens(const std::string& name) {
    return holds_any(name,
                     {"conv_depthwise", "causal_conv1d", "selective_scan", "chunk_scan", "chunk_state", "state_passing",
                      "ssd_", "delta_rule", "wkv", "rg_lru", "mamba_mixer", "short_conv", "selective_state_update"});
}

}  // namespace

Piece::Sort sort_of_kernel(std::string_view kernel) {
    const std::string name = lower(kernel);
    if (name.starts_with("triton_")) return sort_of_compiled(name);
    if (holds_any(name, {"simt_sgemm"})) return Sort::batched;  // positions are turned in fp32, weights never are
    if (holds_any(name, {"nccl", "all_reduce", "allreduce", "reduce_scatter", "all_gather", "allgather",
                         "cross_device_reduce"}))
        return Sort::collective;
    if (holds_any(name, {"reshape_and_cache", "concat_and_cache"})) return Sort::concatenate;
    if (holds_any(name, {"rotary"})) return Sort::other;
    if (mixes_tokens(name)) return Sort::mixer;
    if (holds_any(name, {"topk", "radixsort", "bitonic", "gathertopk"})) return Sort::choose;
    if (holds_any(name, {"splitkreduce", "lean_reduction", "flash_fwd_splitkv_combine", "merge_attn"}))
        return Sort::tail;
    if (holds_any(name, {"fmha", "flash", "sdpa", "attention", "mha_fwd", "paged_attn", "batchprefill", "batchdecode"}))
        return Sort::attention;
    if (holds_any(name, {"softmax"})) return Sort::softmax;
    if (holds_any(name, {"grouped_gemm", "groupproblemshape", "fused_moe", "moe_gemm"})) return Sort::grouped;
    if (holds_any(name, {"gemm", "nvjet", "gemv", "marlin", "machete", "cutlass", "_mm_", "xmma", "cijk_", "matmul",
                         "wgmma"}))
        return Sort::product;
    if (holds_any(name, {"rms_norm", "rmsnorm", "layer_norm", "layernorm"})) return Sort::norm;
    if (holds_any(name, {"gather_kernel", "indexselect", "embedding"})) return Sort::embedding;
    if (holds_any(name, {"catarray"})) return Sort::concatenate;
    if (holds_any(name, {"functor_add<", "functoronself_add", "_add_"})) return Sort::add;
    if (holds_any(name, {"copy", "memcpy", "memset"})) return Sort::copy;
    return Sort::other;
}

Piece::Sort sort_of_operator(std::string_view full_name) {
    const std::string name = lower(full_name);
    if (holds_any(name, {"backward"})) return Sort::backward;
    static constexpr std::array<std::string_view, 12> products = {
        "onnx::matmul", "onnx::gemm",   "onnx::fusedmatmul",       "aten::mm",
        "aten::addmm",  "aten::linear", "aten::_scaled_mm",        "aten::_int_mm",
        "aten::mv",     "aten::addmv",  "aten::_addmm_activation", "aten::matmul"};
    if (std::find(products.begin(), products.end(), name) != products.end()) return Sort::product;
    if (name.starts_with("triton_")) return sort_of_compiled(name);
    if (holds_any(name, {"grouped_mm", "group_mm", "fused_moe", "moe_forward", "fused_experts", "moe_mm", "moe_wna16"}))
        return Sort::grouped;
    if (holds_any(name, {"reshape_and_cache", "concat_and_cache", "kv_cache_update"})) return Sort::concatenate;
    if (name == "aten::bmm" || name == "aten::baddbmm") return Sort::batched;
    if (mixes_tokens(name) || holds_any(name, {"convolution"})) return Sort::mixer;
    if (holds_any(name, {"attention", "flash_attn", "varlen_fwd", "fmha", "::fwd"})) return Sort::attention;
    if (holds_any(name, {"topk"})) return Sort::choose;
    if (holds_any(name, {"softmax"})) return Sort::softmax;
    if (holds_any(name, {"scaled_mm", "gemm", "fp4_mm", "machete_mm", "pack_mm"})) return Sort::product;
    if (holds_any(name, {"rms_norm", "layer_norm", "rmsnorm", "layernormalization"})) return Sort::norm;
    if (name == "aten::embedding" || name == "aten::index_select" || name == "aten::gather") return Sort::embedding;
    if (name == "aten::cat") return Sort::concatenate;
    if (name == "aten::add" || name == "aten::add_") return Sort::add;
    if (name == "aten::copy_" || name == "aten::clone" || name == "aten::contiguous") return Sort::copy;
    if (holds_any(name, {"c10d::", "nccl", "record_param_comms", "all_reduce", "allreduce"})) return Sort::collective;
    return Sort::other;
}

}  // namespace roofline::analyze
