// Making the model, choosing its kernels, and launching a step of it.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "roofline/bench/cuda/model.cuh"
#include "roofline/bench/cuda/tasks.cuh"

namespace roofline::cuda::kernels {

namespace {

constexpr double seconds_of_a_way = 0.003;  // that is tried
constexpr std::size_t most_contenders = 4;

/// Random weights whose products keep the size of what they multiply.
Matrix make_matrix(int n, int k, Format format, std::uint32_t seed, cudaStream_t stream) {
    if (k % product_granule(format) != 0) {
        throw Failure{"a width of " + std::to_string(k) + " is not a multiple of " +
                      std::to_string(product_granule(format)) + ", which our product needs"};
    }
    Matrix matrix;
    matrix.n = n;
    matrix.k = k;
    const std::size_t values = product_of({n, k});
    matrix.weights = Memory(values * static_cast<std::size_t>(bits(format)) / 8);
    const float unit = 1.0f / std::sqrt(static_cast<float>(k));
    // Standard deviations: uniform in +-1: 0.577; int8 over its range: 73.9; int4: 4.61.
    fill_random(matrix.weights.at(), values, format, format == Format::bf16 ? unit / 0.577f : 1.0f, seed, stream);
    if (format == Format::int4) {
        matrix.scales = Memory(values / 128 * 2);
        fill_random(matrix.scales.at(), values / 128, Format::bf16, unit / (4.61f * 0.577f), seed + 1, stream);
    } else if (format != Format::bf16) {
        matrix.scales = Memory(static_cast<std::size_t>(n) * sizeof(float));
        const float scale = format == Format::int8 ? unit / 73.9f : unit / 0.577f;
        fill_random(matrix.scales.at<float>(), static_cast<std::size_t>(n), 0.8f * scale, 1.2f * scale, seed + 1,
                    stream);
    }
    return matrix;
}

Memory make_vector(std::size_t values, float amplitude, std::uint32_t seed, cudaStream_t stream) {
    Memory memory(values * 2);
    fill_random(memory.at(), values, Format::bf16, amplitude, seed, stream);
    return memory;
}

}  // namespace

Model::Model(const ModelShape& model, const StepShape& step, const Clock& clock)
    : model_(model), step_(step), clock_(&clock), rows_(step.batch * step.tokens) {
    const cudaStream_t stream = clock.stream();
    if (model.experts > 0) {
        experts_ = std::make_unique<Experts>(ExpertShape{rows_, model.experts, model.experts_chosen, model.hidden,
                                                         model.ffn_width, model.layers, step.weights},
                                             clock);
        kinds_ = {qkv, output, head};
    } else {
        gate_up_ = Memory(product_of({rows_, model.ffn_width, 4}));
        activated_ = Memory(product_of({rows_, model.ffn_width, 2}));
        kinds_ = {qkv, output, gate_up, down, head};
    }
    const int all_heads = model.query_heads + 2 * model.kv_heads;
    const int attended = model.query_heads * model.head_dim;
    embedding_ = make_vector(product_of({model.vocabulary, model.hidden}), 1.0f, 101, stream);
    final_norm_ = make_vector(static_cast<std::size_t>(model.hidden), 1.0f, 102, stream);
    head_ = make_matrix(model.vocabulary, model.hidden, step.weights, 103, stream);

    residual_ = Memory(product_of({rows_, model.hidden, 2}));
    normed_ = Memory(product_of({rows_, model.hidden, 2}));
    branch_ = Memory(product_of({rows_, model.hidden, 2}));
    heads_ = Memory(product_of({rows_, all_heads, model.head_dim, 2}));
    attended_ = Memory(product_of({rows_, attended, 2}));
    last_residual_ = Memory(product_of({step.batch, model.hidden, 2}));
    last_branch_ = Memory(product_of({step.batch, model.hidden, 2}));
    logits_ = Memory(product_of({step.batch, model.vocabulary, 2}));
    found_ = Memory(product_of({step.batch, 4}));
    scratch_ = Memory(product_of({step.batch, 64, 8}));
    const Attention shape = attention(-1);
    if (!step.prefill) parts_ = Memory(part_bytes(shape));
    tickets_ = Memory(ticket_bytes());
    must(cudaMemsetAsync(tickets_.at(), 0, tickets_.bytes(), stream), "tickets");

    numbers_ = Memory(product_of({rows_, 4}));
    const auto numbers = token_numbers();
    must(cudaMemcpy(numbers_.at(), numbers.data(), numbers_.bytes(), cudaMemcpyHostToDevice), "copy to the device");
    last_rows_ = Memory(product_of({step.batch, 4}));
    std::vector<int> last;
    for (int i = 0; i < step.batch; ++i) last.push_back((i + 1) * step.tokens - 1);
    must(cudaMemcpy(last_rows_.at(), last.data(), last_rows_.bytes(), cudaMemcpyHostToDevice), "copy to the device");

    const int pairs = model.head_dim / 2;
    std::vector<float2> angles(product_of({step.context, pairs}));
    for (int position = 0; position < step.context; ++position) {
        for (int pair = 0; pair < pairs; ++pair) {
            const double angle = position * std::pow(500000.0, -static_cast<double>(pair) / pairs);
            angles[static_cast<std::size_t>(position) * static_cast<std::size_t>(pairs) +
                   static_cast<std::size_t>(pair)] = {static_cast<float>(std::cos(angle)),
                                                      static_cast<float>(std::sin(angle))};
        }
    }
    angles_ = Memory(angles.size() * sizeof(float2));
    must(cudaMemcpy(angles_.at(), angles.data(), angles_.bytes(), cudaMemcpyHostToDevice), "copy to the device");

    clock.finish();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    must(cudaMemGetInfo(&free_bytes, &total_bytes), "free memory");
    constexpr std::size_t kept = std::size_t{1} << 30;  // for workspaces of libraries
    layers_.push_back(make_layer(1000));
    clock.finish();
    std::size_t after = 0;
    must(cudaMemGetInfo(&after, &total_bytes), "free memory");
    const std::size_t layer_bytes =
        std::max<std::size_t>(free_bytes - std::min(free_bytes, after), std::size_t{1} << 20);
    const auto room =
        after > kept ? static_cast<int>(std::min<std::size_t>((after - kept) / layer_bytes, 1u << 20)) : 0;
    const int distinct = std::min(model.layers, 1 + room);
    for (int i = 1; i < distinct; ++i) layers_.push_back(make_layer(1000 + 20 * static_cast<std::uint32_t>(i)));
    clock.finish();
}

Layer Model::make_layer(std::uint32_t seed) const {
    const cudaStream_t stream = clock_->stream();
    const int all_heads = model_.query_heads + 2 * model_.kv_heads;
    const auto hidden = static_cast<std::size_t>(model_.hidden);
    Layer layer;
    layer.qkv = make_matrix(all_heads * model_.head_dim, model_.hidden, step_.weights, seed, stream);
    layer.output = make_matrix(model_.hidden, model_.query_heads * model_.head_dim, step_.weights, seed + 2, stream);
    const int ffns = std::max(1, model_.experts);
    layer.gate_up = make_matrix(ffns * 2 * model_.ffn_width, model_.hidden, step_.weights, seed + 4, stream);
    layer.down = make_matrix(ffns * model_.hidden, model_.ffn_width, step_.weights, seed + 6, stream);
    if (model_.experts > 0) layer.router = make_matrix(model_.experts, model_.hidden, Format::bf16, seed + 14, stream);
    layer.attention_norm = make_vector(hidden, 1.0f, seed + 8, stream);
    layer.ffn_norm = make_vector(hidden, 1.0f, seed + 9, stream);
    if (model_.head_norm) layer.head_norms = make_vector(product_of({2, model_.head_dim}), 1.0f, seed + 10, stream);
    if (model_.bias) layer.bias = make_vector(product_of({all_heads, model_.head_dim}), 0.5f, seed + 11, stream);
    const std::size_t cached = product_of({step_.batch, model_.kv_heads, step_.context, model_.head_dim});
    const std::size_t cache_bytes = cached * static_cast<std::size_t>(bits(step_.cache)) / 8;
    layer.keys = Memory(cache_bytes);
    layer.values = Memory(cache_bytes);
    fill_random(layer.keys.at(), cached, step_.cache, 1.0f, seed + 12, stream);
    fill_random(layer.values.at(), cached, step_.cache, 1.0f, seed + 13, stream);
    return layer;
}

std::vector<int> Model::token_numbers() const {
    std::vector<int> numbers;
    for (int i = 0; i < rows_; ++i) {
        numbers.push_back(static_cast<int>((static_cast<unsigned>(i) * 2654435761u + 12345u) %
                                           static_cast<unsigned>(model_.vocabulary)));
    }
    return numbers;
}

Product Model::product(ProductKind kind, int index) const {
    const Layer& own = layer(index);
    const Matrix& matrix = kind == qkv       ? own.qkv
                           : kind == output  ? own.output
                           : kind == gate_up ? own.gate_up
                           : kind == down    ? own.down
                                             : head_;
    const Memory& x = kind == output ? attended_ : kind == down ? activated_ : normed_;
    const Memory& y = kind == qkv ? heads_ : kind == gate_up ? gate_up_ : kind == head ? logits_ : branch_;
    return {matrix.weights.at(),
            matrix.scales.at(),
            x.at(),
            y.at(),
            kind == head ? step_.batch : rows_,
            matrix.n,
            matrix.k};
}

void Model::multiply(ProductKind kind, int index, bool overlap) const {
    ways_[kind].run(product(kind, index), overlap, clock_->stream());
}

Attention Model::attention(int index) const {
    Attention a;
    a.queries = heads_.at();
    a.output = attended_.at();
    a.query_stride = (model_.query_heads + 2 * model_.kv_heads) * model_.head_dim;
    a.batch = step_.batch;
    a.query_heads = model_.query_heads;
    a.kv_heads = model_.kv_heads;
    a.head_dim = a.value_dim = model_.head_dim;
    a.tokens = step_.tokens;
    a.context = step_.context;
    a.capacity = step_.context;
    a.parts = parts_.at<float>();
    a.tickets = tickets_.at<unsigned>();
    if (index >= 0) a.keys = layer(index).keys.at(), a.values = layer(index).values.at();
    return a;
}

void Model::choose(const std::string& backend) {
    chosen_.clear();
    library_.reset();
    const std::string products_of = backend == "cudnn" ? "cublaslt" : backend;
    const std::array<const char*, products> names = {"qkv", "output", "gate_up", "down", "head"};
    std::array<std::vector<ProductWay>, products> contenders;  // the fastest few alone, in that order
    for (const auto kind : kinds_) {
        const Product shape = product(kind, 0);
        const auto ways = product_ways(products_of, step_.weights, false, shape.m, shape.n, shape.k);
        const int buffers = kind == head ? 1 : distinct();
        std::vector<Run> runs;
        for (const auto& way : ways) {
            runs.push_back([&](int index) { way.run(product(kind, index), true, clock_->stream()); });
        }
        std::vector<double> times;
        const int best = fastest(
            *clock_, runs,
            std::min(buffers, rotation(static_cast<std::size_t>(weight_bytes(step_.weights, shape.n, shape.k)))),
            seconds_of_a_way, &times);
        if (best < 0) throw Failure{std::string("no way to multiply ") + names[kind] + " ran"};
        ways_[kind] = ways[static_cast<std::size_t>(best)];
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < ways.size(); ++i) {
            if (times[i] > 0.0) order.push_back(i);
        }
        std::ranges::sort(order, {}, [&](std::size_t i) { return times[i]; });
        if (order.size() > most_contenders) order.resize(most_contenders);
        for (const std::size_t i : order) contenders[kind].push_back(ways[i]);
    }
    if (experts_ != nullptr) choose_experts(products_of);
    choose_attention(backend);
    if (!step_.prefill) {
        // Which is fastest alone need not be where others go before it and behind it.
        if (experts_ != nullptr) {
            std::vector<Run> runs;
            for (std::size_t plan = 0; plan < experts_->plans(); ++plan) {
                runs.push_back([&, plan](int) {
                    experts_->take(plan);
                    run(ffn_part, true);
                });
            }
            const int best = fastest(*clock_, runs, 1, seconds_of_a_way);
            experts_->take(static_cast<std::size_t>(std::max(best, 0)));
        }
        for (const auto kind : kinds_) {
            if (kind == head) continue;
            std::vector<Run> runs;
            for (const auto& way : contenders[kind]) {
                runs.push_back([&, kind](int) {
                    ways_[kind] = way;
                    run(kind == qkv || kind == output ? attention_part : ffn_part, true);
                });
            }
            const int best = fastest(*clock_, runs, 1, seconds_of_a_way);
            ways_[kind] = contenders[kind][static_cast<std::size_t>(std::max(best, 0))];
        }
    }
    std::vector<std::string> of_products;
    for (const auto kind : kinds_) {
        of_products.push_back(std::string(names[kind]) + ": " + products_of + ", " + ways_[kind].name);
    }
    if (experts_ != nullptr) std::ranges::copy(experts_->chosen(), std::back_inserter(of_products));
    chosen_.insert(chosen_.begin(), of_products.begin(), of_products.end());
}

