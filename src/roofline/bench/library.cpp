#include "roofline/bench/library.hpp"

#include <dlfcn.h>
#include <string_view>

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
    const char* said = ::dlerror();
    std::string_view reason = said != nullptr ? said : "no reason given";
    if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);  // named once is enough
    return fail(fmt::format("{}: cannot be loaded: {}", path, reason));
}

void* Library::symbol(const char* name) const {
    return ::dlsym(handle_, name);
}

}  // namespace roofline::bench
