// A model as a plain value: a stack of layers, each with a mixer (attention, state space ...) and an FFN, both of some
// kind. Mixed stacks (dense then MoE, sliding then full, attention beside Mamba) need no code of their own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/core/dtype.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::model {

class Block;
class Lowering;
struct Deployment;

/// Immutable, so that an Architecture can be copied like any value.
using BlockPtr = std::shared_ptr<const Block>;

/// A block of a layer: an attention or FFN kind. Each kind is one file that states its operators; parameters, cache
/// bytes and flops all follow from that one statement.
class Block {
  public:
    virtual ~Block() = default;
    virtual void lower(Lowering& lowering) const = 0;
    virtual std::string describe() const = 0;
    /// The same block as one device of a deployment holds it; what cannot be shared evenly is refused.
    virtual Result<BlockPtr> on_rank(const Deployment& deployment) const = 0;
    /// Whether there are experts that could be spread over devices.
    virtual bool has_experts() const { return false; }
};

struct LayerKind {
    std::string label;  // "full", "sliding", "dense", "moe": part of operator names where a stack is mixed
    BlockPtr mixer;     // may be absent: in Nemotron-H a layer is one block
    BlockPtr ffn;
    bool parallel = false;  // attention and FFN read the same normalised input (Falcon, Command R, Phi-2)
    bool norm_before_mixer = true;
    bool norm_after_mixer = false;
    bool norm_before_ffn = true;
    bool norm_after_ffn = false;
};

enum class NormKind { rms, layer_norm, layer_norm_without_bias, rms_bare, layer_norm_bare };  // bare: no gains

struct Architecture {
    std::string name;
    std::string family;  // model_type
    double hidden = 0.0;
    double vocabulary = 0.0;
    double positions = 0.0;        // rows of a learned position table; 0: none
    double embedding_width = 0.0;  // 0: the hidden width
    double longest_context = 0.0;  // 0: unknown
    bool tied = false;             // the head is the embedding table
    bool head_bias = false;
    bool final_norm = true;
    bool embedding_norm = false;
    NormKind norm = NormKind::rms;
    double streams = 1.0;  // hyper-connections keep several residual streams

    std::vector<LayerKind> kinds;
    std::vector<int> layers;  // kind of each layer

    // Multi-token prediction: modules beside the stack that guess further tokens, no part of a step (predictor_of).
    double predictors = 0.0;
    std::vector<int> predictor;  // kinds of the layers of one; empty: one layer, of the kind the stack ends with
    bool predicts = false;       // this is such a module: table and head are those of the model it guesses for,
    bool own_table = false;      // unless that model's table lies on other devices

    DType dtype = DType::bf16;  // what the checkpoint is stored in where it is not quantised
    std::vector<std::string> notes;

    bool rms() const { return norm == NormKind::rms || norm == NormKind::rms_bare; }
    double norm_parameters(double width) const {
        if (norm == NormKind::rms_bare || norm == NormKind::layer_norm_bare) return 0.0;
        return norm == NormKind::layer_norm ? 2.0 * width : width;
    }
};

}  // namespace roofline::model
