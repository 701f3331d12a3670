// Where in a model a piece of work belongs, found from order and repetition alone: attention cores mark the layers, the
// products before the first are its projections, the product after a core is the output projection, what is left before
// the next layer's projections is the feed-forward block. Names are those that `predict` gives. Attention with no
// feed-forward block behind it but more attention is one layer with what follows: that looks at an encoder
// ("layers.cross"). Layers of another width before those of the words are an encoder's ("encoder.attention.core").
#pragma once

#include <compare>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/record.hpp"

namespace roofline::analyze {

/// What the search sees of a piece of work.
struct Piece {
    enum class Sort {
        product,  // with a weight
        grouped,  // of several experts at once
        batched,  // of two activations
        attention,
        softmax,          // of scores: rank four, or unknown
        softmax_of_rows,  // of a router or of logits
        choose,           // top-k, sort
        embedding,
        norm,
        add,
        concatenate,
        mixer,  // a convolution or a scan over tokens
        collective,
        backward,  // of training: what follows it is no pass through the model any more
        tail,      // the second kernel of what came before it
        copy,
        other
    };
    Sort sort = Sort::other;
    double columns = 0.0;  // of products; zero: unknown
    double inner = 0.0;
    double rank = 0.0;     // dimensions of the largest tensor; zero: unknown
    double numbers = 0.0;  // in its first tensor; zero: unknown
    double last = 0.0;     // of them in its innermost dimension
    bool outer = false;    // a product of columns with rows: positions, or values of a single key
    bool packed = false;   // reads numbers of 8 bits in two dimensions or more, as packed weights are
    bool sums = false;     // a kernel of a compiler that adds and normalises at once
};

struct Role {
    std::string name;  // "layers.attention.qkv"; empty: not found
    Group group = Group::other;
};

struct Found {
    std::vector<Role> roles;  // one per piece
    double layers = 0.0;      // of the last stack: one of another width before it is an encoder
    bool experts = false;
    bool trains = false;      // a backward pass follows; it has no roles
    std::size_t forward = 0;  // pieces before it
};

/// Columns and inner size of the first and of the last product of a layer that mixes tokens without attention.
struct MixerProducts {
    double in_columns = 0.0;
    double in_inner = 0.0;
    double out_columns = 0.0;
    double out_inner = 0.0;
    auto operator<=>(const MixerProducts&) const = default;
};

/// Of one step. `mixers`: those of the steps before it, to which its own are added.
Found find_roles(std::span<const Piece> pieces, std::set<MixerProducts>& mixers);

/// By the name of a kernel, where nothing else is known.
Piece::Sort sort_of_kernel(std::string_view kernel);
/// By the name of an operator, where shapes are missing.
Piece::Sort sort_of_operator(std::string_view name);

Group group_of(std::string_view role);

}  // namespace roofline::analyze
