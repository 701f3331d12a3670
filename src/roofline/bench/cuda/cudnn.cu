// cuDNN by its functions' names, and attention as a graph of its operations.
#include "roofline/bench/cuda/cudnn.cuh"

#if __has_include(<cudnn.h>)

#include <algorithm>
#include <array>
#include <cmath>
#include <cudnn.h>
#include <dlfcn.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace roofline::cuda::kernels {

namespace {

struct Cudnn {
    decltype(&cudnnCreate) create;
    decltype(&cudnnSetStream) set_stream;
    decltype(&cudnnGetErrorString) error_string;
    decltype(&cudnnBackendCreateDescriptor) descriptor_create;
    decltype(&cudnnBackendDestroyDescriptor) descriptor_destroy;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
    cudnnHandle_t handle = nullptr;

    static const Cudnn& instance();
};

template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw Failure{std::string("cuDNN has no ") + name};
}

Cudnn load() {
    void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Failure{"cuDNN 9 is not installed (libcudnn.so.9 was not found)"};
    Cudnn table{};
    find(library, "cudnnCreate", table.create);
    find(library, "cudnnSetStream", table.set_stream);
    find(library, "cudnnGetErrorString", table.error_string);
    find(library, "cudnnBackendCreateDescriptor", table.descriptor_create);
    find(library, "cudnnBackendDestroyDescriptor", table.descriptor_destroy);
    find(library, "cudnnBackendSetAttribute", table.set);
    find(library, "cudnnBackendGetAttribute", table.get);
    find(library, "cudnnBackendFinalize", table.finalize);
    find(library, "cudnnBackendExecute", table.execute);
    if (table.create(&table.handle) != CUDNN_STATUS_SUCCESS) throw Failure{"cuDNN: no handle could be made"};
    return table;
}

const Cudnn& Cudnn::instance() {
    static const Cudnn table = load();
    return table;
}

void must_library(cudnnStatus_t status, const char* doing) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw Failure{std::string("cuDNN: ") + doing + ": " + Cudnn::instance().error_string(status)};
}

/// A descriptor of the library: its attributes are set, then it is finished.
class Node {
  public:
    explicit Node(cudnnBackendDescriptorType_t type) {
        must_library(Cudnn::instance().descriptor_create(type, &descriptor_), "descriptor");
    }
    ~Node() {
        if (descriptor_ != nullptr) Cudnn::instance().descriptor_destroy(descriptor_);
    }
    Node(Node&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
    Node& operator=(Node&&) = delete;

    template <class T>
    Node& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values, std::int64_t count) {
        must_library(Cudnn::instance().set(descriptor_, name, type, count, const_cast<T*>(values)),
                     ("attribute " + std::to_string(name)).c_str());
        return *this;
    }
    template <class T>
    Node& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
        return set(name, type, &value, 1);
    }
    Node& set(cudnnBackendAttributeName_t name, const Node& node) {
        return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &node.descriptor_, 1);
    }
    Node& finish(const char* what) {
        must_library(Cudnn::instance().finalize(descriptor_), what);
        return *this;
    }
    cudnnBackendDescriptor_t raw() const { return descriptor_; }

  private:
    cudnnBackendDescriptor_t descriptor_ = nullptr;
};

using Four = std::array<std::int64_t, 4>;

enum Number : std::int64_t { queries = 1, keys, values, output, scale, nowhere, first_virtual };

/// Builds the operations one after another; tensors between them exist in the graph alone.
class Builder {
  public:
    explicit Builder(Four scores) : scores_(scores) {}

