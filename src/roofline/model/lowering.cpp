// The model around its layers: embedding, layers of each kind, hand-overs between stages, head.
#include "roofline/model/lowering.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace roofline::model {
namespace {

// T2: flops of element-wise work per element. Conventions, not measurements: they matter only where nothing else does.
constexpr double residual_flops = 1.0;
constexpr double sampling_flops = 2.0;

/// Stored once, with the model; read all the same.
void shared_with_model(Operator& op) {
    op.parameters = op.active_parameters = op.stored_bytes = 0.0;
}

/// Layers of one kind that also compute in the same types can be lowered together.
std::vector<std::vector<std::size_t>> alike(const std::vector<std::size_t>& layers, const TypePlan& types) {
    std::map<std::array<std::pair<DType, DType>, role_count>, std::size_t> seen;
    std::vector<std::vector<std::size_t>> groups;
    for (const std::size_t layer : layers) {
        std::array<std::pair<DType, DType>, role_count> signature{};
        for (std::size_t role = 0; role < role_count; ++role) {
            const WeightType& type = types.of(layer, static_cast<Role>(role));
            signature[role] = {type.compute(), type.activation};
        }
        const auto [place, fresh] = seen.try_emplace(signature, groups.size());
        if (fresh) groups.emplace_back();
        groups[place->second].push_back(layer);
    }
    return groups;
}

}  // namespace

Lowering::Lowering(const Architecture& architecture, const TypePlan& types, const LoweringOptions& options)
    : architecture_(architecture), types_(types), options_(options) {
    assert(types.layers.size() == architecture.layers.size());
}

Lowered Lowering::run() && {
    lowered_.hidden_bytes = stream_bytes(architecture_.hidden);
    lowered_.vocabulary = architecture_.vocabulary * deployment().tensor;
    if (first_stage()) lower_embedding();
    lower_layers();
    lower_hand_over();
    if (last_stage()) lower_head();
    lowered_.host_weights = deployment().host_weights;
    lowered_.host_kv = deployment().host_kv;
    return std::move(lowered_);
}

void Lowering::lower_embedding() {
    const double width = architecture_.embedding_width > 0.0 ? architecture_.embedding_width : architecture_.hidden;
    const int rows = tokens();
    const auto gather = [&](std::string_view name, Role role, double table_rows, double columns) {
        Operator& op = add(name, Kind::gather, Group::embedding);
        op.role = role;
        // Each device looks up the tokens whose rows it holds.
        const double share = role == Role::embedding ? 1.0 / deployment().tensor : 1.0;
        const int gathered = feature({.what = Feature::What::rows,
                                      .who = {},
                                      .reach = {},
                                      .total = table_rows,
                                      .in_prefill = share / deployment().context,
                                      .in_decode = share});
        op.parameters = op.active_parameters = table_rows * columns;
        op.stored_bytes = weight_bytes(role, columns, table_rows);
        op.weight_bytes = Form(op.stored_bytes / table_rows, gathered);  // F14: one row per token, not the table
        if (architecture_.predicts && !architecture_.own_table) shared_with_model(op);
        op.activation_bytes = Form(stream_bytes(columns), rows);
        op.extent.read = op.extent.written = columns;
        op.formula = "F14";
        op.shape = slot(rows) + " rows of [" + number(table_rows) + " x " + number(columns) + "]";
        op.flops_text = "0";
    };
    gather("embedding", Role::embedding, architecture_.vocabulary, width);
    communicate("embedding_all_reduce", Collective::all_reduce, deployment().tensor_group(), stream_bytes(width), rows);
    if (architecture_.positions > 0.0)
        gather("positions", Role::position, architecture_.positions, architecture_.hidden);
    if (width != architecture_.hidden) {
        product({.name = "embedding_projection",
                 .group = Group::embedding,
                 .role = Role::other,
                 .rows = rows,
                 .inner = width,
                 .cols = architecture_.hidden});
    }
    if (architecture_.embedding_norm)
        norm("embedding_norm", architecture_.hidden, norm_parameters(architecture_.hidden));
    if (architecture_.predicts) lower_joining();
}

/// F49: the embedding of a token and the hidden state before it, each normalised, become one input. Engines do not cut
/// this product.
void Lowering::lower_joining() {
    const double hidden = architecture_.hidden;
    norm("prediction.embedding_norm", hidden, norm_parameters(hidden));
    norm("prediction.hidden_norm", hidden, norm_parameters(hidden));
    product({.name = "prediction.join",
             .group = Group::other,
             .role = Role::other,
             .rows = tokens(),
             .inner = 2.0 * hidden,
             .cols = hidden});
}

void Lowering::lower_layers() {
    std::vector<std::vector<std::size_t>> of_kind(architecture_.kinds.size());
    const LayerRange all{0, architecture_.layers.size()};
    const LayerRange range = options_.layers.value_or(all);
    for (std::size_t layer = range.first; layer < range.last; ++layer) {
        of_kind[static_cast<std::size_t>(architecture_.layers[layer])].push_back(layer);
    }
    // Of the whole stack, so that a stage's operators are called as the model's.
    const bool mixed = std::any_of(architecture_.layers.begin(), architecture_.layers.end(),
                                   [&](int kind) { return kind != architecture_.layers.front(); });
    for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
        const auto groups = alike(of_kind[kind], types_);
        for (const auto& layers : groups) {
            std::string label = mixed ? architecture_.kinds[kind].label : "";
            // Same layers, other number types: told apart by the first layer they start at.
            if (groups.size() > 1) label += "@" + std::to_string(layers.front());
            prefix_ = label.empty() ? "layers" : "layers[" + label + "]";
            group_layers_ = layers;
            lower_layer(architecture_.kinds[kind]);
        }
    }
    group_layers_.clear();
    prefix_.clear();
    part_.clear();
}

