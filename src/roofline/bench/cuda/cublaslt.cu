// cuBLASLt by its functions' names: found in the library at run time, typed by its header.
#include "roofline/bench/cuda/cublaslt.cuh"

#if __has_include(<cublasLt.h>)

#include <array>
#include <cublasLt.h>
#include <dlfcn.h>
#include <string>

namespace roofline::cuda::kernels {

namespace {

void must_library(cublasStatus_t status, const char* doing) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw Failure{std::string("cuBLASLt: ") + doing + " failed with status " + std::to_string(status)};
    }
}

template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw Failure{std::string("cuBLASLt has no ") + name};
}

/// The library's functions that are used; throws Failure where the library is not there.
struct CublasLt {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtMatmul) matmul;
    decltype(&cublasLtMatmulDescCreate) description_create;
    decltype(&cublasLtMatmulDescDestroy) description_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) description_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
    cublasLtHandle_t handle = nullptr;

    static const CublasLt& instance();
};

CublasLt load() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
    }
    if (library == nullptr) throw Failure{"cuBLASLt is not installed (libcublasLt.so was not found)"};
    CublasLt table{};
    find(library, "cublasLtCreate", table.create);
    find(library, "cublasLtMatmul", table.matmul);
    find(library, "cublasLtMatmulDescCreate", table.description_create);
    find(library, "cublasLtMatmulDescDestroy", table.description_destroy);
    find(library, "cublasLtMatmulDescSetAttribute", table.description_set);
    find(library, "cublasLtMatrixLayoutCreate", table.layout_create);
    find(library, "cublasLtMatrixLayoutDestroy", table.layout_destroy);
    find(library, "cublasLtMatmulPreferenceCreate", table.preference_create);
    find(library, "cublasLtMatmulPreferenceDestroy", table.preference_destroy);
    find(library, "cublasLtMatmulPreferenceSetAttribute", table.preference_set);
    find(library, "cublasLtMatmulAlgoGetHeuristic", table.heuristic);
    must_library(table.create(&table.handle), "cublasLtCreate");
    return table;
}

const CublasLt& CublasLt::instance() {
    static const CublasLt table = load();
    return table;
}

constexpr std::size_t workspace_bytes = 64 << 20;

}  // namespace

struct LibraryProduct::Parts {
    Parts() = default;
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        const CublasLt& lt = CublasLt::instance();
        if (preference != nullptr) lt.preference_destroy(preference);
        if (output != nullptr) lt.layout_destroy(output);
        if (activations != nullptr) lt.layout_destroy(activations);
        if (weights != nullptr) lt.layout_destroy(weights);
        if (description != nullptr) lt.description_destroy(description);
    }

    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatrixLayout_t weights = nullptr;
    cublasLtMatrixLayout_t activations = nullptr;
    cublasLtMatrixLayout_t output = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    std::array<cublasLtMatmulHeuristicResult_t, 16> algorithms{};
    int count = 0;
    Memory workspace;
    Memory scale;         // 1, for both operands where they have no others
    bool scaled = false;  // by those of the product
};