    Node tensor(std::int64_t number, cudnnDataType_t type, Four sizes, Four strides, bool is_virtual, bool by_value) {
        Node node(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        node.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number)
            .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
            .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
            .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes.data(), 4)
            .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4)
            .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual)
            .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value)
            .finish("tensor");
        return node;
    }
    Node between(cudnnDataType_t type = CUDNN_DATA_FLOAT, bool reduced = false) {
        Four sizes = scores_;
        if (reduced) sizes[3] = 1;
        return tensor(next_++, type, sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}, true,
                      false);
    }
    Node value(std::int64_t number) {
        return tensor(number, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
    }

    void multiply(const Node& a, const Node& b, const Node& c) {
        Node how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
        how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finish("matmul");
        Node& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
            .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
            .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
            .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
            .finish("matmul operation");
        kept_.push_back(std::move(how));
    }
    void pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node* b, const Node& y, const Node* t = nullptr,
                   cudnnDataType_t precision = CUDNN_DATA_FLOAT, std::int64_t axis = -1) {
        Node how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
            .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
        if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
        how.finish("pointwise");
        Node& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
        if (t != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
        operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finish("pointwise operation");
        kept_.push_back(std::move(how));
    }
    void reduce(cudnnReduceTensorOp_t mode, const Node& x, const Node& y) {
        Node how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
        how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode)
            .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
            .finish("reduction");
        Node& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
            .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
            .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
            .finish("reduction operation");
        kept_.push_back(std::move(how));
    }
    Node& keep(Node&& node) { return *tensors_.emplace_back(std::make_unique<Node>(std::move(node))); }
    const std::vector<Node>& operations() const { return operations_; }

  private:
    Four scores_;
    std::int64_t next_ = first_virtual;
    std::vector<Node> operations_;
    std::vector<Node> kept_;
    std::vector<std::unique_ptr<Node>> tensors_;
};

}  // namespace

struct LibraryAttention::Parts {
    explicit Parts(Four scores) : builder(scores) {}
    Builder builder;
    std::vector<Node> plans;
    Memory workspace;
};

LibraryAttention::LibraryAttention(const Attention& shape, Format cache) {
    if (shape.latent) throw Failure{"cuDNN attention is not asked for latent caches"};
    if (shape.window > 0 || shape.sinks != nullptr) {
        throw Failure{"cuDNN's attention is asked for without windows and sinks"};
    }
    if (cache != Format::bf16) throw Failure{"cuDNN attention is asked for bf16 caches only"};
    if (shape.context % 128 != 0) throw Failure{"cuDNN attention is asked for contexts that are multiples of 128 only"};
    const bool causal = shape.tokens > 1;
    if (causal && shape.context != shape.tokens) throw Failure{"cuDNN attention is asked for whole prompts only"};
    const std::int64_t batch = shape.batch;
    const std::int64_t heads = shape.query_heads;
    const std::int64_t kv_heads = shape.kv_heads;
    const std::int64_t dimension = shape.head_dim;
    const std::int64_t width = shape.value_dim;
    const std::int64_t tokens = shape.tokens;
    const std::int64_t context = shape.context;
    const std::int64_t capacity = shape.capacity;
    const std::int64_t stride = shape.query_stride;
    parts_ = std::make_unique<Parts>(Four{batch, heads, tokens, context});
    Builder& graph = parts_->builder;
    const auto type = CUDNN_DATA_BFLOAT16;
    Node& q = graph.keep(graph.tensor(queries, type, {batch, heads, tokens, dimension},
                                      {tokens * stride, dimension, stride, 1}, false, false));
    Node& k =
        graph.keep(graph.tensor(keys, type, {batch, kv_heads, dimension, context},
                                {kv_heads * capacity * dimension, capacity * dimension, 1, dimension}, false, false));
    Node& v = graph.keep(graph.tensor(values, type, {batch, kv_heads, context, width},
                                      {kv_heads * capacity * width, capacity * width, width, 1}, false, false));
    Node& o = graph.keep(graph.tensor(output, type, {batch, heads, tokens, width},
                                      {tokens * heads * width, width, heads * width, 1}, false, false));
    Node& factor = graph.keep(graph.value(scale));

    Node& raw = graph.keep(graph.between());
    graph.multiply(q, k, raw);
    Node* scores = &graph.keep(graph.between());
    graph.pointwise(CUDNN_POINTWISE_MUL, raw, &factor, *scores);
    if (causal) {
        Node& row = graph.keep(graph.between(CUDNN_DATA_INT32));
        Node& column = graph.keep(graph.between(CUDNN_DATA_INT32));
        Node& seen = graph.keep(graph.between(CUDNN_DATA_BOOLEAN));
        Node& masked = graph.keep(graph.between());
        Node& minus = graph.keep(graph.value(nowhere));
        graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, *scores, nullptr, row, nullptr, CUDNN_DATA_INT32, 2);
        graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, *scores, nullptr, column, nullptr, CUDNN_DATA_INT32, 3);
        graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, &column, seen, nullptr, CUDNN_DATA_BOOLEAN);
        graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, *scores, &minus, masked, &seen);
        scores = &masked;
    }
    Node& highest = graph.keep(graph.between(CUDNN_DATA_FLOAT, true));
    Node& lowered = graph.keep(graph.between());
    Node& exponents = graph.keep(graph.between());
    Node& total = graph.keep(graph.between(CUDNN_DATA_FLOAT, true));
    Node& logarithm = graph.keep(graph.between(CUDNN_DATA_FLOAT, true));
    Node& statistics = graph.keep(graph.between(CUDNN_DATA_FLOAT, true));
    Node& weights = graph.keep(graph.between(type));
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, *scores, highest);
    graph.pointwise(CUDNN_POINTWISE_SUB, *scores, &highest, lowered);
    graph.pointwise(CUDNN_POINTWISE_EXP, lowered, nullptr, exponents);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponents, total);
    graph.pointwise(CUDNN_POINTWISE_LOG, total, nullptr, logarithm);
    graph.pointwise(CUDNN_POINTWISE_ADD, highest, &logarithm, statistics);
    graph.pointwise(CUDNN_POINTWISE_DIV, exponents, &total, weights);
    graph.multiply(weights, v, o);

    const Cudnn& cudnn = Cudnn::instance();
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const Node& operation : graph.operations()) operations.push_back(operation.raw());
    Node& whole = graph.keep(Node(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    whole
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
             static_cast<std::int64_t>(operations.size()))
        .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnn.handle)
        .finish("operation graph");
    Node& heuristic = graph.keep(Node(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
        .finish("heuristic");
    constexpr std::int64_t most = 8;
    std::vector<Node> proposals;
    std::array<cudnnBackendDescriptor_t, most> raws{};
    for (std::size_t i = 0; i < most; ++i) {
        proposals.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        raws[i] = proposals.back().raw();
    }
    std::int64_t found = 0;
    must_library(cudnn.get(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &found,
                           raws.data()),
                 "plans");
    std::int64_t workspace = 0;
    std::string reason = "cuDNN proposes no plan for this attention";
    for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
        try {
            Node plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn.handle)
                .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposals[i])
                .finish("plan");
            std::int64_t bytes = 0;
            std::int64_t count = 0;
            must_library(
                cudnn.get(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
                "workspace");
            workspace = std::max(workspace, bytes);
            parts_->plans.push_back(std::move(plan));
        } catch (const Failure& failure) {
            reason = failure.text;
        }
    }
    for (Node& proposal : proposals) graph.keep(std::move(proposal));
    if (parts_->plans.empty()) throw Failure{reason};
    parts_->workspace = Memory(static_cast<std::size_t>(workspace));
}

