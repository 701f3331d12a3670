// Names of kernels as people would say them. PyTorch's element-wise kernels are one template with a functor that says
// what they do; everything else in the name is the compiler's business.
#include <array>
#include <cctype>

#include "roofline/analyze/counters.hpp"

namespace roofline::analyze {
namespace {

bool part_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Wrappers that say nothing about what is computed.
bool says_nothing(std::string_view word) {
    constexpr std::array<std::string_view, 8> wrappers = {"BinaryFunctor",   "AUnaryFunctor",          "BUnaryFunctor",
                                                          "gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_kernel",
                                                          "ReduceOp",        "TensorIteratorBase"};
    for (const std::string_view wrapper : wrappers) {
        if (word == wrapper) return true;
    }
    return false;
}

bool says_what(std::string_view word) {
    constexpr std::array<std::string_view, 6> endings = {"Functor",      "Ops",     "_kernel_cuda",
                                                         "_kernel_impl", "_kernel", "_cuda_out"};
    for (const std::string_view ending : endings) {
        if (word.size() > ending.size() && word.ends_with(ending)) return true;
    }
    return word.find("Functor_") != std::string_view::npos || word.find("FunctorOnSelf_") != std::string_view::npos;
}

/// The first word in the template's arguments that says what the kernel computes.
std::string_view purpose(std::string_view arguments) {
    std::size_t at = 0;
    while (at < arguments.size()) {
        if (!part_of_name(arguments[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < arguments.size() && part_of_name(arguments[end])) ++end;
        const std::string_view word = arguments.substr(at, end - at);
        if (says_what(word) && !says_nothing(word)) return word;
        at = end;
    }
    return {};
}

}  // namespace

std::string spoken_kernel_name(std::string_view name) {
    if (name.starts_with("void ")) name.remove_prefix(5);
    // "<unnamed>::" opens a bracket that is no template's.
    constexpr std::array<std::string_view, 2> unnamed = {"<unnamed>::", "(anonymous namespace)::"};
    std::string plain(name);
    for (const std::string_view word : unnamed) {
        for (std::size_t at = plain.find(word); at != std::string::npos; at = plain.find(word)) {
            plain.erase(at, word.size());
        }
    }
    const std::size_t end = plain.find_first_of("<(");
    std::string_view base = std::string_view(plain).substr(0, end);
    if (const std::size_t scope = base.rfind("::"); scope != std::string_view::npos) base.remove_prefix(scope + 2);
    while (base.ends_with(' ')) base.remove_suffix(1);
    if (base.empty()) return plain.empty() ? "(no name)" : plain.substr(0, 80);
    std::string result(base.substr(0, 80));
    if (end == std::string::npos || plain[end] != '<') return result;
    if (const std::string_view what = purpose(std::string_view(plain).substr(end)); !what.empty()) {
        result += "(" + std::string(what.substr(0, 60)) + ")";
    } else if (base == "Kernel2" || base == "Kernel") {  // CUTLASS: the template's argument is the name
        const std::string_view inner = std::string_view(plain).substr(end + 1);
        std::size_t stop = 0;
        while (stop < inner.size() && (part_of_name(inner[stop]) || inner[stop] == ':')) ++stop;
        if (stop > 0) result = std::string(inner.substr(0, std::min<std::size_t>(stop, 80)));
    }
    return result;
}

}  // namespace roofline::analyze