LibraryProduct::LibraryProduct(Format weights, bool narrow_activations, bool scaled, int m, int n, int k) {
    const bool fp8 = (weights == Format::fp8 || weights == Format::fp8_block) && narrow_activations;
    if (!fp8 && (weights != Format::bf16 || narrow_activations)) {
        throw Failure{"cuBLASLt multiplies bf16 by bf16 and fp8 by fp8; it has no product of mixed formats"};
    }
    if (weights == Format::fp8_block && m % 4 != 0) {
        throw Failure{"cuBLASLt takes scales of blocks where rows of activations are a multiple of four"};
    }
    const CublasLt& lt = CublasLt::instance();
    parts_ = std::make_unique<Parts>();
    Parts& made = *parts_;
    made.workspace = Memory(workspace_bytes);
    made.scale = Memory(sizeof(float));
    const float one = 1.0f;
    must(cudaMemcpy(made.scale.at(), &one, sizeof one, cudaMemcpyHostToDevice), "copy to the device");
    // In the library's columns: output [n, m] = weights [k, n] transposed x activations [k, m].
    const cudaDataType_t operands = fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
    const auto un = static_cast<std::uint64_t>(n);
    const auto um = static_cast<std::uint64_t>(m);
    const auto uk = static_cast<std::uint64_t>(k);
    must_library(lt.description_create(&made.description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const auto describe = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
        must_library(lt.description_set(made.description, name, &value, sizeof value),
                     "cublasLtMatmulDescSetAttribute");
    };
    describe(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (fp8) {
        const void* scale = made.scale.at();
        describe(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale);
        describe(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale);
    }
    if (scaled) describe_scales(made, weights);
    must_library(lt.layout_create(&made.weights, operands, uk, un, k), "cublasLtMatrixLayoutCreate");
    must_library(lt.layout_create(&made.activations, operands, uk, um, k), "cublasLtMatrixLayoutCreate");
    must_library(lt.layout_create(&made.output, CUDA_R_16BF, un, um, n), "cublasLtMatrixLayoutCreate");
    must_library(lt.preference_create(&made.preference), "cublasLtMatmulPreferenceCreate");
    must_library(lt.preference_set(made.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                   sizeof workspace_bytes),
                 "cublasLtMatmulPreferenceSetAttribute");
    const auto status =
        lt.heuristic(lt.handle, made.description, made.weights, made.activations, made.output, made.output,
                     made.preference, static_cast<int>(made.algorithms.size()), made.algorithms.data(), &made.count);
    if (status != CUBLAS_STATUS_SUCCESS || made.count == 0) {
        throw Failure{"cuBLASLt has no algorithm for this product (status " + std::to_string(status) + ")"};
    }
}

LibraryProduct::~LibraryProduct() = default;

void LibraryProduct::describe_scales(Parts& made, Format weights) {
    made.scaled = true;
#if CUBLAS_VERSION >= 120900
    const bool blocks = weights == Format::fp8_block;
    const auto describe = [&](cublasLtMatmulDescAttributes_t name, cublasLtMatmulMatrixScale_t value) {
        must_library(CublasLt::instance().description_set(made.description, name, &value, sizeof value),
                     "setting the scales' mode");
    };
    describe(CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
             blocks ? CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F : CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    describe(CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
             blocks ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F : CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#else
    throw Failure{"the CUDA plugin was built with a cuBLASLt that has no scales of rows or blocks"};
#endif
}

int LibraryProduct::algorithms() const {
    return parts_->count;
}

void LibraryProduct::run(const Product& product, int algorithm, cudaStream_t stream) const {
    const CublasLt& lt = CublasLt::instance();
    const Parts& made = *parts_;
    const float one = 1.0f;
    const float zero = 0.0f;
    if (made.scaled) {
        const auto describe = [&](cublasLtMatmulDescAttributes_t name, const void* scales) {
            must_library(lt.description_set(made.description, name, &scales, sizeof scales), "setting scales");
        };
        describe(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, product.scales);
        describe(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, product.x_scales);
    }
    must_library(lt.matmul(lt.handle, made.description, &one, product.weights, made.weights, product.x,
                           made.activations, &zero, product.y, made.output, product.y, made.output,
                           &made.algorithms[static_cast<std::size_t>(algorithm)].algo, made.workspace.at(),
                           workspace_bytes, stream),
                 "cublasLtMatmul");
}

}  // namespace roofline::cuda::kernels

#else

namespace roofline::cuda::kernels {

struct LibraryProduct::Parts {};

LibraryProduct::LibraryProduct(Format, bool, bool, int, int, int) {
    throw Failure{"the CUDA plugin was built without cuBLASLt's header"};
}
LibraryProduct::~LibraryProduct() = default;
int LibraryProduct::algorithms() const {
    return 0;
}
void LibraryProduct::run(const Product&, int, cudaStream_t) const {}

}  // namespace roofline::cuda::kernels

#endif
