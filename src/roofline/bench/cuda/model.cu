// Making a model. How its kernels are chosen: model_choice.cu; a step of it: model_run.cu.
#include <algorithm>
#include <cmath>
#include <set>

#include "roofline/bench/cuda/model.cuh"

namespace roofline::cuda::kernels {

namespace {

void copy_numbers(Memory& to, const std::vector<int>& numbers) {
    to = Memory(numbers.size() * sizeof(int));
    must(cudaMemcpy(to.at(), numbers.data(), to.bytes(), cudaMemcpyHostToDevice), "copy to the device");
}

/// [position][pair] of cosine and sine.
Memory make_angles(int positions, int dimension) {
    const int pairs = dimension / 2;
    std::vector<float2> angles;
    angles.reserve(product_of({positions, pairs}));
    for (int position = 0; position < positions; ++position) {
        for (int pair = 0; pair < pairs; ++pair) {
            const double angle = position * std::pow(500000.0, -static_cast<double>(pair) / pairs);
            angles.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
        }
    }
    Memory memory(angles.size() * sizeof(float2));
    must(cudaMemcpy(memory.at(), angles.data(), memory.bytes(), cudaMemcpyHostToDevice), "copy to the device");
    return memory;
}

std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    must(cudaMemGetInfo(&free, &total), "free memory");
    return free;
}

/// Room for the largest of the kinds; grows only.
void make_room(Memory& room, std::int64_t numbers, int bytes = 2) {
    const std::size_t needed = static_cast<std::size_t>(numbers) * static_cast<std::size_t>(bytes);
    if (needed <= room.bytes()) return;
    room = Memory();
    room = Memory(needed);
    // What a part of a step finds that is run without the others are numbers.
    must(cudaMemset(room.at(), 0, needed), "clearing memory");
}

}  // namespace

Model::Model(const StackShape& stack, const StepShape& step, const Clock& clock)
    : stack_(stack), step_(step), clock_(&clock), rows_(step.rows()), hidden_(size_of(stack.hidden)) {
    refuse_what_has_no_kernel();
    for (const LayerShape& shape : stack_.kinds) {
        Kind& kind = kinds_.emplace_back();
        kind.shape = shape;
        const FfnShape& ffn = shape.ffn;
        if (ffn.experts > 0) {
            kind.experts = std::make_unique<Experts>(
                ExpertShape{rows_, size_of(ffn.experts), size_of(ffn.chosen), hidden_, size_of(ffn.down.k),
                            size_of(shape.count), ffn.up.type, ffn.gated, ffn.up.narrow && ffn.down.narrow},
                clock);
        }
    }
    make_outside();
    make_rooms();
    make_layers();
    for (Kind& kind : kinds_) place_products(kind);
    head_place_ = placed("head", other_part, head_, normed_, logits_, step_.batch);
}

void Model::refuse_what_has_no_kernel() const {
    for (const LayerShape& layer : stack_.kinds) {
        const AttentionShape& attention = layer.attention;
        const FfnShape& ffn = layer.ffn;
        if (layer.channels.channels > 0) throw Failure{"no step on CUDA has states or convolutions of channels alone"};
        if (attention.chosen > 0) throw Failure{"no step on CUDA chooses what it attends to"};
        if (attention.gate_a_head) throw Failure{"no step on CUDA has one gate a head"};
        if (attention.keys_as_values) throw Failure{"no step on CUDA has keys that are values too"};
        if (ffn.latent_down) throw Failure{"no step on CUDA has experts of narrower rows"};
        if (ffn.norms_apart) throw Failure{"no step on CUDA has norms between experts and an FFN beside them"};
        if (attention.gated && attention.qkv.bias) throw Failure{"gates behind attention have no bias on CUDA"};
        if (layer.state.heads > 0 && step_.prefill && step_.context != step_.tokens) {
            throw Failure{"prompts of layers with a state begin with an empty one here"};
        }
        if (attention.latent() && step_.expanded != step_.tokens > 1) {
            throw Failure{"latent entries are expanded by prompts alone here"};
        }
        if (attention.latent() && step_.expanded && step_.context != step_.tokens) {
            throw Failure{"prompts over latent entries begin with an empty cache here"};
        }
        if (attention.latent() && stack_.kv != DType::bf16) throw Failure{"latent entries are bf16 on CUDA"};
        if (ffn.shared_gate.bias) throw Failure{"a gate of shared experts has no bias on CUDA"};
        if (ffn.experts == 0) continue;
        if (ffn.up.type != ffn.down.type) throw Failure{"experts are of one type on CUDA"};
        if (ffn.router.type != Format::bf16) throw Failure{"a router is bf16 on CUDA"};
        if (layer.parallel) throw Failure{"no step on CUDA has experts beside attention"};
    }
}