void Model::choose_experts(const std::string& backend) {
    std::vector<ExpertWeights> layers;
    for (int i = 0; i < distinct(); ++i) layers.push_back(expert_weights(i));
    // Rows that differ, so that they choose as a step's do.
    fill_random(normed_.at(), product_of({rows_, model_.hidden}), Format::bf16, 1.0f, 104, clock_->stream());
    experts_->choose(backend, layers, normed_.at());
}

ExpertWeights Model::expert_weights(int index) const {
    const Layer& own = layer(index);
    return {own.router.weights.at(), own.gate_up.weights.at(), own.gate_up.scales.at(), own.down.weights.at(),
            own.down.scales.at()};
}

void Model::choose_attention(const std::string& backend) {
    if (backend == "cudnn") {
        library_ = std::make_unique<LibraryAttention>(attention(0), step_.cache);
        std::vector<Run> runs;
        for (int plan = 0; plan < library_->plans(); ++plan) {
            runs.push_back([&, plan](int index) { library_->run(attention(index), plan, clock_->stream()); });
        }
        plan_ = fastest(*clock_, runs, distinct(), seconds_of_a_way);
        if (plan_ < 0) throw Failure{"no plan of cuDNN's ran"};
        chosen_.push_back("attention: cudnn, plan " + std::to_string(plan_));
        return;
    }
    if (step_.prefill) {
        chosen_.emplace_back("attention: own");
        if (!prefill_supported(attention(0), step_.cache)) {
            throw Failure{"our prefill attention takes a bf16 cache and heads of 64 or 128, on Hopper of 256 too"};
        }
        return;
    }
    const auto ways = decode_ways(attention(0), step_.cache);
    // Each among its neighbours, as products are.
    std::vector<Run> runs;
    for (const DecodeWay& way : ways) {
        runs.push_back([&](int) {
            decode_ = way;
            run(attention_part, true);
        });
    }
    const int best = fastest(*clock_, runs, 1, seconds_of_a_way);
    if (best < 0) throw Failure{"our decode attention does not take this shape of heads and cache"};
    decode_ = ways[static_cast<std::size_t>(best)];
    chosen_.push_back("attention: own, " + decode_->name);
}

