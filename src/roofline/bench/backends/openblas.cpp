// OpenBLAS, where libopenblas is installed: products in fp32.
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/library.hpp"

namespace roofline::bench {
namespace {

// The C interface of BLAS: enumerations as their numbers.
constexpr int row_major = 101;
constexpr int plain = 111;
constexpr int transposed = 112;

struct Functions {
    void (*gemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
    void (*gemv)(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
    void (*set_threads)(int);
    char* (*config)();
};

class OpenBlasKernel final : public Kernel {
  public:
    OpenBlasKernel(const Functions& functions, Operands& operands) : functions_(functions), operands_(operands) {}

    void run(std::size_t copy) override {
        const Task& task = operands_.task;
        const auto m = static_cast<int>(task.m);
        const auto n = static_cast<int>(task.n);
        const auto k = static_cast<int>(task.k);
        const auto* weights = static_cast<const float*>(operands_.weights[copy].view().values);
        if (m == 1) {
            functions_.gemv(row_major, plain, n, k, 1.0F, weights, k, operands_.x.data(), 1, 0.0F, operands_.y.data(),
                            1);
        } else {
            functions_.gemm(row_major, plain, transposed, m, n, k, 1.0F, operands_.x.data(), k, weights, k, 0.0F,
                            operands_.y.data(), n);
        }
    }

  private:
    const Functions& functions_;
    Operands& operands_;
};

class OpenBlas final : public Backend {
  public:
    std::string name() const override { return "openblas"; }
    std::string describe() const override { return functions_.config != nullptr ? functions_.config() : "OpenBLAS"; }

    Result<void> available() override {
        if (found_) return {};
        // It would start a thread for every processor when it is loaded, and where a limit forbids that it sends the
        // program SIGINT. It gets as many as were asked for in prepare, when ours could be started.
        ::setenv("OPENBLAS_NUM_THREADS", "1", 0);
        const auto library = Library::open({"libopenblas.so.0", "libopenblas.so"});
        if (!library) return std::unexpected(library.error());
        found_ = library->find("cblas_sgemm", functions_.gemm) && library->find("cblas_sgemv", functions_.gemv) &&
                 library->find("openblas_set_num_threads", functions_.set_threads) &&
                 library->find("openblas_get_config", functions_.config);
        if (!found_) return std::unexpected(Problem{"libopenblas lacks the functions that are needed", true});
        return {};
    }

    std::optional<std::string> refuses(const Task& task) const override {
        if (task.kind != TaskKind::product) return "products only";
        if (task.weights != WeightFormat::fp32) return "fp32 only";
        if (task.experts > 1) return "no products of several experts";
        return std::nullopt;
    }

    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads& threads) override {
        functions_.set_threads(threads.count());
        // Zero times NaN is NaN, and some versions do multiply what beta = 0 should overwrite.
        std::fill(operands.y.begin(), operands.y.end(), 12345.0F);
        return std::make_unique<OpenBlasKernel>(functions_, operands);
    }

  private:
    Functions functions_{};
    bool found_ = false;
};

}  // namespace

std::unique_ptr<Backend> openblas_backend() {
    return std::make_unique<OpenBlas>();
}

}  // namespace roofline::bench