void Model::make_outside() {
    const cudaStream_t stream = clock_->stream();
    const std::size_t hidden = static_cast<std::size_t>(hidden_);
    embedding_ = make_vector(static_cast<std::size_t>(stack_.vocabulary) * hidden, 1.0f, 101, stream);
    if (stack_.final_norm) final_norm_ = make_norm(hidden_, stack_.layer_norms, 102, stream);
    head_ = make_matrix(stack_.head, 1, 104, stream);
    if (stack_.embedding_norm) embedding_norm_ = make_norm(hidden_, stack_.layer_norms, 106, stream);
    const int first = step_.context - step_.tokens;
    copy_numbers(numbers_, token_numbers());
    if (stack_.positions > 0) {
        positions_ = make_vector(static_cast<std::size_t>(stack_.positions) * hidden, 1.0f, 108, stream);
        std::vector<int> numbers;
        for (int i = 0; i < rows_; ++i) numbers.push_back((first + i % step_.tokens) % size_of(stack_.positions));
        copy_numbers(position_numbers_, numbers);
    }
    std::vector<int> last;
    for (int i = 0; i < step_.batch; ++i) last.push_back((i + 1) * step_.tokens - 1);
    copy_numbers(last_rows_, last);
    for (const LayerShape& layer : stack_.kinds) {
        if (!layer.attention.rotary) continue;
        const int turned = size_of(layer.attention.latent() ? layer.attention.rope_dim : layer.attention.head_dim);
        if (!angles_.contains(turned)) angles_.emplace(turned, make_angles(step_.context, turned));
    }
}

void Model::make_rooms() {
    const std::int64_t rows = rows_;
    for (Memory* room : {&stream_, &normed_, &attended_, &fed_}) make_room(*room, rows * hidden_);
    make_room(last_, std::int64_t{step_.batch} * hidden_);
    make_room(logits_, step_.batch * stack_.vocabulary);
    make_room(found_, step_.batch, 4);
    make_room(scratch_, std::int64_t{step_.batch} * 64, 8);
    for (const LayerShape& layer : stack_.kinds) {
        const AttentionShape& a = layer.attention;
        const FfnShape& ffn = layer.ffn;
        if (layer.parallel && layer.norm_before_ffn) make_room(normed_beside_, rows * hidden_);
        if (ffn.experts == 0) {
            make_room(wide_, rows * ffn.up.n);
            make_room(activated_, rows * ffn.down.k);
        }
        if (ffn.shared_up) {
            make_room(shared_, rows * hidden_);
            make_room(wide_, rows * ffn.shared_up.n);
            make_room(activated_, rows * ffn.shared_down.k);
        }
        if (ffn.shared_gate) make_room(gates_, rows, 4);
        make_room(mixed_, rows * std::max(a.query_heads * a.value_dim, layer.state.values()));
        make_room(heads_, rows * layer.state.in.n);
        make_room(convolved_, rows * layer.state.channels());
        if (!a.latent()) {
            make_room(heads_, rows * a.qkv.n);
            if (attends_to_fresh()) {
                make_room(keys_, rows * a.kv_heads * a.head_dim);
                make_room(values_, rows * a.kv_heads * a.head_dim);
            }
            continue;
        }
        make_room(heads_, rows * ((a.q_down ? a.q_down.n : a.q.n) + a.entry()));
        if (a.q_down) {
            make_room(low_, rows * a.q_down.n);
            make_room(queries_, rows * a.q.n);
        }
        if (step_.expanded) {
            make_room(low_, rows * a.rank);
            make_room(expanded_, rows * a.kv_up.n);
            make_room(keys_, rows * a.query_heads * a.head_dim);
            make_room(values_, rows * a.query_heads * a.value_dim);
        } else {
            make_room(wide_queries_, rows * a.query_heads * a.entry());
            make_room(latent_results_, rows * a.query_heads * a.rank);
        }
    }
    tickets_ = Memory(ticket_bytes());
    must(cudaMemsetAsync(tickets_.at(), 0, tickets_.bytes(), clock_->stream()), "tickets");
    const LayerWeights none;
    for (const Kind& kind : kinds_) {
        if (kind.shape.state.heads == 0) continue;
        const std::size_t needed = chunk_bytes(state_rows(kind, none));
        if (needed > chunks_.bytes()) chunks_ = Memory(needed);
    }
    if (step_.prefill) return;
    for (const Kind& kind : kinds_) {
        if (kind.shape.attention.query_heads == 0) continue;
        const std::size_t needed = part_bytes(attention(kind, none));
        if (needed > parts_.bytes()) parts_ = Memory(needed);
    }
}

