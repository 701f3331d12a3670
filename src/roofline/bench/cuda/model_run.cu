// A step of a model as kernels on a stream.
#include <cmath>

#include "roofline/bench/cuda/head_rows.cuh"
#include "roofline/bench/cuda/model.cuh"
#include "roofline/bench/cuda/product_heads.cuh"
#include "roofline/bench/cuda/states.cuh"

namespace roofline::cuda::kernels {

void Model::multiply(const Kind& kind, Which which, const Matrix& matrix, const Fed& x, const Memory& y,
                     const Launch& launch) const {
    const Place& place = *kind.places[which];
    Product product = place.shape;
    matrix.weights.put_into(product);
    product.x = x.rows;
    product.y = y.at();
    if (x.narrow) place.way.room->put_into(product);
    place.way.run(product, launch.overlap, launch.stream);
}

const NarrowRoom* Model::room_of_attention(const Kind& kind) {
    const Place* place = kind.places[qkv];
    return place != nullptr ? place->way.room.get() : nullptr;
}

const NarrowRoom* Model::room_of_ffn(const Kind& kind) {
    if (kind.experts != nullptr) return kind.experts->room();
    return kind.places[up]->way.room.get();
}

void Model::norm_rows(const Memory& to, const void* x, const Norm& norm, int rows, const Launch& launch,
                      const NarrowTo& narrow) const {
    if (stack_.layer_norms) {
        layer_norm(to.at(), x, norm.gains.at(), norm.bias.at(), rows, hidden_, launch, narrow);
    } else {
        kernels::norm(to.at(), x, norm.gains.at(), rows, hidden_, launch, narrow);
    }
}

Model::Fed Model::settle(Pending& pending, const Norm& norm, const Memory& normed, const NarrowRoom* room,
                         const Launch& launch) const {
    const NormWeights weights{norm.gains.at(), norm.bias.at()};
    const NarrowTo narrow = room != nullptr && norm ? room->to() : NarrowTo{};
    const auto add = [&](const auto& what) {
        if (norm) {
            add_norm(normed.at(), stream_.at(), what, weights, rows_, hidden_, launch, narrow);
        } else {
            add_rows(stream_.at(), what, rows_, hidden_, launch);
        }
    };
    if (pending.sums.rows != nullptr) {
        add(pending.sums);
    } else if (pending) {
        add(pending.rows);
    } else if (norm) {
        norm_rows(normed, stream_.at(), norm, rows_, launch, narrow);
    }
    pending = {};
    return {norm ? normed.at() : stream_.at(), static_cast<bool>(narrow)};
}

RowSums Model::expert_sums(const Kind& kind) const {
    RowSums sums = kind.experts->results();
    if (kind.shape.ffn.shared_up) sums.beside = shared_.at();
    if (kind.shape.ffn.shared_gate) sums.gates = gates_.at<float>();
    return sums;
}

bool Model::adds_bias_later(const Kind& kind, const Norm& after) {
    return !after && !kind.shape.parallel;
}

void Model::add_bias_of(const Matrix& matrix, const Memory& rows, const Launch& launch) const {
    if (matrix.bias.bytes() > 0) add_bias(rows.at(), matrix.bias.at(), rows_, matrix.n, launch);
}

Model::Pending Model::left_by_attention(const Kind& kind, const LayerWeights& own) const {
    Pending pending;
    pending.rows.rows = attended_.at();
    if (adds_bias_later(kind, own.after_attention)) pending.rows.more = own.out.bias.at();
    pending.rows.same_for_all = true;
    return pending;
}

Model::Pending Model::left_by_ffn(const Kind& kind, const LayerWeights& own) const {
    Pending pending;
    if (kind.experts != nullptr && !own.after_ffn) {
        pending.sums = expert_sums(kind);
        return pending;
    }
    pending.rows.rows = fed_.at();
    if (adds_bias_later(kind, own.after_ffn)) pending.rows.more = own.down.bias.at();
    pending.rows.same_for_all = true;
    return pending;
}

void Model::run(int parts, bool overlap) const {
    const Launch launch{clock_->stream(), overlap};
    if ((parts & other_part) != 0) {
        embed(stream_.at(), embedding_.at(), numbers_.at<int>(), rows_, hidden_, launch);
        if (stack_.positions > 0) {
            embed(normed_.at(), positions_.at(), position_numbers_.at<int>(), rows_, hidden_, launch);
            add_rows(stream_.at(), Addend{normed_.at()}, rows_, hidden_, launch);
        }
        if (embedding_norm_) norm_rows(stream_, stream_.at(), embedding_norm_, rows_, launch);
    }
    Pending pending;
    for (const Kind& kind : kinds_) {
        for (int index = 0; index < kind.shape.count; ++index) run_layer(kind, index, parts, pending, launch);
    }
    if ((parts & other_part) == 0) return;
    const void* x = nullptr;
    if (step_.tokens > 1) {
        // Only the last token of each sequence needs logits.
        settle(pending, Norm{}, normed_, nullptr, launch);
        embed(last_.at(), stream_.at(), last_rows_.at<int>(), step_.batch, hidden_, launch);
        if (final_norm_) norm_rows(last_, last_.at(), final_norm_, step_.batch, launch);
        x = last_.at();
    } else {
        x = settle(pending, final_norm_, normed_, nullptr, launch).rows;
    }
    Product product = head_place_->shape;
    product.x = x;
    head_place_->way.run(product, overlap, launch.stream);
    const int vocabulary = size_of(stack_.vocabulary);
    if (head_.bias.bytes() > 0) add_bias(logits_.at(), head_.bias.at(), step_.batch, vocabulary, launch);
    largest(found_.at<int>(), logits_.at(), step_.batch, vocabulary, scratch_.at<unsigned long long>(), launch);
}

void Model::run_layer(const Kind& kind, int index, int parts, Pending& pending, const Launch& launch) const {
    const LayerShape& shape = kind.shape;
    const LayerWeights& own = kind.layers[static_cast<std::size_t>(index) % kind.layers.size()];
    const bool mixes = shape.attention.query_heads > 0 || shape.state.heads > 0;
    Fed x{normed_.at()};
    if (mixes && (parts & attention_part) != 0) {
        x = settle(pending, own.before_attention, normed_, room_of_attention(kind), launch);
        attend(kind, own, x, launch);
    }
    if (mixes && !shape.parallel) pending = left_by_attention(kind, own);
    if (!shape.ffn.up) return;
    if ((parts & ffn_part) != 0) {
        if (!shape.parallel) {
            x = settle(pending, own.before_ffn, normed_, room_of_ffn(kind), launch);
        } else if (own.before_ffn) {
            norm_rows(normed_beside_, stream_.at(), own.before_ffn, rows_, launch);
            x = {normed_beside_.at()};
        } else {
            x.narrow = false;  // that is for the first product of attention
        }
        feed_forward(kind, own, index, x, launch);
    }
    pending = left_by_ffn(kind, own);
    if (shape.parallel) pending.rows = {attended_.at(), fed_.at(), false};
}

void Model::attend(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const {
    if (kind.shape.state.heads > 0) {
        mix_by_states(kind, own, x, launch);
    } else if (kind.shape.attention.latent()) {
        attend_to_entries(kind, own, x, launch);
    } else {
        attend_to_heads(kind, own, x, launch);
    }
    multiply(kind, out, own.out, {mixed_.at()}, attended_, launch);
    if (!adds_bias_later(kind, own.after_attention)) add_bias_of(own.out, attended_, launch);
    if (own.after_attention) norm_rows(attended_, attended_.at(), own.after_attention, rows_, launch);
}

void Model::attend_to_heads(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const {
    const AttentionShape& shape = kind.shape.attention;
    multiply(kind, qkv, own.qkv, x, heads_, launch);
    HeadRows rows;
    rows.rows = heads_.at();
    rows.row = size_of(shape.qkv.n);
    rows.bias = own.qkv.bias.at();
    if (shape.norm == HeadNorm::whole_width) {
        const int width = size_of(shape.qkv.n);
        const int queries = size_of(shape.query_heads * shape.head_dim);
        const int keys = size_of(shape.kv_heads * shape.head_dim);
        add_bias_of(own.qkv, heads_, launch);
        rows.bias = nullptr;
        void* of_keys = heads_.at(static_cast<std::size_t>(queries) * 2);
        norm_apart(heads_.at(), width, heads_.at(), width, own.head_norms.at(), rows_, queries, launch);
        norm_apart(of_keys, width, of_keys, width, own.head_norms.at(static_cast<std::size_t>(queries) * 2), rows_,
                   keys, launch);
    } else {
        rows.norms = own.head_norms.at();
    }
    const int kept = size_of(shape.kept(step_.tokens, step_.context));
    rows.head_dim = size_of(shape.head_dim);
    if (shape.rotary) rows.angles = angles_.at(rows.head_dim).at<float2>();
    rows.keys = own.keys.at();
    rows.values = own.values.at();
    if (attends_to_fresh()) {
        rows.fresh_keys = keys_.at();
        rows.fresh_values = values_.at();
    }
    rows.count = rows_;
    rows.tokens = step_.tokens;
    rows.position = step_.context - step_.tokens;
    rows.place = kept - step_.tokens;
    rows.heads = size_of(shape.query_heads);
    rows.kv_heads = size_of(shape.kv_heads);
    rows.capacity = kept;
    rows.cache = format_of(stack_.kv);
    settle_heads(rows, launch);
    run_attention(kind, own, launch);
    if (shape.gated) {
        const int width = rows.heads * rows.head_dim;
        const int gates = (rows.heads + 2 * rows.kv_heads) * rows.head_dim;
        open_gates(mixed_.at(), mixed_.at(), width, heads_.at(static_cast<std::size_t>(gates) * 2), rows.row, rows_,
                   width, launch);
    }
}

StateRows Model::state_rows(const Kind& kind, const LayerWeights& own) const {
    const StateMixerShape& shape = kind.shape.state;
    const StateWeights& weights = own.state;
    const int values = size_of(shape.values());
    StateRows rows;
    rows.rows = heads_.at();
    rows.width = own.qkv.n;
    rows.convolved_at = shape.delta ? 0 : values;
    rows.gates_at = shape.delta ? size_of(shape.channels()) : 0;
    rows.heads_at = size_of(shape.channels()) + values;
    rows.convolution = {weights.taps.at(),   weights.bias.at(),         weights.past.at(),
                        size_of(shape.taps), size_of(shape.channels()), step_.context - step_.tokens};
    rows.convolved = convolved_.at();
    rows.chunks = chunks_.at();
    rows.rates = weights.rates.at<float>();
    rows.skips = weights.skips.at<float>();
    rows.gains = weights.gains.at();
    rows.states = weights.states.at<float>();
    rows.to = mixed_.at();
    rows.sequences = step_.batch;
    rows.tokens = step_.tokens;
    rows.heads = size_of(shape.heads);
    rows.groups = size_of(shape.groups);
    rows.key_dim = size_of(shape.key_dim);
    rows.value_dim = size_of(shape.value_dim);
    rows.delta = shape.delta;
    rows.fresh = step_.prefill;
    return rows;
}

void Model::mix_by_states(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const {
    multiply(kind, qkv, own.qkv, x, heads_, launch);
    add_bias_of(own.qkv, heads_, launch);
    run_states(state_rows(kind, own), launch);
    const StateMixerShape& shape = kind.shape.state;
    if (!shape.delta) {
        kernels::norm(mixed_.at(), mixed_.at(), own.state.gains.at(), rows_, size_of(shape.values()), launch);
    }
}

void Model::attend_to_entries(const Kind& kind, const LayerWeights& own, const Fed& x, const Launch& launch) const {
    const AttentionShape& shape = kind.shape.attention;
    const int heads = size_of(shape.query_heads);
    const int rank = size_of(shape.rank);
    const int entry = size_of(shape.entry());
    const int unturned = size_of(shape.unturned());
    const int value_dim = size_of(shape.value_dim);
    const int width = own.qkv.n;
    multiply(kind, qkv, own.qkv, x, heads_, launch);
    const Memory* queries = &heads_;
    int query_row = width;
    if (shape.q_down) {
        const int low = size_of(shape.q_down.n);
        norm_apart(low_.at(), low, heads_.at(), width, own.query_norm.at(), rows_, low, launch);
        multiply(kind, q_up, own.q_up, {low_.at()}, queries_, launch);
        add_bias_of(own.q_up, queries_, launch);
        queries = &queries_;
        query_row = own.q_up.n;
    }
    LatentRows rows;
    rows.entries = heads_.at(static_cast<std::size_t>(width - entry) * 2);
    rows.entry_row = width;
    rows.gains = own.entry_norm.at();
    rows.angles = angles_.at(size_of(shape.rope_dim)).at<float2>();
    rows.cache = own.keys.at();
    rows.queries = queries->at(static_cast<std::size_t>(unturned) * 2);
    rows.query_row = rows.turned_row = query_row;
    rows.query_head = rows.turned_head = size_of(shape.head_dim);
    rows.turned = queries->at(static_cast<std::size_t>(unturned) * 2);
    rows.count = rows_;
    rows.tokens = step_.tokens;
    rows.position = step_.context - step_.tokens;
    rows.heads = heads;
    rows.rank = rank;
    rows.rope_dim = size_of(shape.rope_dim);
    rows.capacity = size_of(shape.kept(step_.tokens, step_.context));
    if (step_.expanded) {
        rows.low = low_.at();
        settle_entries(rows, launch);
        multiply(kind, kv_up, own.kv_up, {low_.at()}, expanded_, launch);
        add_bias_of(own.kv_up, expanded_, launch);
        place_expanded({expanded_.at(), own.keys.at(), keys_.at(), values_.at(), rows_, step_.tokens, heads, unturned,
                        value_dim, rank, rows.rope_dim, rows.capacity},
                       launch);
        run_attention(kind, own, launch);
        return;
    }
    // Scores are divided by the root of a head's width, not of an entry's.
    const float factor = std::sqrt(static_cast<float>(entry) / static_cast<float>(shape.head_dim));
    rows.turned = wide_queries_.at(static_cast<std::size_t>(rank) * 2);
    rows.turned_row = heads * entry;
    rows.turned_head = entry;
    rows.factor = factor;
    settle_entries(rows, launch);
    HeadProduct into;
    own.into_queries.weights.put_into(into);
    into.x = queries->at();
    into.y = wide_queries_.at();
    into.factor = factor;
    into.m = rows_;
    into.heads = heads;
    into.n = rank;
    into.k = unturned;
    into.x_row = query_row;
    into.x_head = size_of(shape.head_dim);
    into.y_row = heads * entry;
    into.y_head = entry;
    kernels::launch(into, own.into_queries.weights.format(), launch.overlap, launch.stream);
    run_attention(kind, own, launch);
    HeadProduct from = into;
    own.out_of_results.weights.put_into(from);
    from.x = latent_results_.at();
    from.y = mixed_.at();
    from.factor = 1.0f;
    from.n = value_dim;
    from.k = rank;
    from.x_row = heads * rank;
    from.x_head = rank;
    from.y_row = heads * value_dim;
    from.y_head = value_dim;
    kernels::launch(from, own.out_of_results.weights.format(), launch.overlap, launch.stream);
}

void Model::run_attention(const Kind& kind, const LayerWeights& own, const Launch& launch) const {
    const Attention a = attention(kind, own);
    if (kind.library != nullptr) {
        kind.library->run(a, kind.plan, launch.stream);
    } else if (step_.prefill) {
        launch_prefill(a, launch.overlap, launch.stream);
    } else {
        kernels::launch(*kind.decode, a, launch.overlap, launch.stream);
    }
}

void Model::feed(const Kind& kind, const Matrix& up_matrix, const Matrix& down_matrix, bool shared, const Fed& x,
                 const Memory& y, const Launch& launch) const {
    multiply(kind, shared ? shared_up : up, up_matrix, x, wide_, launch);
    const Which second = shared ? shared_down : down;
    const auto& room = kind.places[second]->way.room;
    Fed activated{activated_.at()};
    if (!kind.shape.ffn.gated) {
        gelu(activated_.at(), wide_.at(), rows_, down_matrix.k, launch, up_matrix.bias.at());
    } else if (room != nullptr) {
        silu_product(room->to(), wide_.at(), rows_, down_matrix.k, launch, up_matrix.bias.at(), shared);
        activated.narrow = true;
    } else {
        silu_product(activated_.at(), wide_.at(), rows_, down_matrix.k, launch, up_matrix.bias.at(), shared);
    }
    multiply(kind, second, down_matrix, activated, y, launch);
}

void Model::feed_forward(const Kind& kind, const LayerWeights& own, int index, const Fed& x,
                         const Launch& launch) const {
    if (kind.experts == nullptr) {
        feed(kind, own.up, own.down, false, x, fed_, launch);
        if (!adds_bias_later(kind, own.after_ffn)) add_bias_of(own.down, fed_, launch);
    } else {
        // Shared experts go between: meanwhile it is known who was chosen, and the chosen ones' weights can come early.
        const bool shared = static_cast<bool>(kind.shape.ffn.shared_up);
        kind.experts->route_rows(expert_weights(own), index, x.rows, launch.overlap);
        if (shared) {
            feed(kind, own.shared_up, own.shared_down, true, {x.rows}, shared_, launch);
            add_bias_of(own.shared_down, shared_, launch);
        }
        kind.experts->multiply(expert_weights(own), index, x.rows, x.narrow, shared && kind.shape.ffn.gated,
                               launch.overlap);
        if (kind.shape.ffn.shared_gate) {
            row_gates(gates_.at<float>(), x.rows, own.shared_gate.at(), rows_, hidden_, launch);
        }
        if (own.after_ffn) {
            sum_rows(fed_.at(), expert_sums(kind), rows_, hidden_, launch);
        }
    }
    if (own.after_ffn) norm_rows(fed_, fed_.at(), own.after_ffn, rows_, launch);
}

}  // namespace roofline::cuda::kernels
