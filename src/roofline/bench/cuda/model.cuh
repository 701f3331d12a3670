// A model on the device with random weights, and one step of it as kernels on a stream.
//
// A layer: attention over grouped heads or latent entries, or a state (states.cuh), and an FFN, dense or of experts
// (experts.cuh), one after the other or side by side, each with norms before and behind it as the model has them.
// Around the layers: embedding; add and norm of the last tokens, head product, largest logit. What a block leaves is
// added to the stream by the norm that reads it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/bench/cuda/attention.cuh"
#include "roofline/bench/cuda/cudnn.cuh"
#include "roofline/bench/cuda/elementwise.cuh"
#include "roofline/bench/cuda/experts.cuh"
#include "roofline/bench/cuda/layer_weights.cuh"
#include "roofline/bench/cuda/memory.cuh"
#include "roofline/bench/cuda/states.cuh"
#include "roofline/bench/cuda/timing.cuh"
#include "roofline/bench/cuda/ways.cuh"

namespace roofline::cuda::kernels {

class Model {
  public:
    /// As many layers of their own as memory allows; the others take turns with the same. Throws where a model has what
    /// no kernel here does.
    Model(const StackShape& stack, const StepShape& step, const Clock& clock);

    /// Chooses the fastest way for each product and for attention. "own": our kernels; "cublaslt": its products, our
    /// attention; "cudnn": its attention, the products of cuBLASLt.
    /// `preferred`: of products, ways whose names contain it go before others, whatever time they take.
    void choose(const std::string& backend, const std::string& preferred = "");

    enum Part { attention_part = 1, ffn_part = 2, other_part = 4, all_parts = 7 };
    /// One step, or the parts of it that are named, on the clock's stream.
    void run(int parts, bool overlap) const;

    /// States as they were at first: a run changes them.
    void renew_states();

    int distinct() const;
    /// Weights, once a layer (of experts those that the last run chose), and keys and values read and written.
    /// Activations stay on the chip and do not count.
    double bytes() const;
    const std::vector<std::string>& chosen() const { return chosen_; }

    // For who checks it. Layers are counted kind by kind.
    const StackShape& stack() const { return stack_; }
    const StepShape& step() const { return step_; }
    const LayerWeights& layer(std::size_t kind, int index) const {
        const auto& own = kinds_[kind].layers;
        return own[static_cast<std::size_t>(index) % own.size()];
    }
    const Memory& embedding() const { return embedding_; }
    const Memory& positions() const { return positions_; }
    const Norm& embedding_norm() const { return embedding_norm_; }
    const Norm& final_norm() const { return final_norm_; }
    const Matrix& head_matrix() const { return head_; }
    /// Products of a layer (of experts, of all of them); whether activations are made narrow before one.
    enum Which { qkv, q_up, kv_up, out, up, down, shared_up, shared_down, products };
    bool narrows(std::size_t kind, Which which) const;
    bool narrows_somewhere() const;
    bool head_narrows() const { return head_place_->way.room != nullptr; }
    std::vector<int> token_numbers() const;
    /// [row][chosen] experts of a layer, as the last run found them.
    std::vector<int> experts_chosen(std::size_t kind, int index) const { return kinds_[kind].experts->choices(index); }
    std::vector<std::uint16_t> logits() const;  // bf16 [batch, vocabulary]
    std::vector<int> tokens_found() const;

  private:
    /// A product of one shape, at one place of all the layers that have it: its matrices, and the way that was chosen.
    struct Place {
        std::string name;
        Part part;
        Product shape;  // with the activations that it is tried with
        Format format;
        bool narrow;  // its activations may be made so
        std::vector<const Matrix*> matrices;
        ProductWay way;
        std::vector<ProductWay> contenders;  // the fastest few alone, in that order
    };
    struct Kind {
        LayerShape shape;
        std::deque<LayerWeights> layers;  // distinct ones; they do not move
        std::array<const Place*, products> places = {};
        std::unique_ptr<Experts> experts;           // where it is a mixture
        std::unique_ptr<LibraryAttention> library;  // where attention is cuDNN's
        int plan = 0;
        std::optional<DecodeWay> decode;
    };
    /// Rows that are multiplied, and whether they lie in the product's room already (ProductWay::room).
    struct Fed {
        const void* rows = nullptr;
        bool narrow = false;
    };
    /// What is still to be added to the stream, by whoever reads it next: rows, or results of experts.
    struct Pending {
        Addend rows;
        RowSums sums;
        explicit operator bool() const { return rows.rows != nullptr || sums.rows != nullptr; }
    };

