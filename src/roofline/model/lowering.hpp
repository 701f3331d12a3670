// From an architecture and its number types to operators. Kinds of attention and FFN call the few building blocks here;
// nothing else in the program knows how to count flops or bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/model/architecture.hpp"
#include "roofline/model/deployment.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/model/types.hpp"

namespace roofline::model {

enum class AttentionScores { on_chip, in_memory };  // flash, or unfused
enum class LatentMode { automatic, absorbed, expanded };

struct LoweringOptions {
    AttentionScores scores = AttentionScores::on_chip;
    LatentMode latent = LatentMode::automatic;  // MLA: absorbed in decode and expanded in prefill unless forced
    bool sampling = true;
    Deployment deployment = {};             // of which the operators of one device are wanted
    std::optional<LayerRange> layers = {};  // of one pipeline stage; empty: of all stages, one after another
};

/// y = x W: [rows x inner] x [inner x cols].
struct Product {
    std::string_view name;
    Group group = Group::other;
    Role role = Role::other;
    int rows = 0;  // a feature
    double inner = 0.0;
    double cols = 0.0;
    double bias = 0.0;        // parameters beside the matrix
    double copies = 1.0;      // block-diagonal: this many such products side by side
    bool reads_input = true;  // false: the input was read by the operator before it, in the same kernel
};

/// The same for routed experts: each token goes through `chosen` of `total`.
struct ExpertProduct {
    std::string_view name;
    Role role = Role::expert_gate_up;
    double inner = 0.0;
    double cols = 0.0;
    double bias = 0.0;
    double total = 0.0;
    double chosen = 0.0;
    double held = 0.0;              // of `total` on this device
    double slots = 0.0;             // rows that reach them, per token of this device: `chosen` on a single one
    bool input_per_expert = false;  // the down product reads one row per slot
};

/// Softmax(Q K^T) V with scores that never leave the chip.
struct Core {
    std::string_view name = "core";
    Who who = {};
    Reach reach = {};
    double heads = 0.0;
    double key_dim = 0.0;  // of one head
    double value_dim = 0.0;
    double entry_elements = 0.0;  // cached elements read per entry, all KV heads
    double entry_bytes = 0.0;
    double kv_heads = 0.0;  // 0: one entry for all heads
    bool latent = false;    // one compressed entry for all heads, or keys and values expanded from it
    std::string_view formula = "F15";
};

/// A recurrence over tokens: the state of each sequence is read and written once per step.
struct Scan {
    std::string_view name;
    std::string_view formula;
    Engine engine = Engine::vector;
    Who who = {};
    Form flops = {};
    std::string flops_text = {};
    double state_bytes = 0.0;
    double moved = 0.0;  // activations in and out, elements per token
    double heads = 0.0;  // states of key_dim x value_dim each
    double key_dim = 0.0;
    double value_dim = 0.0;
};

class Lowering {
  public:
    Lowering(const Architecture& architecture, const TypePlan& types, const LoweringOptions& options);

    Lowered run() &&;

    // What kinds may ask.
    double hidden() const { return architecture_.hidden; }
    const TypePlan& types() const { return types_; }
    const LoweringOptions& options() const { return options_; }
    const Deployment& deployment() const { return options_.deployment; }

    // Features; asking twice gives the same index.
    int tokens(const Who& who = {});
    int sequences(const Who& who = {});
    int pairs(const Reach& reach, const Who& who = {});
    int keys(const Reach& reach, const Who& who = {});
    int rectangle(const Reach& reach, const Who& who = {});
    int entries(const Reach& reach);
    int experts(double total, double chosen, double held);

    // Building blocks. Names are completed to layers.<part>.<name>.
    void enter(std::string_view part, Group group);
    Operator& product(const Product& product);
    Operator& expert_product(const ExpertProduct& product);
    Operator& norm(std::string_view name, double elements, double parameters, int rows = -1);  // -1: every token
    Operator& elementwise(std::string_view name, double flops, double read, double written, int rows,
                          Kind kind = Kind::elementwise);
    Operator& core(const Core& core);
    Operator& unfused_core(const Core& core);
    Operator& cache_write(std::string_view name, double elements, double bytes, int rows);
    Operator& scan(const Scan& scan);
    /// Small vectors and convolutions that stream with an operator: they count as parameters and as weight bytes.
    void attach(Operator& op, double parameters, Role role);
    /// Devices exchange or add up `bytes_per_row` of each row. Nothing for a group of one.
    void communicate(std::string_view name, Collective collective, const RankGroup& ranks, double bytes_per_row,
                     int rows);
    void keep(std::string_view name, double bytes_per_entry, const Reach& reach, double bytes_per_sequence = 0.0);

    /// Parameters of a norm of some width under the model's kind of norm.
    double norm_parameters(double width) const { return architecture_.norm_parameters(width); }
    double stream_bytes(double elements) const { return types_.stream_bytes(elements).value; }
    std::string number(double value) const;
    std::string slot(int feature) const;

  private:
    int feature(const Feature& wanted);
    Operator& add(std::string_view name, Kind kind, Group group);
    double weight_bytes(Role role, double inner, double cols) const;
    double bias_bytes(Role role, double count) const;
    DType compute(Role role) const;
    std::string weight_format(Role role) const;
    std::string attention_label(double head_dim) const;  // "bf16", "bf16/fp8": the computation and the cache
    DType activation(Role role) const;
    void note_width(double bytes_per_token);
    void lower_embedding();
    void lower_joining();
    void lower_layers();
    void lower_layer(const LayerKind& kind);
    void lower_head();
    void lower_hand_over();
    void add_up(std::string_view name);
    int normed_tokens();
    bool first_stage() const { return !options_.layers || options_.layers->first == 0; }
    bool last_stage() const { return !options_.layers || options_.layers->last == architecture_.layers.size(); }

    const Architecture& architecture_;
    const TypePlan& types_;
    const LoweringOptions& options_;
    Lowered lowered_;
    std::string prefix_;
    std::string part_;
    Group group_ = Group::other;
    std::vector<std::size_t> group_layers_;  // the layers being lowered together; empty outside the stack
};

/// F32 and all of the above. The plan must have one entry per layer; the architecture is the one that a device of
/// `options.deployment` sees (on_rank).
Lowered lower(const Architecture& architecture, const TypePlan& types, const LoweringOptions& options = {});

}  // namespace roofline::model
