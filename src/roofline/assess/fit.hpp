// Constants of a formula from measurements: robust least squares on log(predicted / measured), in the logarithm of the
// constants, with a pull towards what is known from elsewhere. Deterministic: the same rows give the same digits.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::assess {

/// A launch of some class, and how often.
struct Call {
    const predict::KernelClass* kernel_class = nullptr;
    predict::Machine machine;
    predict::Kernel kernel;
    Engine engine = Engine::matrix;  // that runs it, in `type`
    DType type = DType::bf16;
    double count = 1.0;
    bool cold = false;         // operands were driven out of the cache first: all of them stream
    Level link = Level::peer;  // that the kernel's link bytes cross
};

/// What was timed: one launch or several of the same class.
struct Sample {
    std::span<const Call> calls;
    double seconds = 0.0;
    double weight = 1.0;  // as many rows as it counts for
};

using Constants = std::array<double, predict::max_constants>;

double predicted_seconds(std::span<const Call> calls, std::span<const double> constants);

Constants start_of(const predict::KernelClass& kernel_class);

/// Where the search begins. A level above may have left a constant where this one cannot see which way to go; then the
/// class's own start values are tried as well.
enum class Start { prior, prior_and_class };

/// `pull`: how strongly a constant is held near `prior`, in rows: a constant that is e times its prior costs as much as
/// a log error of `pull` in one row.
Constants fit(const predict::KernelClass& kernel_class, std::span<const Sample> samples, const Constants& prior,
              double pull, Start start = Start::prior);

}  // namespace roofline::assess
