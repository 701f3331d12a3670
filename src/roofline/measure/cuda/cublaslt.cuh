// cuBLASLt, opened when it is wanted: a product D = A^T B of one type, with the algorithms its heuristic offers. Both
// operands lie with the inner dimension contiguous, the one layout that every type supports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roofline/measure/cuda/operands.cuh"

namespace roofline::probe {

/// What is multiplied, what comes out, and how it is added up.
struct ProductType {
    const char* name = "";  // bf16
    Numbers in = Numbers::bf16;
    Numbers out = Numbers::bf16;
    double tolerance = 0.0;  // of norm(out - right) / norm(right) over sampled entries
    const char* how = "";
};

struct ProductShape {
    int m = 0;
    int n = 0;
    int k = 0;
    double flops() const { return 2.0 * m * n * k; }  // a multiply-add is two
};

/// Nothing where the library is missing or too old; `why` says it in one line.
bool cublaslt_is_there(std::string& why);

class Product {
  public:
    Product(const ProductType& type, const ProductShape& shape, const void* a, const void* b, void* d,
            Buffer& workspace, int algorithms);
    ~Product();
    Product(Product&&) noexcept;

    int algorithms() const;
    /// Queues one product; throws what the library refuses.
    void launch(int algorithm, cudaStream_t stream) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace roofline::probe
