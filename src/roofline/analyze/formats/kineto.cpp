// PyTorch profiler traces (Kineto): Chrome trace JSON.
#include "roofline/analyze/format.hpp"

namespace roofline::analyze {
namespace {

bool recognises(std::string_view first_bytes) {
    return first_bytes.find("\"traceEvents\"") != std::string_view::npos;
}

Result<Analysis> read(Input& input, const Options&) {
    return fail(input.name() + ": PyTorch profiler traces are not read yet");
}

}  // namespace

Format kineto_format() {
    return {"PyTorch profiler trace", "kineto", recognises, read};
}

}  // namespace roofline::analyze
