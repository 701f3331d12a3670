#include "roofline/measure/cuda/cublaslt.cuh"
#include "roofline/measure/cuda/library.cuh"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define ROOFLINE_HAS_CUBLASLT_HEADER 1
#endif

namespace roofline::probe {

#ifdef ROOFLINE_HAS_CUBLASLT_HEADER
namespace {

#define ROOFLINE_CALL(field, function) decltype(&function) field = library.find<decltype(&function)>(#function)
struct CublasLt {
    Library library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    ROOFLINE_CALL(create, cublasLtCreate);
    ROOFLINE_CALL(matmul, cublasLtMatmul);
    ROOFLINE_CALL(heuristic, cublasLtMatmulAlgoGetHeuristic);
    ROOFLINE_CALL(desc_create, cublasLtMatmulDescCreate);
    ROOFLINE_CALL(desc_destroy, cublasLtMatmulDescDestroy);
    ROOFLINE_CALL(desc_set, cublasLtMatmulDescSetAttribute);
    ROOFLINE_CALL(layout_create, cublasLtMatrixLayoutCreate);
    ROOFLINE_CALL(layout_destroy, cublasLtMatrixLayoutDestroy);
    ROOFLINE_CALL(preference_create, cublasLtMatmulPreferenceCreate);
    ROOFLINE_CALL(preference_destroy, cublasLtMatmulPreferenceDestroy);
    ROOFLINE_CALL(preference_set, cublasLtMatmulPreferenceSetAttribute);
    cublasLtHandle_t handle = nullptr;
    std::string why;

    CublasLt() {
        if (!library.there())
            why = "libcublasLt.so is not here";
        else if (create == nullptr || matmul == nullptr || heuristic == nullptr || desc_create == nullptr ||
                 desc_destroy == nullptr || desc_set == nullptr || layout_create == nullptr ||
                 layout_destroy == nullptr || preference_create == nullptr || preference_destroy == nullptr ||
                 preference_set == nullptr)
            why = "libcublasLt.so has not the functions it should have";
        else if (create(&handle) != CUBLAS_STATUS_SUCCESS)
            why = "cublasLtCreate failed";
    }
};
#undef ROOFLINE_CALL

const CublasLt& library() {
    static const CublasLt calls;
    return calls;
}

void check_blas(cublasStatus_t status, const char* what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw Refused(std::string(what) + ": cuBLASLt status " + std::to_string(static_cast<int>(status)));
}

cudaDataType_t data_type(Numbers type) {
    switch (type) {
        case Numbers::fp64:
            return CUDA_R_64F;
        case Numbers::fp32:
            return CUDA_R_32F;
        case Numbers::fp16:
            return CUDA_R_16F;
        case Numbers::bf16:
            return CUDA_R_16BF;
        case Numbers::fp8:
            return CUDA_R_8F_E4M3;
        case Numbers::int8:
            return CUDA_R_8I;
        case Numbers::int32:
            return CUDA_R_32I;
        case Numbers::fp4:
            return CUDA_R_4F_E2M1;
    }
    return CUDA_R_32F;
}

cublasComputeType_t compute_type(Numbers in) {
    switch (in) {
        case Numbers::fp64:
            return CUBLAS_COMPUTE_64F;
        case Numbers::fp32:
            return CUBLAS_COMPUTE_32F_FAST_TF32;
        case Numbers::int8:
            return CUBLAS_COMPUTE_32I;
        default:
            return CUBLAS_COMPUTE_32F;
    }
}

cudaDataType_t scale_type(Numbers in) {
    switch (in) {
        case Numbers::fp64:
            return CUDA_R_64F;
        case Numbers::int8:
            return CUDA_R_32I;
        default:
            return CUDA_R_32F;
    }
}

}  // namespace

/// With a name: nvcc 13.0 fails on vectors of the library's own, which has none.
struct Offer {
    cublasLtMatmulHeuristicResult_t result;
};

struct Product::Parts {
    Numbers in{};
    const void* a = nullptr;
    const void* b = nullptr;
    void* d = nullptr;
    Buffer* workspace = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t layout_a = nullptr;
    cublasLtMatrixLayout_t layout_b = nullptr;
    cublasLtMatrixLayout_t layout_d = nullptr;
    std::vector<Offer> algorithms;
    std::unique_ptr<Buffer> block_scales;  // fp4: one for each 16 numbers, all of them one

    ~Parts() {
        if (layout_d != nullptr) library().layout_destroy(layout_d);
        if (layout_b != nullptr) library().layout_destroy(layout_b);
        if (layout_a != nullptr) library().layout_destroy(layout_a);
        if (desc != nullptr) library().desc_destroy(desc);
    }
    template <class T>
    void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
        check_blas(library().desc_set(desc, attribute, &value, sizeof(value)), "describing a product");
    }
};

