// Making the weights of layer_weights.cuh.
#include <algorithm>
#include <cmath>
#include <string>

#include "roofline/bench/cuda/layer_weights.cuh"
#include "roofline/bench/cuda/product.cuh"

namespace roofline::cuda::kernels {

namespace {

/// Makes one after the other, no two alike.
class Maker {
  public:
    Maker(const StackShape& stack, const StepShape& step, std::uint32_t seed, cudaStream_t stream)
        : stack_(stack), step_(step), seed_(seed), stream_(stream) {}

    Matrix matrix(const ProductShape& shape, std::int64_t copies = 1) {
        return shape ? make_matrix(shape, size_of(copies), next(), stream_) : Matrix{};
    }
    Memory vector(std::int64_t values, float amplitude = 1.0f) {
        return make_vector(static_cast<std::size_t>(values), amplitude, next(), stream_);
    }
    Memory numbers(std::int64_t count, float low, float high) {
        Memory memory(static_cast<std::size_t>(count) * sizeof(float));
        fill_random(memory.at<float>(), static_cast<std::size_t>(count), low, high, next(), stream_);
        return memory;
    }
    Norm norm(bool there) {
        return there ? make_norm(size_of(stack_.hidden), stack_.layer_norms, next(), stream_) : Norm{};
    }
    Memory cache(std::int64_t values) {
        const Format format = format_of(stack_.kv);
        const auto count = static_cast<std::size_t>(values);
        Memory memory(count * static_cast<std::size_t>(bits(format)) / 8);
        fill_random(memory.at(), count, format, 1.0f, next(), stream_);
        return memory;
    }

    void attention(LayerWeights& own, const AttentionShape& shape) {
        own.out = matrix(shape.out);
        const std::int64_t kept = shape.kept(step_.tokens, step_.context);
        if (shape.latent()) {
            entries(own, shape);
            own.keys = cache(step_.batch * kept * shape.entry());
            return;
        }
        own.qkv = matrix(shape.qkv);
        if (shape.sinks) own.sinks = numbers(shape.query_heads, -2.0f, 2.0f);
        if (shape.norm == HeadNorm::each_head) own.head_norms = vector(2 * shape.head_dim);
        if (shape.norm == HeadNorm::whole_width) {
            own.head_norms = vector((shape.query_heads + shape.kv_heads) * shape.head_dim);
        }
        const std::int64_t values = step_.batch * shape.kv_heads * kept * shape.head_dim;
        own.keys = cache(values);
        own.values = cache(values);
    }

    void state(LayerWeights& own, const StateMixerShape& shape) {
        own.qkv = matrix(shape.in);
        own.out = matrix(shape.out);
        StateWeights& state = own.state;
        state.taps = vector(shape.taps * shape.channels(), 0.5f);
        state.bias = vector(shape.channels(), 0.5f);
        state.rates = numbers(shape.heads, 0.05f, 1.0f);  // less than 0: states would grow
        state.skips = numbers(shape.heads, -1.0f, 1.0f);
        state.gains = vector(shape.delta ? shape.value_dim : shape.values());
        state.past = vector(step_.batch * shape.taps * shape.channels());
        state.states = Memory(static_cast<std::size_t>(step_.batch * shape.values() * shape.key_dim) * sizeof(float));
        state.seed = next();
        state.renew(state.states, stream_);
    }

    void ffn(LayerWeights& own, const FfnShape& shape) {
        const std::int64_t ffns = std::max<std::int64_t>(1, shape.experts);
        own.up = matrix(shape.up, ffns);
        own.down = matrix(shape.down, ffns);
        own.router = matrix(shape.router);
        own.shared_up = matrix(shape.shared_up);
        own.shared_down = matrix(shape.shared_down);
        if (shape.shared_gate) {
            own.shared_gate = vector(stack_.hidden, 1.0f / std::sqrt(static_cast<float>(stack_.hidden)));
        }
    }

  private:
    std::uint32_t next() { return seed_ += 4; }  // a matrix takes four

    void entries(LayerWeights& own, const AttentionShape& shape) {
        const ProductShape& first = shape.q_down ? shape.q_down : shape.q;
        if (first.type != shape.kv_down.type || first.bias || shape.kv_down.bias) {
            throw Failure{"queries and latent entries come from one product here, of one type and without a bias"};
        }
        own.qkv = matrix({first.n + shape.kv_down.n, first.k, first.type, false, first.narrow});
        if (shape.q_down) {
            own.query_norm = vector(shape.q_down.n);
            own.q_up = matrix(shape.q);
        }
        own.entry_norm = vector(shape.rank);
        if (step_.expanded) {
            own.kv_up = matrix(shape.kv_up);
        } else {
            if (shape.kv_up.bias) throw Failure{"what makes keys of latent entries has no bias here"};
            own.into_queries = matrix({shape.rank, shape.unturned(), shape.kv_up.type, false}, shape.query_heads);
            own.out_of_results = matrix({shape.value_dim, shape.rank, shape.kv_up.type, false}, shape.query_heads);
        }
    }

    const StackShape& stack_;
    const StepShape& step_;
    std::uint32_t seed_;
    cudaStream_t stream_;
};

}  // namespace

void StateWeights::renew(Memory& to, cudaStream_t stream) const {
    fill_random(to.at<float>(), to.bytes() / sizeof(float), -0.5f, 0.5f, seed, stream);
}

Format format_of(DType cache) {
    return cache == DType::fp8 ? Format::fp8 : Format::bf16;
}

Matrix make_matrix(const ProductShape& shape, int copies, std::uint32_t seed, cudaStream_t stream) {
    Matrix matrix;
    matrix.n = size_of(shape.n);
    matrix.k = size_of(shape.k);
    matrix.narrow = shape.narrow;
    if (matrix.k % product_granule(shape.type) != 0) {
        throw Failure{"a width of " + std::to_string(matrix.k) + " is not a multiple of " +
                      std::to_string(product_granule(shape.type)) + ", which our product needs"};
    }
    matrix.weights = RandomWeights(shape.type, matrix.n, matrix.k, copies, seed, stream);
    if (shape.bias) matrix.bias = make_vector(product_of({matrix.n, copies}), 0.5f, seed + 3, stream);
    return matrix;
}

Memory make_vector(std::size_t values, float amplitude, std::uint32_t seed, cudaStream_t stream) {
    Memory memory(values * 2);
    fill_random(memory.at(), values, Format::bf16, amplitude, seed, stream);
    return memory;
}

Norm make_norm(int width, bool with_bias, std::uint32_t seed, cudaStream_t stream) {
    Norm norm;
    norm.gains = make_vector(static_cast<std::size_t>(width), 1.0f, seed, stream);
    if (with_bias) norm.bias = make_vector(static_cast<std::size_t>(width), 0.5f, seed + 1, stream);
    return norm;
}

LayerWeights make_layer(const StackShape& stack, const LayerShape& layer, const StepShape& step, std::uint32_t seed,
                        cudaStream_t stream) {
    Maker maker(stack, step, seed, stream);
    LayerWeights own;
    own.before_attention = maker.norm(layer.norm_before_attention);
    own.after_attention = maker.norm(layer.norm_after_attention);
    own.before_ffn = maker.norm(layer.norm_before_ffn);
    own.after_ffn = maker.norm(layer.norm_after_ffn);
    if (layer.attention.query_heads > 0) maker.attention(own, layer.attention);
    if (layer.state.heads > 0) maker.state(own, layer.state);
    if (layer.ffn.up) maker.ffn(own, layer.ffn);
    return own;
}

}  // namespace roofline::cuda::kernels
