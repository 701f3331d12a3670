#include "roofline/bench/library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

namespace roofline::bench {

Result<Library> Library::open(std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return Library(handle);
    }
    return std::unexpected(Problem{fmt::format("{} is not installed", *names.begin()), true});
}

Result<Library> Library::open(const std::string& path) {
    if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle);
    const char* reason = ::dlerror();
    return fail(fmt::format("{}: cannot be loaded: {}", path, reason != nullptr ? reason : "no reason given"));
}

void* Library::symbol(const char* name) const {
    return ::dlsym(handle_, name);
}

}  // namespace roofline::bench
