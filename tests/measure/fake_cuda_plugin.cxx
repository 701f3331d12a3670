// A plugin without CUDA, and a driver without a GPU in the same file: what the loader looks for, made to say what a test
// wants through the environment. Not a .cpp, because those are linked into the tests themselves.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "roofline/measure/cuda/abi.h"

namespace {

int number(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : otherwise;
}

/// Says the request back, or what the file says that a test names.
const char* call(const char* request, void (*progress)(void*, const char*), void* context) {
    static std::string answer;
    if (progress != nullptr) progress(context, "half-way");
    if (const char* heard = std::getenv("FAKE_CUDA_HEARD")) std::ofstream(heard, std::ios::app) << request << '\n';
    // Ctrl-C while kernels run: a request of this kind is answered all the same, as it is by a GPU.
    const char* stopped = std::getenv("FAKE_CUDA_INTERRUPT");
    if (stopped != nullptr && std::string(request).find(stopped) != std::string::npos) std::raise(SIGINT);
    if (const char* file = std::getenv("FAKE_CUDA_ANSWER")) {
        std::ifstream stream(file);
        answer.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
        return answer.c_str();
    }
    answer = std::string(R"({"heard": )") + request + "}";
    return answer.c_str();
}

roofline_cuda_backend backend = {roofline_cuda_version, call};

}  // namespace

extern "C" int cuInit(unsigned /*flags*/) {
    return number("FAKE_CUDA_INIT", 0);
}

extern "C" const roofline_cuda_backend* roofline_cuda(void) {
    backend.version = number("FAKE_CUDA_VERSION", roofline_cuda_version);
    return &backend;
}