Product::Product(const ProductType& type, const ProductShape& shape, const void* a, const void* b, void* d,
                 Buffer& workspace, int algorithms)
    : parts_(std::make_unique<Parts>()) {
    const auto m = static_cast<std::uint64_t>(shape.m);
    const auto n = static_cast<std::uint64_t>(shape.n);
    const auto k = static_cast<std::uint64_t>(shape.k);
    Parts& parts = *parts_;
    parts.in = type.in;
    parts.a = a;
    parts.b = b;
    parts.d = d;
    parts.workspace = &workspace;
    const CublasLt& lt = library();
    check_blas(lt.desc_create(&parts.desc, compute_type(type.in), scale_type(type.in)), "describing a product");
    parts.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    parts.set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    if (type.in == Numbers::fp8) parts.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    if (type.in == Numbers::fp4) {
        // Scales lie in tiles of 128 rows by 4; one buffer of ones serves both operands.
        const std::uint64_t rows = (std::max(m, n) + 127) / 128 * 128;
        parts.block_scales = std::make_unique<Buffer>(rows * ((k / 16 + 3) / 4 * 4));
        constexpr int one_in_e4m3 = 0x38;
        check(cudaMemset(parts.block_scales->data(), one_in_e4m3, parts.block_scales->bytes()), "cudaMemset");
        const void* scales = parts.block_scales->data();
        parts.set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
        parts.set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
        parts.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales);
        parts.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales);
    }
    const auto leading = static_cast<std::int64_t>(k);
    check_blas(lt.layout_create(&parts.layout_a, data_type(type.in), k, m, leading), "describing a matrix");
    check_blas(lt.layout_create(&parts.layout_b, data_type(type.in), k, n, leading), "describing a matrix");
    check_blas(lt.layout_create(&parts.layout_d, data_type(type.out), m, n, static_cast<std::int64_t>(m)),
               "describing a matrix");

    cublasLtMatmulPreference_t preference = nullptr;
    check_blas(lt.preference_create(&preference), "asking for algorithms");
    const std::size_t most = workspace.bytes();
    lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
    parts.algorithms.resize(static_cast<std::size_t>(algorithms));
    int offered = 0;
    const cublasStatus_t status =
        lt.heuristic(lt.handle, parts.desc, parts.layout_a, parts.layout_b, parts.layout_d, parts.layout_d, preference,
                     algorithms, &parts.algorithms.data()->result, &offered);
    lt.preference_destroy(preference);
    check_blas(status, "asking for algorithms");
    parts.algorithms.resize(static_cast<std::size_t>(offered));
}

Product::~Product() = default;
Product::Product(Product&&) noexcept = default;

int Product::algorithms() const {
    return static_cast<int>(parts_->algorithms.size());
}

void Product::launch(int algorithm, cudaStream_t stream) const {
    const Parts& parts = *parts_;
    const double one_double = 1.0;
    const double zero_double = 0.0;
    const float one = 1.0F;
    const float zero = 0.0F;
    const std::int32_t one_whole = 1;
    const std::int32_t zero_whole = 0;
    const void* alpha = &one;
    const void* beta = &zero;
    if (parts.in == Numbers::fp64) {
        alpha = &one_double;
        beta = &zero_double;
    } else if (parts.in == Numbers::int8) {
        alpha = &one_whole;
        beta = &zero_whole;
    }
    const cublasLtMatmulHeuristicResult_t& chosen = parts.algorithms[static_cast<std::size_t>(algorithm)].result;
    check_blas(library().matmul(library().handle, parts.desc, alpha, parts.a, parts.layout_a, parts.b, parts.layout_b,
                                beta, parts.d, parts.layout_d, parts.d, parts.layout_d, &chosen.algo,
                                parts.workspace->data(), parts.workspace->bytes(), stream),
               "product");
}

bool cublaslt_is_there(std::string& why) {
    why = library().why;
    return why.empty();
}

#else  // built on a machine that has no cublasLt.h

struct Product::Parts {};
Product::Product(const ProductType&, const ProductShape&, const void*, const void*, void*, Buffer&, int) {}
Product::~Product() = default;
Product::Product(Product&&) noexcept = default;
int Product::algorithms() const {
    return 0;
}
void Product::launch(int, cudaStream_t) const {}
bool cublaslt_is_there(std::string& why) {
    why = "this plugin was built without cublasLt.h";
    return false;
}

#endif

}  // namespace roofline::probe