LibraryAttention::~LibraryAttention() = default;

int LibraryAttention::plans() const {
    return static_cast<int>(parts_->plans.size());
}

void LibraryAttention::run(const Attention& attention, int plan, cudaStream_t stream) const {
    const Cudnn& cudnn = Cudnn::instance();
    must_library(cudnn.set_stream(cudnn.handle, stream), "stream");
    float factor = 1.0f / std::sqrt(static_cast<float>(attention.head_dim));
    float minus = -std::numeric_limits<float>::infinity();
    std::vector<std::int64_t> numbers = {queries, keys, values, output, scale};
    std::vector<void*> pointers = {const_cast<void*>(attention.queries), const_cast<void*>(attention.keys),
                                   const_cast<void*>(attention.values), attention.output, &factor};
    if (attention.tokens > 1) numbers.push_back(nowhere), pointers.push_back(&minus);
    void* workspace = parts_->workspace.at();
    const auto count = static_cast<std::int64_t>(numbers.size());
    Node pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, numbers.data(), count)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finish("pointers");
    must_library(cudnn.execute(cudnn.handle, parts_->plans[static_cast<std::size_t>(plan)].raw(), pack.raw()),
                 "attention");
}

}  // namespace roofline::cuda::kernels

#else

namespace roofline::cuda::kernels {

struct LibraryAttention::Parts {};

LibraryAttention::LibraryAttention(const Attention&, Format) {
    throw Failure{"the CUDA plugin was built without cuDNN's header"};
}
LibraryAttention::~LibraryAttention() = default;
int LibraryAttention::plans() const {
    return 0;
}
void LibraryAttention::run(const Attention&, int, cudaStream_t) const {}

}  // namespace roofline::cuda::kernels

#endif
