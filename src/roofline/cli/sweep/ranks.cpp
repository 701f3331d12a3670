#include "roofline/cli/sweep/ranks.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

#include <fmt/format.h>

namespace roofline::cli {
namespace {

int number_in_environment(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : otherwise;
}

/// Beside the program as it is built, in ../lib/roofline as it is installed.
void* open_plugin(std::string& tried) {
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const auto& path : {folder / "roofline_mpi.so", folder / "../lib/roofline/roofline_mpi.so"}) {
        // Open MPI loads parts of its own that expect to find its symbols.
        if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
        if (tried.empty()) tried = ::dlerror();
    }
    return nullptr;
}

}  // namespace

bool started_by_mpirun() {
    return number_in_environment("OMPI_COMM_WORLD_SIZE", 1) > 1;
}

int rank_of_environment() {
    return number_in_environment("OMPI_COMM_WORLD_RANK", 0);
}

std::size_t ranks_on_this_machine() {
    const int ranks = number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
    return ranks > 1 ? static_cast<std::size_t>(ranks) : 1;
}

Result<Ranks> Ranks::join() {
    Ranks ranks;
    if (!started_by_mpirun()) return ranks;
    std::string tried;
    void* library = open_plugin(tried);
    if (library == nullptr) {
        return std::unexpected(Problem{
            fmt::format("started by mpirun, but this program was built without MPI (Debian: libopenmpi-dev): {}",
                        tried),
            /*unavailable=*/true});
    }
    using Offer = const MpiCalls* (*)();
    const auto offer = reinterpret_cast<Offer>(::dlsym(library, "roofline_mpi"));
    const MpiCalls* calls = offer != nullptr ? offer() : nullptr;
    if (calls == nullptr || calls->version != mpi_calls_version)
        return fail("roofline_mpi.so: is of another version of this program");
    if (calls->start() != 0) return fail("mpirun: MPI cannot be started");
    ranks.calls_ = calls;
    ranks.rank_ = static_cast<std::size_t>(calls->rank());
    ranks.size_ = static_cast<std::size_t>(calls->size());
    return ranks;
}

void Ranks::send(std::string_view text) const {
    calls_->send(text.data(), text.size());
}

std::string Ranks::receive(std::size_t rank) const {
    std::string text(calls_->incoming(static_cast<int>(rank)), '\0');
    calls_->receive(static_cast<int>(rank), text.data(), text.size());
    return text;
}

void Ranks::finish() const {
    if (calls_ != nullptr) calls_->finish();
}

void Ranks::abandon(int exit_code) const {
    if (calls_ != nullptr) calls_->abandon(exit_code);
}

}  // namespace roofline::cli
