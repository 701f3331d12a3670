// Multi-head attention with shared keys and values: MHA (kv_heads = heads), GQA, MQA (kv_heads = 1). Sliding windows,
// chunks and full context differ only in `reach`.
#pragma once

#include "roofline/model/architecture.hpp"
#include "roofline/model/reach.hpp"

namespace roofline::model {

/// Gains of the norms of q and k: for the places in a head (with biases too: Persimmon), for all of both, or none
/// (bare).
enum class QkNorm { none, per_head, per_head_with_bias, full_width, bare };

struct GqaShape {
    double heads = 0.0;
    double kv_heads = 0.0;
    double head_dim = 0.0;   // not always hidden / heads: Gemma, Qwen3, Mistral-Nemo
    double value_dim = 0.0;  // 0: head_dim
    Reach reach;
    bool qkv_bias = false;
    bool out_bias = false;
    QkNorm qk_norm = QkNorm::none;
    bool rotary = true;
    bool gate = false;          // an output gate as wide as the queries, from the same input (Qwen3.5)
    bool head_gate = false;     // one gate per head (Step)
    bool sinks = false;         // one learned logit per head (gpt-oss)
    bool out_norm = false;      // a norm between the core and the output product (BitNet)
    bool value_is_key = false;  // no value projection: values are the unrotated keys (Gemma 4's full layers)

    double values() const { return value_dim > 0.0 ? value_dim : head_dim; }
    // Columns of the input product.
    double query() const { return heads * head_dim; }
    double key() const { return kv_heads * head_dim; }
    double value() const { return value_is_key ? 0.0 : kv_heads * values(); }
};

class Gqa : public Block {
  public:
    explicit Gqa(const GqaShape& shape) : shape_(shape) {}
    void lower(Lowering& lowering) const override;
    std::string describe() const override;
    Result<BlockPtr> on_rank(const Deployment& deployment) const override;
    const GqaShape& shape() const { return shape_; }

  protected:
    Result<GqaShape> shape_on_rank(const Deployment& deployment) const;
    /// Projections, norms, rotary and the cache write: what every GQA-like kind does before its core.
    void lower_inputs(Lowering& lowering) const;
    void lower_core(Lowering& lowering, const Reach& reach) const;
    void lower_output(Lowering& lowering) const;
    double entry_elements() const { return shape_.kv_heads * (shape_.head_dim + shape_.values()); }

  private:
    GqaShape shape_;
};

}  // namespace roofline::model
