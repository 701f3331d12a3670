#include "roofline/measure/cuda/loader.hpp"

#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

#include <fmt/format.h>

#include "roofline/measure/cuda/abi.h"

namespace roofline::measure {
namespace {

std::unexpected<Problem> unavailable(std::string text) {
    return std::unexpected(Problem{std::move(text), /*unavailable=*/true});
}

/// The driver answers for itself: CUDA's own runtime calls a missing driver "insufficient" and no GPU an error.
std::optional<Problem> driver_problem(const std::string& name) {
    void* driver = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return Problem{fmt::format("cuda: no NVIDIA driver here ({} is not found)", name), true};
    using Init = int (*)(unsigned);
    const auto init = reinterpret_cast<Init>(::dlsym(driver, "cuInit"));
    if (init == nullptr) return Problem{fmt::format("cuda: {} is no NVIDIA driver: it has no cuInit", name), true};
    constexpr int no_device = 100;
    constexpr int driver_mismatch = 803;
    const int status = init(0);
    if (status == 0) return std::nullopt;
    if (status == no_device) return Problem{"cuda: there is an NVIDIA driver here, but no GPU that it shows", true};
    if (status == driver_mismatch)
        return Problem{"cuda: the NVIDIA driver of the system and libcuda.so.1 are of different versions", true};
    return Problem{fmt::format("cuda: the NVIDIA driver does not start (cuInit gave {})", status), true};
}

}  // namespace

CudaPlaces usual_cuda_places() {
    CudaPlaces places;
    if (const char* named = std::getenv("ROOFLINE_CUDA_PLUGIN"); named != nullptr && *named != '\0') {
        places.plugins.emplace_back(named);
        return places;
    }
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {"roofline_cuda.so", "../lib/roofline/roofline_cuda.so", "../cuda/roofline_cuda.so"})
        places.plugins.push_back((folder / place).lexically_normal().string());
    return places;
}

Result<CudaBackend> CudaBackend::load(const CudaPlaces& places) {
    if (auto problem = driver_problem(places.driver)) return std::unexpected(std::move(*problem));
    std::error_code ignored;
    for (const std::string& file : places.plugins) {
        if (!std::filesystem::exists(file, ignored)) continue;
        void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return unavailable(fmt::format("cuda: the plugin does not load: {}", ::dlerror()));
        using Offer = const roofline_cuda_backend* (*)();
        const auto offer = reinterpret_cast<Offer>(::dlsym(library, "roofline_cuda"));
        if (offer == nullptr) return unavailable(fmt::format("{}: is no plugin of this program", file));
        return wrap(offer(), file);
    }
    if (places.plugins.size() == 1)
        return unavailable(fmt::format("cuda: there is no plugin at {}", places.plugins.front()));
    return unavailable(
        "cuda: the plugin roofline_cuda.so is not beside this program; script/cuda builds it where nvcc is");
}

Result<CudaBackend> CudaBackend::wrap(const roofline_cuda_backend* backend, std::string_view file) {
    if (backend == nullptr) return unavailable(fmt::format("{}: offers no backend", file));
    if (backend->version != roofline_cuda_version)
        return unavailable(fmt::format("{}: is of version {}, but this program speaks version {}; build both together",
                                       file, backend->version, static_cast<int>(roofline_cuda_version)));
    if (backend->call == nullptr) return fail(fmt::format("{}: offers nothing to call", file));
    return CudaBackend(backend, std::string(file));
}

Result<io::Json> CudaBackend::call(const io::Json& request, const Progress& progress) const {
    const auto forward = [](void* context, const char* line) {
        const auto& listener = *static_cast<const Progress*>(context);
        if (listener && line != nullptr) listener(line);
    };
    const std::string text = request.dump();
    // The plugin only hands the pointer back.
    const char* answer = backend_->call(text.c_str(), forward, const_cast<Progress*>(&progress));
    if (answer == nullptr) return fail(fmt::format("{}: gave no answer", file_));
    auto json = io::parse_json(answer, file_);
    if (!json) return std::unexpected(json.error());
    if (!json->is_object()) return fail(fmt::format("{}: answered {}, expected an object", file_, io::describe(*json)));
    if (const auto problem = json->find("problem"); problem != json->end()) {
        const auto away = json->find("unavailable");
        return std::unexpected(
            Problem{fmt::format("cuda: {}", problem->is_string() ? problem->get<std::string>() : problem->dump()),
                    away != json->end() && away->is_boolean() && away->get<bool>()});
    }
    return *std::move(json);
}

Result<std::optional<int>> cuda_index(std::string_view device) {
    if (device != "cuda" && !device.starts_with("cuda:")) return std::optional<int>();
    if (device == "cuda") return std::optional<int>(0);
    const std::string_view digits = device.substr(5);
    int index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index < 0)
        return fail(fmt::format("--device {}: expected cuda:0, cuda:1 ...", device));
    return std::optional<int>(index);
}

}  // namespace roofline::measure