void Model::run(int parts, bool overlap) const {
    const Launch launch_as{clock_->stream(), overlap};
    const int past = step_.context - step_.tokens;
    if ((parts & other_part) != 0) {
        embed(residual_.at(), embedding_.at(), numbers_.at<int>(), rows_, model_.hidden, launch_as);
    }
    for (int index = 0; index < model_.layers; ++index) {
        const Layer& own = layer(index);
        if ((parts & attention_part) != 0) {
            if (index == 0) {
                norm(normed_.at(), residual_.at(), own.attention_norm.at(), rows_, model_.hidden, launch_as);
            } else {
                add_and_norm(own.attention_norm, true, launch_as);
            }
            multiply(qkv, index, overlap);
            if (model_.bias) {
                add_bias(heads_.at(), own.bias.at(), rows_,
                         (model_.query_heads + 2 * model_.kv_heads) * model_.head_dim, launch_as);
            }
            if (model_.head_norm) {
                norm_heads(heads_.at(), own.head_norms.at(), rows_, model_.query_heads, model_.kv_heads,
                           model_.head_dim, launch_as);
            }
            rotate(heads_.at(), angles_.at<float2>(), rows_, step_.tokens, past, model_.query_heads, model_.kv_heads,
                   model_.head_dim, launch_as);
            write_cache(own.keys.at(), own.values.at(), heads_.at(), rows_, step_.tokens, past, model_.query_heads,
                        model_.kv_heads, model_.head_dim, step_.context, step_.cache, launch_as);
            if (library_ != nullptr) {
                library_->run(attention(index), plan_, clock_->stream());
            } else if (step_.prefill) {
                launch_prefill(attention(index), overlap, clock_->stream());
            } else {
                launch(*decode_, attention(index), overlap, clock_->stream());
            }
            multiply(output, index, overlap);
        }
        if ((parts & ffn_part) != 0) {
            add_and_norm(own.ffn_norm, false, launch_as);
            if (experts_ != nullptr) {
                experts_->run(expert_weights(index), index, normed_.at(), overlap);
            } else {
                multiply(gate_up, index, overlap);
                silu_product(activated_.at(), gate_up_.at(), rows_, model_.ffn_width, launch_as);
                multiply(down, index, overlap);
            }
        }
    }
    if ((parts & other_part) != 0) {
        if (step_.tokens > 1) {
            if (experts_ != nullptr) sum_rows(branch_.at(), experts_->results(), rows_, model_.hidden, launch_as);
            embed(last_residual_.at(), residual_.at(), last_rows_.at<int>(), step_.batch, model_.hidden, launch_as);
            embed(last_branch_.at(), branch_.at(), last_rows_.at<int>(), step_.batch, model_.hidden, launch_as);
            add_norm(normed_.at(), last_residual_.at(), last_branch_.at(), final_norm_.at(), step_.batch, model_.hidden,
                     launch_as);
        } else {
            add_and_norm(final_norm_, true, launch_as);
        }
        multiply(head, 0, overlap);
        largest(found_.at<int>(), logits_.at(), step_.batch, model_.vocabulary, scratch_.at<unsigned long long>(),
                launch_as);
    }
}

