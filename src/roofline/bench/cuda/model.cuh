// A Llama-like model on the device with random weights, and one step of it as kernels on a stream.
//
// A layer: norm, query-key-value product, (norm of heads), rotary, cache write, attention, output product; add and
// norm, gate-up product, silu and product, down product, or the same by experts (experts.cuh). Around the layers:
// embedding; add and norm of the last tokens, head product, largest logit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/cudnn.cuh"
#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/experts.cuh"
#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/timing.cuh"
#include "roofline/bench/cuda/ways.cuh"

namespace roofline::cuda::kernels {

struct ModelShape {
    int layers = 0;
    int hidden = 0;
    int query_heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int ffn_width = 0;       // of one expert where there are several
    int experts = 0;         // of a layer; 0: the FFN is dense
    int experts_chosen = 0;  // by a token
    int vocabulary = 0;
    bool head_norm = false;  // queries and keys are normed head by head
    bool bias = false;       // added to queries, keys and values
};

struct StepShape {
    bool prefill = false;
    int batch = 1;
    int tokens = 1;   // new ones of a sequence
    int context = 1;  // keys the last of them sees
    Format weights = Format::bf16;
    Format cache = Format::bf16;
};

/// A product's weights with their scales.
struct Matrix {
    Memory weights;
    Memory scales;
    int n = 0;
    int k = 0;
};

struct Layer {
    Matrix qkv;
    Matrix output;
    Matrix router;   // of a mixture, in bf16
    Matrix gate_up;  // of all experts, one after another
    Matrix down;
    Memory attention_norm;
    Memory ffn_norm;
    Memory head_norms;  // of queries, then of keys
    Memory bias;
    Memory keys;
    Memory values;
};

class Model {
  public:
    /// As many layers of their own as memory allows; the others take turns with the same.
    Model(const ModelShape& model, const StepShape& step, const Clock& clock);

    /// Chooses the fastest way for each product and for attention. "own": our kernels; "cublaslt": its products, our
    /// attention; "cudnn": its attention, the products of cuBLASLt.
    void choose(const std::string& backend);

    enum Part { attention_part = 1, ffn_part = 2, other_part = 4, all_parts = 7 };
    /// One step, or the parts of it that are named, on the clock's stream.
    void run(int parts, bool overlap) const;

    int distinct() const { return static_cast<int>(layers_.size()); }
    /// Weights, once a layer (of experts those that the last run chose), and keys and values read and written.
    /// Activations stay on the chip and do not count.
    double bytes() const;
    /// [row][chosen] experts of a layer, as the last run found them.
    std::vector<int> experts_chosen(int layer) const { return experts_->choices(layer); }
    const std::vector<std::string>& chosen() const { return chosen_; }
    std::vector<std::uint16_t> logits() const;  // bf16 [batch, vocabulary]
    std::vector<int> tokens_found() const;

    const ModelShape& shape() const { return model_; }
    const StepShape& step() const { return step_; }
    const Layer& layer(int index) const { return layers_[static_cast<std::size_t>(index) % layers_.size()]; }
    const Memory& embedding() const { return embedding_; }
    const Memory& final_norm() const { return final_norm_; }
    const Matrix& head_matrix() const { return head_; }
    std::vector<int> token_numbers() const;

  private:
    enum ProductKind { qkv, output, gate_up, down, head, products };

    Product product(ProductKind kind, int layer) const;
    void multiply(ProductKind kind, int layer, bool overlap) const;
    Attention attention(int layer) const;
    void choose_attention(const std::string& backend);
    void choose_experts(const std::string& backend);
    ExpertWeights expert_weights(int layer) const;
    /// residual += what the layer before left; normed = its norm.
    void add_and_norm(const Memory& weight, bool after_ffn, const Launch& launch) const;
    Layer make_layer(std::uint32_t seed) const;

    ModelShape model_;
    StepShape step_;
    const Clock* clock_;
    int rows_ = 0;
    std::vector<Layer> layers_;
    Matrix head_;
    Memory embedding_, final_norm_, numbers_, last_rows_, angles_;
    Memory residual_, normed_, branch_, heads_, attended_, gate_up_, activated_, last_residual_, last_branch_, logits_,
        found_, scratch_, parts_, tickets_;
    std::array<ProductWay, products> ways_;
    std::vector<ProductKind> kinds_;             // of products that the model has itself
    std::unique_ptr<Experts> experts_;           // where it is a mixture
    std::unique_ptr<LibraryAttention> library_;  // where attention is cuDNN's
    int plan_ = 0;
    std::optional<DecodeWay> decode_;
    std::vector<std::string> chosen_;
};

}  // namespace roofline::cuda::kernels
