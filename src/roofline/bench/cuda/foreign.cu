// Loading libraries of others and asking them nicely.
#include <algorithm>
#include <cctype>
#include <dlfcn.h>
#include <map>
#include <string_view>

#include "roofline/bench/cuda/foreign.cuh"

namespace roofline::cuda::kernels {

namespace {

std::map<std::string, const roofline_cuda_kernel*>& loaded() {
    static std::map<std::string, const roofline_cuda_kernel*> by_name;
    return by_name;
}

void check(const roofline_cuda_kernel* kernel, const std::string& path) {
    if (kernel == nullptr) throw Failure{path + ": roofline_cuda_kernel_entry() returned nothing"};
    if (kernel->version != ROOFLINE_CUDA_KERNEL_VERSION) {
        throw Failure{path + ": version is " + std::to_string(kernel->version) + ", expected " +
                      std::to_string(ROOFLINE_CUDA_KERNEL_VERSION)};
    }
    if (kernel->name == nullptr || kernel->can_run == nullptr || kernel->launch == nullptr) {
        throw Failure{path + ": name, can_run or launch is missing"};
    }
    const std::string_view name = kernel->name;
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    });
    if (!plain) throw Failure{path + ": its name must be letters, digits, '-' and '_'"};
    if (name == "own" || name == "cublaslt" || name == "cudnn") {
        throw Failure{path + ": calls itself " + kernel->name + ", which is taken"};
    }
}

}  // namespace

const roofline_cuda_kernel* load_foreign(const std::string& path) {
    // Without a slash the loader would look among the system's libraries.
    void* library = dlopen((path.find('/') == std::string::npos ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Failure{std::string("the kernel does not load: ") + dlerror()};
    const auto entry =
        reinterpret_cast<const roofline_cuda_kernel* (*)()>(dlsym(library, "roofline_cuda_kernel_entry"));
    if (entry == nullptr) {
        throw Failure{path +
                      ": has no function roofline_cuda_kernel_entry (include/roofline_cuda_kernel.h says what it "
                      "returns)"};
    }
    const roofline_cuda_kernel* kernel = entry();
    check(kernel, path);
    const auto [known, fresh] = loaded().emplace(kernel->name, kernel);
    if (!fresh && known->second != kernel) throw Failure{path + ": calls itself " + kernel->name + ", as another does"};
    return kernel;
}

const roofline_cuda_kernel* foreign_named(const std::string& name) {
    const auto found = loaded().find(name);
    return found == loaded().end() ? nullptr : found->second;
}

ForeignRun::ForeignRun(const roofline_cuda_kernel& kernel, const roofline_cuda_shape& shape,
                       std::vector<roofline_cuda_operands> copies)
    : kernel_(kernel), shape_(shape), copies_(std::move(copies)) {
    if (kernel.can_run(&shape_) == 0) throw Failure{"the plugin does not run this shape"};
    for (const auto& operands : copies_) {
        prepared_.push_back(kernel.prepare != nullptr ? kernel.prepare(&shape_, &operands) : nullptr);
    }
    must(cudaDeviceSynchronize(), "preparing the plugin's kernel");
}

ForeignRun::~ForeignRun() {
    if (kernel_.release == nullptr) return;
    for (void* prepared : prepared_) kernel_.release(prepared);
}

void ForeignRun::launch(int copy, cudaStream_t stream) const {
    const auto index = static_cast<std::size_t>(copy);
    if (const int status = kernel_.launch(&shape_, &copies_[index], prepared_[index], stream); status != 0) {
        throw Failure{"the plugin's launch gave " + std::to_string(status)};
    }
}

}  // namespace roofline::cuda::kernels
