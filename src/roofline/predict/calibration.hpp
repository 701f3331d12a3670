// Constants of the kernel classes, as fitted to measurements: per device where there are some, per generation and over
// all devices for those without.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {

/// Whose rows a fit rests on.
enum class Scope { device, generation, everything };
std::string_view name(Scope scope);

struct Fitted {
    const KernelClass* kernel_class = nullptr;
    std::string type;   // number type of the weights or of the computation: "bf16", "fp8_block"
    std::string stack;  // the software that was timed: "trtllm", "cudnn_attention"
    Scope scope = Scope::everything;
    std::string of;                    // the device's or generation's name
    std::vector<std::string> vendors;  // of a fit over all devices: who made those that were measured
    std::array<double, max_constants> constants{};
    // Eight of ten measurements that the fit had not seen lay between these multiples of what it expected. For a
    // generation or all devices: measurements on a device the fit had not seen.
    double low = 1.0;
    double high = 1.0;
    // Of a step: what the kernels that everyone writes anew took other authors, as multiples of what they took this
    // one.
    double authors_low = 1.0;
    double authors_high = 1.0;
    double error = 0.0;  // mean |expected / measured - 1| over the same measurements
    double rows = 0.0;
};

/// Constants for one class on one device, and how far they were carried.
struct Choice {
    const KernelClass* kernel_class = nullptr;
    std::array<double, max_constants> constants{};
    double low = 1.0;
    double high = 1.0;
    double authors_low = 1.0;  // 1: these are the very author's constants
    double authors_high = 1.0;
    std::string source;  // "h200-sxm", "hopper, transferred", "all devices, transferred", "assumed"
    bool own = false;    // measured on this very device
    std::size_t distance = std::numeric_limits<std::size_t>::max();  // from what was asked for; the largest: assumed
};

class Calibration {
  public:
    void add(Fitted fitted) { fits_[fitted.kernel_class].push_back(std::move(fitted)); }
    /// Of one class, in the order they were added.
    const std::vector<Fitted>& fits(const KernelClass& kernel_class) const;
    /// Of all classes, by the classes' names.
    std::vector<Fitted> all() const;

    /// The nearest fit there is: the type itself before a relative of it; kernels of the `stacks` asked for before
    /// those of the same make, before any others; then own device before its generation before all devices. What was
    /// measured on other vendors' devices alone comes after all others of its type. Without any, the class's start
    /// values.
    Choice choose(const KernelClass& kernel_class, std::string_view type, std::span<const std::string> stacks,
                  const Device& device) const;

  private:
    std::map<const KernelClass*, std::vector<Fitted>> fits_;
};

/// Types whose kernels behave alike, nearest first, the type itself leading: nvfp4 -> mxfp4 -> fp8_block -> fp8
/// -> bf16.
std::vector<std::string_view> related_types(std::string_view type);

}  // namespace roofline::predict