    void refuse_what_has_no_kernel() const;
    void make_outside();
    void make_layers();
    void make_rooms();
    void place_products(Kind& kind);
    /// The place of that name and shape, made where there is none.
    Place* placed(const std::string& name, Part part, const Matrix& like, const Memory& x, const Memory& y, int rows);
    static std::vector<ProductWay> ways_of(const Place& place, const std::string& backend);
    void choose_alone(Place& place, const std::string& backend, const std::string& preferred) const;
    void choose_experts(Kind& kind, const std::string& backend, const std::string& preferred) const;
    void begin_attention(Kind& kind, const std::string& backend) const;
    void choose_among_neighbours(const std::string& backend);
    /// Whether keys and values are read as the step made them, in bf16: prompts that begin with an empty cache need not
    /// read a narrow one.
    bool attends_to_fresh() const;
    /// Of the keys and values that attention reads.
    Format attended_format() const;
    static ExpertWeights expert_weights(const LayerWeights& own);
    Attention attention(const Kind& kind, const LayerWeights& own) const;

    void multiply(const Kind& kind, Which which, const Matrix& matrix, const Fed& x, const Memory& y,
                  const Launch& launch) const;
    /// Where the first product of a layer's attention or FFN has its activations narrow; null: it takes them in bf16.
    static const NarrowRoom* room_of_attention(const Kind& kind);
    static const NarrowRoom* room_of_ffn(const Kind& kind);
    /// The stream with what is pending added to it, normed where there is a norm: in `normed`, else where it is. What
    /// is normed is in `room` too, where there is one.
    Fed settle(Pending& pending, const Norm& norm, const Memory& normed, const NarrowRoom* room,
               const Launch& launch) const;
    void norm_rows(const Memory& to, const void* x, const Norm& norm, int rows, const Launch& launch,
                   const NarrowTo& narrow = {}) const;
    void attend(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const;
    void attend_to_heads(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const;
    void attend_to_entries(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const;
    StateRows state_rows(const Kind& kind, const LayerWeights& own) const;
    void mix_by_states(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const;
    void run_attention(const Kind& kind, const LayerWeights& own, const Launch& launch) const;
    void feed_forward(const Kind& kind, const LayerWeights& own, int index, const Fed& x, const Launch& launch) const;
    void feed(const Kind& kind, const Matrix& up_matrix, const Matrix& down_matrix, bool shared, const Fed& x,
              const Memory& y, const Launch& launch) const;
    RowSums expert_sums(const Kind& kind) const;
    /// Whether the bias of a block's last product is added by whoever adds the block to the stream.
    static bool adds_bias_later(const Kind& kind, const Norm& after);
    void add_bias_of(const Matrix& matrix, const Memory& rows, const Launch& launch) const;
    Pending left_by_attention(const Kind& kind, const LayerWeights& own) const;
    Pending left_by_ffn(const Kind& kind, const LayerWeights& own) const;
    void run_layer(const Kind& kind, int index, int parts, Pending& pending, const Launch& launch) const;

    StackShape stack_;
    StepShape step_;
    const Clock* clock_;
    int rows_ = 0;
    int hidden_ = 0;
    std::vector<Kind> kinds_;
    std::deque<Place> places_;
    const Place* head_place_ = nullptr;
    Matrix head_;
    Memory embedding_, positions_, numbers_, position_numbers_, last_rows_;
    Norm embedding_norm_, final_norm_;
    std::map<int, Memory> angles_;  // by the numbers of a head that are turned
    // Activations. What is in one is used up before another layer's is put there.
    Memory stream_, normed_, normed_beside_, attended_, fed_, shared_, gates_;
    Memory heads_, convolved_, chunks_;
    Memory low_, queries_, wide_queries_, mixed_, latent_results_, expanded_, keys_, values_;
    Memory wide_, activated_, last_, logits_, found_, scratch_, parts_, tickets_;
    std::vector<std::string> chosen_;
};

}  // namespace roofline::cuda::kernels
