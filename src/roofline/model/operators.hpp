// The lowered model: operators whose flops and bytes are forms over the features of a step, and the caches they keep.
// No device in sight: arithmetic one can check on paper.
#pragma once

#include <string>
#include <vector>

#include "roofline/core/collective.hpp"
#include "roofline/core/pattern.hpp"
#include "roofline/core/record.hpp"
#include "roofline/model/feature.hpp"
#include "roofline/model/reach.hpp"
#include "roofline/model/role.hpp"

namespace roofline::model {

/// Sizes of the kernel that does an operator, beside its flops and bytes: they decide how well it fills a machine. What
/// does not apply stays zero.
struct Extent {
    Pattern pattern = Pattern::stream;
    int rows = -1;         // element-wise work: a feature, how many rows it is done on
    double read = 0.0;     // the same, norms, gathers and writes to a cache: elements of a row that come in,
    double written = 0.0;  // and that go out
    std::string weights;   // their format, or the type of the computation: "bf16", "fp8_block", "q4_k"
    // Products: [rows x inner] x [inner x cols], `copies` of them; the rows follow from the flops.
    double inner = 0.0;
    double cols = 0.0;
    double copies = 1.0;
    int experts = -1;  // a feature: how many are touched
    double experts_total = 0.0;
    double experts_chosen = 0.0;
    // Attention and recurrences.
    int keys = -1;        // a feature: entries read
    double window = 0.0;  // 0: none
    double chosen = 0.0;  // entries that each query reads, chosen one by one beforehand; 0: all in reach
    double heads = 0.0;
    double kv_heads = 0.0;
    double key_dim = 0.0;
    double value_dim = 0.0;
    // Collectives.
    Collective collective = Collective::all_reduce;
    RankGroup ranks = {};
};

struct Operator {
    std::string name;        // layers.attention.qkv
    std::string_view style;  // which of its kind, where kernels differ: "layer_norm", "plain_activation"
    Kind kind = Kind::other;
    Group group = Group::other;
    double count = 1.0;  // layers that have it
    Engine engine = Engine::matrix;
    DType type = DType::bf16;

    // Of one instance. Weights and caches stream from memory; activations may stay on the chip.
    Form flops;
    Form weight_bytes;
    Form cache_bytes;
    Form activation_bytes;
    Form message_bytes;  // of a collective; what crosses the links of it is a matter of their wiring
    Form held_bytes;     // of a write to a cache: what the sequences of the step then hold of it

    Extent extent;

    Role role = Role::other;  // of its weights
    double parameters = 0.0;
    double active_parameters = 0.0;  // those one token passes through
    double stored_bytes = 0.0;       // of its weights, all experts included

    // The derivation, for people: {3} stands for feature 3.
    std::string formula;  // its number in docs/method.md
    std::string shape;
    std::string flops_text;
    std::string bytes_text;
};

/// What a layer keeps per sequence between steps.
struct Cache {
    std::string name;
    double layers = 1.0;
    double bytes_per_entry = 0.0;
    Reach reach;                      // how many entries are kept: all, a window, a chunk, one per `ratio` tokens
    double bytes_per_sequence = 0.0;  // recurrent state: does not grow
    bool of_draft = false;            // of a model that guesses for this one

    /// F30: bytes of one sequence at a context, over all its layers.
    double bytes(double context) const;
};

/// The operators of one device.
struct Lowered {
    std::vector<Operator> operators;
    std::vector<Cache> caches;
    std::vector<Feature> features;
    double widest_activation = 0.0;  // bytes per token of the largest pair of input and output, for the fit
    double logits_bytes = 0.0;       // per position with logits
    double hidden_bytes = 0.0;       // of one token's residual stream
    double vocabulary = 0.0;         // of the whole model, however the head is shared out
    double score_bytes = 0.0;        // unfused attention: per (token, position), all heads; 0: scores stay on the chip
    double host_weights = 0.0;       // share of the layers' weights that lies in the host's memory
    double host_kv = 0.0;            // share of the caches that does
    double draft_weights = 0.0;      // bytes of a model that guesses for this one, in the same memory
};

/// Weights and caches of a model that guesses for another, or of several alike, take their place in the other's memory;
/// its operators are no part of a step.
void seat_draft(Lowered& lowered, const Lowered& draft, double draft_weights, double alike = 1.0);

/// F32: parameters are counted from the operators that read them, so a wrong count cannot hide behind right bytes.
struct ParameterCount {
    double total = 0.0;
    double active = 0.0;        // all that one token passes through, the head included, the embedding table not
    double embedding = 0.0;     // tables that are gathered from
    double stored_bytes = 0.0;  // with those of a draft
};
ParameterCount count_parameters(const Lowered& lowered);

/// Publishers differ in what they call active: with the embedding table, without it, without it and the head.
enum class ActiveCounts { everything, without_embedding, without_embedding_and_head };
double active_parameters(const Lowered& lowered, ActiveCounts convention);

double cache_bytes(const Lowered& lowered, double context);        // of one sequence
double draft_cache_bytes(const Lowered& lowered, double context);  // what of that is of a draft
double kv_bytes_per_token(const Lowered& lowered);                 // at short context, all layers
double kv_bytes_per_token_beyond_windows(const Lowered& lowered);  // what each further token adds at long context
double state_bytes_per_sequence(const Lowered& lowered);

}  // namespace roofline::model