void Lowering::lower_layer(const LayerKind& kind) {
    const double hidden = architecture_.hidden;
    const double streams = architecture_.streams;
    const auto normalise = [&](bool wanted, std::string_view name) {
        if (wanted) norm(name, hidden, norm_parameters(hidden), normed_tokens());
    };
    // Hyper-connections: several residual streams are mixed down to one input and back; the mixing weights are a small
    // product of all streams (F33).
    const auto connect = [&] {
        if (streams <= 1.0) return;
        const double mixes = (2.0 + streams) * streams;
        Operator& op = product({.name = "hyper_connection",
                                .group = Group::other,
                                .role = Role::other,
                                .rows = tokens(),
                                .inner = streams * hidden,
                                .cols = mixes,
                                .bias = mixes + 3.0});
        op.formula = "F33";
    };
    const auto add_residual = [&](double inputs) {
        elementwise("residual", residual_flops * hidden * inputs * streams, hidden * (streams + inputs),
                    hidden * streams, normed_tokens());
    };

    if (kind.mixer) {
        enter("attention", Group::attention);
        connect();
        normalise(kind.norm_before_mixer, "norm");
        kind.mixer->lower(*this);
        enter("attention", Group::attention);
        // Where attention and FFN read the same input their outputs are added up together.
        if (!kind.parallel || !kind.ffn) add_up("all_reduce");
        normalise(kind.norm_after_mixer, "post_norm");
        if (!kind.parallel) add_residual(1.0);
    }
    if (kind.ffn) {
        enter("ffn", Group::ffn);
        connect();
        normalise(kind.norm_before_ffn, "norm");
        kind.ffn->lower(*this);
        enter("ffn", Group::ffn);
        add_up("all_reduce");
        normalise(kind.norm_after_ffn, "post_norm");
        add_residual(kind.parallel ? 2.0 : 1.0);
    }
}

/// Every tensor rank has a part of each output: a sum over them, or, where norms are split by tokens, a sum of which
/// each keeps its tokens and hands them to the others after the norm.
void Lowering::add_up(std::string_view name) {
    const RankGroup ranks = deployment().tensor_group();
    const double bytes = stream_bytes(architecture_.hidden);
    if (!deployment().sequence_parallel) {
        communicate(name, Collective::all_reduce, ranks, bytes, tokens());
        return;
    }
    communicate("reduce_scatter", Collective::reduce_scatter, ranks, bytes, tokens());
    communicate("all_gather", Collective::all_gather, ranks, bytes, tokens());
}

/// From one pipeline stage to the next.
void Lowering::lower_hand_over() {
    const double bytes = stream_bytes(architecture_.hidden * architecture_.streams);
    const double hops = options_.layers ? (last_stage() ? 0.0 : 1.0) : deployment().pipeline - 1.0;
    const double all_hops = deployment().pipeline - 1.0;
    const double leaving = all_hops > 0.0 ? hops * deployment().hops_between_nodes() / all_hops : 0.0;
    part_ = "pipeline";
    const auto send = [&](const char* name, double nodes, double count) {
        if (count <= 0.0) return;
        communicate(name, Collective::send_receive, {2.0, nodes}, bytes, tokens());
        lowered_.operators.back().count = count;
    };
    send("send", 1.0, hops - leaving);
    send("send_between_nodes", 2.0, leaving);
    part_.clear();
}

void Lowering::lower_head() {
    const double hidden = architecture_.hidden;
    const int positions = feature({.what = Feature::What::logits, .who = {}, .reach = {}});
    if (architecture_.streams > 1.0) {
        Operator& op = product({.name = "hyper_head",
                                .group = Group::other,
                                .role = Role::other,
                                .rows = tokens(),
                                .inner = architecture_.streams * hidden,
                                .cols = architecture_.streams,
                                .bias = architecture_.streams + 1.0});
        op.formula = "F33";
    }
    if (architecture_.final_norm) norm("final_norm", hidden, norm_parameters(hidden));

    const double width = architecture_.embedding_width > 0.0 ? architecture_.embedding_width : hidden;
    if (width != hidden) {
        product({.name = "head_projection",
                 .group = Group::head,
                 .role = Role::other,
                 .rows = positions,
                 .inner = hidden,
                 .cols = width});
    }
    const double bias = architecture_.head_bias ? architecture_.vocabulary : 0.0;
    Operator& head = product({.name = "head",
                              .group = Group::head,
                              .role = Role::head,
                              .rows = positions,
                              .inner = width,
                              .cols = architecture_.vocabulary,
                              .bias = bias});
    if (architecture_.tied) {
        // The table is stored once, as the embedding; the head still reads all of it. A last stage that is not the
        // first has a copy.
        const double table = types_.outside_layers(Role::embedding).bytes(width, architecture_.vocabulary).value;
        head.weight_bytes = Form(table + stream_bytes(bias));
        head.parameters = bias;
        head.stored_bytes = stream_bytes(bias) + (first_stage() ? 0.0 : table);
    }
    if (architecture_.predicts) shared_with_model(head);
    lowered_.logits_bytes = stream_bytes(architecture_.vocabulary);
    communicate("head_all_gather", Collective::all_gather, deployment().tensor_group(),
                stream_bytes(architecture_.vocabulary * deployment().tensor), positions);
    if (options_.sampling) {
        group_ = Group::head;
        const double vocabulary = architecture_.vocabulary * deployment().tensor;
        elementwise("sampling", sampling_flops * vocabulary, vocabulary, 1.0, positions, Kind::select);
    }
}

Lowered lower(const Architecture& architecture, const TypePlan& types, const LoweringOptions& options) {
    return Lowering(architecture, types, options).run();
}

}  // namespace roofline::model