void Model::make_layers() {
    constexpr std::size_t kept = std::size_t{1} << 30;  // for workspaces of libraries
    std::uint32_t seed = 1000;
    const auto add = [&](Kind& kind) {
        kind.layers.push_back(make_layer(stack_, kind.shape, step_, seed, clock_->stream()));
        seed += 100;
    };
    std::vector<std::size_t> sizes;
    clock_->finish();
    for (Kind& kind : kinds_) {
        const std::size_t before = free_bytes();
        add(kind);
        sizes.push_back(std::max<std::size_t>(before - std::min(before, free_bytes()), std::size_t{1} << 20));
    }
    // One more of each kind that has more, as long as there is room.
    std::size_t room = free_bytes();
    room = room > kept ? room - kept : 0;
    for (std::int64_t number = 1; number < stack_.layers(); ++number) {
        for (std::size_t i = 0; i < kinds_.size(); ++i) {
            if (number >= kinds_[i].shape.count) continue;
            if (sizes[i] > room) {
                clock_->finish();
                return;
            }
            room -= sizes[i];
            add(kinds_[i]);
        }
    }
    clock_->finish();
}

Model::Place* Model::placed(const std::string& name, Part part, const Matrix& like, const Memory& x, const Memory& y,
                            int rows) {
    for (Place& place : places_) {
        if (place.name == name && place.shape.n == like.n && place.shape.k == like.k &&
            place.format == like.weights.format() && place.narrow == like.narrow) {
            return &place;
        }
    }
    Place& place = places_.emplace_back();
    place.name = name;
    place.part = part;
    place.shape.x = x.at();
    place.shape.y = y.at();
    place.shape.m = rows;
    place.shape.n = like.n;
    place.shape.k = like.k;
    like.weights.put_into(place.shape);
    place.format = like.weights.format();
    place.narrow = like.narrow;
    if (&like == &head_) place.matrices.push_back(&like);
    return &place;
}

void Model::place_products(Kind& kind) {
    const auto add = [&](Which which, const char* name, Part part, Matrix LayerWeights::* matrix, const Memory& x,
                         const Memory& y) {
        if ((kind.layers.front().*matrix).n == 0) return;
        Place* place = placed(name, part, kind.layers.front().*matrix, x, y, rows_);
        for (const LayerWeights& own : kind.layers) place->matrices.push_back(&(own.*matrix));
        kind.places[which] = place;
    };
    const bool latent = kind.shape.attention.latent();
    const char* first = kind.shape.state.heads > 0 ? "in" : latent ? "queries and entries" : "qkv";
    add(qkv, first, attention_part, &LayerWeights::qkv, normed_, heads_);
    add(q_up, "q_up", attention_part, &LayerWeights::q_up, low_, queries_);
    add(kv_up, "kv_up", attention_part, &LayerWeights::kv_up, low_, expanded_);
    add(out, "output", attention_part, &LayerWeights::out, mixed_, attended_);
    if (kind.experts == nullptr) {
        const bool gated = kind.shape.ffn.gated;
        add(up, gated ? "gate_up" : "up", ffn_part, &LayerWeights::up, normed_, wide_);
        add(down, "down", ffn_part, &LayerWeights::down, activated_, fed_);
    }
    add(shared_up, "shared gate_up", ffn_part, &LayerWeights::shared_up, normed_, wide_);
    add(shared_down, "shared down", ffn_part, &LayerWeights::shared_down, activated_, shared_);
}

void Model::renew_states() {
    for (Kind& kind : kinds_) {
        for (LayerWeights& own : kind.layers) {
            if (kind.shape.state.heads > 0) own.state.renew(own.state.states, clock_->stream());
        }
    }
}

std::vector<int> Model::token_numbers() const {
    std::vector<int> numbers;
    for (int i = 0; i < rows_; ++i) {
        numbers.push_back(static_cast<int>((static_cast<unsigned>(i) * 2654435761u + 12345u) %
                                           static_cast<unsigned>(stack_.vocabulary)));
    }
    return numbers;
}

