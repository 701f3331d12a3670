#include "fuzz/one_format.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return roofline::analyze::read_as("nsys", data, size);
}
