#include "roofline/serve/http.hpp"

#include <dlfcn.h>
#include <filesystem>

#include <fmt/format.h>

namespace roofline::serve {

Result<std::unique_ptr<Http>> load_http(HttpSettings settings) {
    std::error_code error;
    const auto beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    for (const auto& path : {beside / "roofline_http.so", beside / "../lib/roofline/roofline_http.so"}) {
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) continue;
        using Make = Http* (*)(HttpSettings*);
        if (const auto make = reinterpret_cast<Make>(::dlsym(library, "roofline_http")))
            return std::unique_ptr<Http>(make(&settings));
    }
    return std::unexpected(Problem{fmt::format("{}: is not there, and `serve` needs it (built where cpp-httplib is "
                                               "installed)",
                                               (beside / "roofline_http.so").string()),
                                   true});
}

}  // namespace roofline::serve
