#include "roofline/analyze/structure.hpp"

#include <algorithm>
#include <cstdint>

#include "roofline/analyze/mixers.hpp"

namespace roofline::analyze {
namespace {

using Sort = Piece::Sort;

/// Attention: one operator, or score product, softmax, value product.
std::vector<Region> attention_cores(std::span<const Piece> pieces) {
    std::vector<Region> cores;
    const auto is_product = [&](std::size_t i) {
        return pieces[i].sort == Sort::batched || (pieces[i].sort == Sort::product && pieces[i].columns == 0.0);
    };
    // Where attention is one kernel and nothing has shapes, a softmax between two products is a router's.
    const bool fused =
        std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.sort == Sort::attention; });
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
            const auto is_value_product = [&](std::size_t k) { return is_product(k) || pieces[k].outer; };
            for (; after < pieces.size() && !is_value_product(after); ++after) {
                if (pieces[after].sort == Sort::product && ++passed > 1) break;
            }
            if (!is_product(before) || after == pieces.size() || !is_value_product(after)) continue;
            if (fused && pieces[before].sort == Sort::product && pieces[after].sort == Sort::product) continue;
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
    }

    Found run() {
        cores_ = attention_cores(pieces_);
        add_mixers();
        if (cores_.empty()) {
            alone();
            return std::move(found_);
        }
        list_products();
        before_first();
        for (std::size_t core = 0; core < cores_.size(); ++core) layer(core);
        found_.layers = static_cast<double>(cores_.size() - name_cross_attention());
        name_unpacking();
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
        blocks_.push_back({begin, std::min(end, pieces_.size()), !rest.empty()});
        feed_forward(std::min(out + 1, end), end, rest, last);
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

    /// Attention to what was written, then attention to an encoder, then a feed-forward block, over and over: one
    /// layer. Gives how many of the second kind there are.
    std::size_t name_cross_attention() {
        const auto goes_on = [&](std::size_t core) {
            return core + 1 < cores_.size() && !blocks_[core].feeds && !is_mixer(cores_[core]) &&
                   !is_mixer(cores_[core + 1]);
        };
        std::size_t first = 0;
        while (first < cores_.size() && !goes_on(first)) ++first;
        const std::size_t left = cores_.size() - first;
        if (left == 0 || left % 2 != 0) return 0;
        for (std::size_t core = first; core < cores_.size(); ++core) {
            if (goes_on(core) != ((core - first) % 2 == 0)) return 0;
        }
        if (!blocks_.back().feeds) return 0;
        for (std::size_t core = first + 1; core < cores_.size(); core += 2) {
            give_back_output(core);
            for (std::size_t i = blocks_[core].begin; i < blocks_[core].end; ++i) {
                std::string& name = found_.roles[i].name;
                constexpr std::string_view own = "layers.attention.";
                if (name.starts_with(own) && !name.ends_with("norm")) name = "layers.cross." + name.substr(own.size());
            }
        }
        return left / 2;
    }

    /// Keys and values of an encoder are projected once: then fewer products stand before this core than before the
    /// others, and the first of them is the output of the core before it.
    void give_back_output(std::size_t core) {
        const std::vector<std::size_t>& products = between_[core];
        if (products.size() < 2 || products.front() != blocks_[core].begin) return;
        const auto rename = [&](std::size_t i, const char* name) { found_.roles[i] = {name, group_of(name)}; };
        rename(products[0], "layers.attention.out");
        for (std::size_t i = products[0] + 1; i < products[1]; ++i)
            rename(i, pieces_[i].sort == Sort::add ? "layers.attention.residual" : "layers.cross.norm");
        blocks_[core].begin = products[1];
    }

    /// Weights that are made whole before a product belong to it.
    void name_unpacking() {
        const std::vector<std::size_t> product_of = unpacked_for(pieces_);
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            if (product_of[i] == pieces_.size() || found_.roles[product_of[i]].name.empty()) continue;
            found_.roles[i] = found_.roles[product_of[i]];
            found_.roles[i].name += ".unpack";
        }
    }

    void inherit_tails() {
        for (std::size_t i = 1; i < pieces_.size(); ++i) {
            if (pieces_[i].sort == Sort::tail) found_.roles[i] = found_.roles[i - 1];
        }
    }

    std::span<const Piece> pieces_;
    std::set<MixerProducts>& known_mixers_;
    Found found_;
    struct Block {
        std::size_t begin;  // its first projection
        std::size_t end;
        bool feeds;  // a feed-forward block follows before the next core
    };
    std::vector<Region> cores_;  // of attention and of mixers
    std::vector<Block> blocks_;  // one per core
    std::vector<Region> mixers_;
    std::vector<std::size_t> residuals_;
    std::vector<std::vector<std::size_t>> between_;
    std::size_t before_core_ = 0;
    double width_ = 0.0;
};

}  // namespace

namespace {

/// Pictures or sound are read by layers of a width of their own before those of the words. Where the first product of
/// the words stands: none before it reads as many columns as their layers make. Zero: there is but one stack.
std::size_t end_of_encoder(std::span<const Piece> pieces) {
    const std::vector<Region> cores = attention_cores(pieces);
    std::vector<double> widths;  // of what comes out of each: of the product behind it
    for (std::size_t core = 0; core < cores.size(); ++core) {
        const std::size_t end = core + 1 < cores.size() ? cores[core + 1].begin : pieces.size();
        std::size_t i = cores[core].end;
        while (i < end && pieces[i].sort != Sort::product) ++i;
        widths.push_back(i < end ? pieces[i].columns : 0.0);
    }
    std::size_t first = widths.size();
    while (first > 0 && widths[first - 1] == widths.back()) --first;
    const bool other = first > 0 && widths.back() > 0.0 && widths.front() > 0.0 &&
                       std::all_of(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(first),
                                   [&](double width) { return width == widths.front(); });
    if (!other) return 0;
    bool reads = false;
    for (std::size_t i = cores[first].begin; i-- > cores[first - 1].end;) {
        if (pieces[i].sort != Sort::product) continue;
        if (pieces[i].inner != widths.back()) return reads ? i + 1 : 0;
        reads = true;
    }
    return 0;
}

std::string in_encoder(const std::string& role) {
    constexpr std::string_view layers = "layers.";
    if (role.starts_with(layers)) return "encoder." + role.substr(layers.size());
    if (role == "final_norm") return "encoder.norm";
    return role == "head" || role == "sampling" ? "encoder.projector" : role;
}

}  // namespace

Group group_of(std::string_view role) {
    constexpr std::string_view encoder = "encoder.";
    if (role.starts_with(encoder)) return group_of("layers." + std::string(role.substr(encoder.size())));
    if (role.ends_with("all_reduce") || role.ends_with("all_gather")) return Group::communication;
    if (role.ends_with("norm")) return Group::norm;
    if (role.starts_with("layers.attention") || role.starts_with("layers.cross")) return Group::attention;
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
    const std::size_t cut = end_of_encoder(pieces.first(forward));
    Found found = Search(pieces.subspan(cut, forward - cut), mixers).run();
    if (cut > 0) {
        std::vector<Role> roles = Search(pieces.first(cut), mixers).run().roles;
        for (Role& role : roles) role.name = in_encoder(role.name);
        found.roles.insert(found.roles.begin(), roles.begin(), roles.end());
    }
    found.trains = forward < pieces.size();
    found.forward = forward;
    if (found.trains) {
        for (Role& role : found.roles) {
            if (role.name == "sampling") role.name = "loss";
        }
    }
    found.roles.resize(pieces.size());
    return found;
}

}  // namespace roofline::analyze
