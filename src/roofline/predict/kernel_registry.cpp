#include <array>

#include "roofline/predict/kernels/kernel.hpp"

namespace roofline::predict {

#define ROOFLINE_ENTRY(name) extern const KernelClass name##_class;
#include "roofline/predict/kernels.inc"
#undef ROOFLINE_ENTRY

std::span<const KernelClass* const> kernel_classes() {
    static const auto classes = std::to_array<const KernelClass*>({
#define ROOFLINE_ENTRY(name) &name##_class,
#include "roofline/predict/kernels.inc"
#undef ROOFLINE_ENTRY
    });
    return classes;
}

const KernelClass* kernel_class(std::string_view name) {
    for (const KernelClass* candidate : kernel_classes()) {
        if (candidate->name == name) return candidate;
    }
    return nullptr;
}

}  // namespace roofline::predict