void Model::add_and_norm(const Memory& weight, bool after_ffn, const Launch& launch_as) const {
    if (after_ffn && experts_ != nullptr) {
        add_norm(normed_.at(), residual_.at(), experts_->results(), weight.at(), rows_, model_.hidden, launch_as);
    } else {
        add_norm(normed_.at(), residual_.at(), branch_.at(), weight.at(), rows_, model_.hidden, launch_as);
    }
}

double Model::bytes() const {
    const Layer& own = layers_.front();
    double layer_weights = 0.0;
    for (const Matrix* matrix : {&own.qkv, &own.output}) {
        layer_weights += weight_bytes(step_.weights, matrix->n, matrix->k);
    }
    const double ffns =
        weight_bytes(step_.weights, own.gate_up.n, own.gate_up.k) + weight_bytes(step_.weights, own.down.n, own.down.k);
    double ffn_weights = model_.layers * ffns;
    if (experts_ != nullptr) {
        ffn_weights = model_.layers * weight_bytes(Format::bf16, own.router.n, own.router.k);
        for (int index = 0; index < model_.layers; ++index) {
            const auto chosen = experts_chosen(index);
            const std::set<int> touched(chosen.begin(), chosen.end());
            ffn_weights += ffns * static_cast<double>(touched.size()) / model_.experts;
        }
    }
    const double entry = 2.0 * model_.kv_heads * model_.head_dim * bits(step_.cache) / 8.0;
    const double read = static_cast<double>(step_.batch) * step_.context * entry;
    const double written = static_cast<double>(rows_) * entry;
    return model_.layers * (layer_weights + read + written) + ffn_weights +
           weight_bytes(step_.weights, head_.n, head_.k) + static_cast<double>(rows_) * model_.hidden * 2.0;
}

std::vector<std::uint16_t> Model::logits() const {
    return copied(logits_.at<std::uint16_t>(), product_of({step_.batch, model_.vocabulary}));
}

std::vector<int> Model::tokens_found() const {
    return copied(found_.at<int>(), static_cast<std::size_t>(step_.batch));
}

}  // namespace roofline::cuda::kernels
