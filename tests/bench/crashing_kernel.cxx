// A plugin that runs everything, into nowhere.
#include <roofline_kernel.h>

namespace {

int can_run(const roofline_shape*) {
    return 1;
}

int run(const roofline_shape*, const roofline_operands*, void*) {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
    return 0;
}

}  // namespace

extern "C" const roofline_kernel* roofline_kernel_entry() {
    static const roofline_kernel kernel = {
        ROOFLINE_KERNEL_VERSION, "crashing", nullptr, can_run, nullptr, run, nullptr};
    return &kernel;
}