Attention Model::attention(const Kind& kind, const LayerWeights& own) const {
    const AttentionShape& shape = kind.shape.attention;
    Attention a;
    a.output = mixed_.at();
    a.batch = step_.batch;
    a.query_heads = size_of(shape.query_heads);
    a.tokens = step_.tokens;
    a.parts = parts_.at<float>();
    a.tickets = tickets_.at<unsigned>();
    a.kv_heads = size_of(shape.kv_heads);
    a.head_dim = size_of(shape.head_dim);
    a.value_dim = size_of(shape.value_dim);
    a.context = a.capacity = size_of(shape.kept(step_.tokens, step_.context));
    if (shape.latent() && step_.expanded) {
        a.queries = shape.q_down ? queries_.at() : heads_.at();
        a.query_stride = size_of(shape.q_down ? shape.q.n : shape.q.n + shape.entry());
        a.kv_heads = a.query_heads;
        a.keys = keys_.at();
        a.values = values_.at();
    } else if (shape.latent()) {
        a.queries = wide_queries_.at();
        a.output = latent_results_.at();
        a.query_stride = a.query_heads * size_of(shape.entry());
        a.kv_heads = 1;
        a.head_dim = size_of(shape.entry());
        a.value_dim = size_of(shape.rank);
        a.latent = true;
        a.keys = own.keys.at();
    } else {
        a.queries = heads_.at();
        a.query_stride = size_of(shape.qkv.n);
        a.keys = attends_to_fresh() ? keys_.at() : own.keys.at();
        a.values = attends_to_fresh() ? values_.at() : own.values.at();
        if (shape.sinks) a.sinks = own.sinks.at<float>();
        // One token sees all that is kept.
        if (step_.tokens > 1 && shape.window < a.context) a.window = size_of(shape.window);
    }
    return a;
}

bool Model::attends_to_fresh() const {
    return step_.prefill && stack_.kv != DType::bf16 && step_.context == step_.tokens;
}

Format Model::attended_format() const {
    return attends_to_fresh() ? Format::bf16 : format_of(stack_.kv);
}

ExpertWeights Model::expert_weights(const LayerWeights& own) {
    return {&own.router.weights, own.router.bias.at(), &own.up.weights,
            own.up.bias.at(),    &own.down.weights,    own.down.bias.at()};
}

bool Model::narrows(std::size_t kind, Which which) const {
    if (kinds_[kind].experts != nullptr && (which == up || which == down)) {
        return kinds_[kind].experts->narrows()[which == up ? 0 : 1];
    }
    const Place* place = kinds_[kind].places[which];
    return place != nullptr && place->way.room != nullptr;
}

bool Model::narrows_somewhere() const {
    return std::ranges::any_of(places_, [](const Place& place) { return place.way.room != nullptr; }) ||
           std::ranges::any_of(kinds_, [](const Kind& kind) {
               return kind.experts != nullptr && (kind.experts->narrows()[0] || kind.experts->narrows()[1]);
           });
}

int Model::distinct() const {
    std::size_t count = 0;
    for (const Kind& kind : kinds_) count += kind.layers.size();
    return static_cast<int>(count);
}

double Model::bytes() const {
    double sum = head_.bytes() + 2.0 * rows_ * hidden_;
    for (const Kind& kind : kinds_) {
        const LayerWeights& own = kind.layers.front();
        const AttentionShape& a = kind.shape.attention;
        double layer = 0.0;
        for (const Matrix* matrix : {&own.qkv, &own.q_up, &own.kv_up, &own.into_queries, &own.out_of_results, &own.out,
                                     &own.router, &own.shared_up, &own.shared_down}) {
            layer += matrix->bytes();
        }
        const StateMixerShape& state = kind.shape.state;
        // States are read, but for a prompt's, and written, and so is what a convolution keeps.
        const double of_sequence = (step_.prefill ? 4.0 : 8.0) * static_cast<double>(state.values() * state.key_dim) +
                                   2.0 * static_cast<double>(state.taps * state.channels());
        layer += step_.batch * of_sequence + static_cast<double>(own.state.taps.bytes());
        const auto numbers = static_cast<double>(a.latent() ? a.entry() : 2 * a.kv_heads * a.head_dim);
        const double entry = numbers * bits(format_of(stack_.kv)) / 8.0;
        const auto kept = static_cast<double>(a.kept(step_.tokens, step_.context));
        layer += (step_.batch * kept + rows_) * entry + static_cast<double>(own.shared_gate.bytes());
        const double ffns = own.up.bytes() + own.down.bytes();
        if (kind.experts == nullptr) layer += ffns;
        sum += static_cast<double>(kind.shape.count) * layer;
        for (int index = 0; kind.experts != nullptr && index < kind.shape.count; ++index) {
            const auto chosen = kind.experts->choices(index);
            const std::set<int> touched(chosen.begin(), chosen.end());
            sum += ffns * static_cast<double>(touched.size()) / static_cast<double>(kind.shape.ffn.experts);
        }
    }
    return sum;
}

std::vector<std::uint16_t> Model::logits() const {
    return copied(logits_.at<std::uint16_t>(), logits_.bytes() / 2);
}

std::vector<int> Model::tokens_found() const {
    return copied(found_.at<int>(), static_cast<std::size_t>(step_.batch));
}

}  // namespace roofline::cuda::kernels
