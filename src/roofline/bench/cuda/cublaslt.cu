#include <dlfcn.h>
#include <string>

#include "roofline/bench/cuda/cublaslt.cuh"

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

CublasLt load() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
    }
    if (library == nullptr) throw Failure{"cuBLASLt is not installed (libcublasLt.so was not found)"};
    CublasLt table{};
    find(library, "cublasLtCreate", table.create);
    find(library, "cublasLtDestroy", table.destroy);
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
    find(library, "cublasLtGetVersion", table.version);
    must_library(table.create(&table.handle), "cublasLtCreate");
    return table;
}

constexpr std::size_t workspace_bytes = 64 << 20;

}  // namespace

const CublasLt& CublasLt::instance() {
    static const CublasLt table = load();
    return table;
}

LibraryProduct::LibraryProduct(Format weights, bool fp8_activations, int m, int n, int k) {
    const bool fp8 = weights == Format::fp8 && fp8_activations;
    if (!fp8 && (weights != Format::bf16 || fp8_activations)) {
        throw Failure{"cuBLASLt multiplies bf16 by bf16 and fp8 by fp8; it has no product of mixed formats"};
    }
    const CublasLt& lt = CublasLt::instance();
    workspace_ = Memory(workspace_bytes);
    scale_ = Memory(sizeof(float));
    const float one = 1.0f;
    must(cudaMemcpy(scale_.at(), &one, sizeof one, cudaMemcpyHostToDevice), "copy to the device");
    cublasLtMatmulPreference_t preference = nullptr;
    try {
        // In the library's columns: output [n, m] = weights [k, n] transposed x activations [k, m].
        const cudaDataType_t operands = fp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
        const auto un = static_cast<std::uint64_t>(n);
        const auto um = static_cast<std::uint64_t>(m);
        const auto uk = static_cast<std::uint64_t>(k);
        must_library(lt.description_create(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
        const cublasOperation_t transposed = CUBLAS_OP_T;
        must_library(lt.description_set(description_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
                     "TRANSA");
        if (fp8) {
            const void* scale = scale_.at();
            must_library(lt.description_set(description_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale),
                         "A_SCALE_POINTER");
            must_library(lt.description_set(description_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale, sizeof scale),
                         "B_SCALE_POINTER");
        }
        must_library(lt.layout_create(&weights_, operands, uk, un, k), "cublasLtMatrixLayoutCreate");
        must_library(lt.layout_create(&activations_, operands, uk, um, k), "cublasLtMatrixLayoutCreate");
        must_library(lt.layout_create(&output_, CUDA_R_16BF, un, um, n), "cublasLtMatrixLayoutCreate");
        must_library(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
        must_library(lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                       sizeof workspace_bytes),
                     "MAX_WORKSPACE_BYTES");
        const auto status = lt.heuristic(lt.handle, description_, weights_, activations_, output_, output_, preference,
                                         static_cast<int>(algorithms_.size()), algorithms_.data(), &count_);
        if (status != CUBLAS_STATUS_SUCCESS || count_ == 0) {
            throw Failure{"cuBLASLt has no algorithm for this product (status " + std::to_string(status) + ")"};
        }
    } catch (...) {
        if (preference != nullptr) lt.preference_destroy(preference);
        release();
        throw;
    }
    lt.preference_destroy(preference);
}

LibraryProduct::~LibraryProduct() {
    release();
}

void LibraryProduct::release() {
    const CublasLt& lt = CublasLt::instance();
    if (output_ != nullptr) lt.layout_destroy(output_);
    if (activations_ != nullptr) lt.layout_destroy(activations_);
    if (weights_ != nullptr) lt.layout_destroy(weights_);
    if (description_ != nullptr) lt.description_destroy(description_);
}

void LibraryProduct::run(const Product& product, int algorithm, cudaStream_t stream) const {
    const CublasLt& lt = CublasLt::instance();
    const float one = 1.0f;
    const float zero = 0.0f;
    must_library(
        lt.matmul(lt.handle, description_, &one, product.weights, weights_, product.x, activations_, &zero, product.y,
                  output_, product.y, output_, &algorithms_[static_cast<std::size_t>(algorithm)].algo, workspace_.at(),
                  workspace_bytes, stream),
        "cublasLtMatmul");
}

}  // namespace roofline::cuda::kernels
