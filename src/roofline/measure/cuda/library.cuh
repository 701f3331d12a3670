// Libraries that may not be there, opened when they are wanted: by their plain names first, as the loader finds them,
// then where CUDA is usually installed.
#pragma once

#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>
#include <string>
#include <vector>

#include "roofline/measure/cuda/frame.cuh"

namespace roofline::probe {

class Library {
  public:
    explicit Library(std::initializer_list<const char*> names) {
        std::vector<std::string> folders = {""};
        for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
            if (const char* home = std::getenv(variable)) folders.push_back(std::string(home) + "/lib64/");
        folders.emplace_back("/usr/local/cuda/lib64/");
        folders.emplace_back("/usr/local/cuda/lib/");
        folders.emplace_back("/opt/cuda/lib64/");
        for (const std::string& folder : folders) {
            for (const char* name : names) {
                handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
                if (handle_ != nullptr) return;
            }
        }
    }
    // Never closed: libraries of CUDA keep threads and contexts of their own.

    bool there() const { return handle_ != nullptr; }

    /// Empty where the library is of a version that has no such function.
    template <class Function>
    Function find(const char* name) const {
        return handle_ != nullptr ? reinterpret_cast<Function>(dlsym(handle_, name)) : nullptr;
    }

  private:
    void* handle_ = nullptr;
};

}  // namespace roofline::probe
