// Numbers for people: four significant digits, a unit with the right letters (GB is 1e9, GiB 2^30), never "1.2e-05 s".
#pragma once

#include <string>
#include <string_view>

#include "roofline/core/dtype.hpp"
#include "roofline/core/quantity.hpp"

namespace roofline::render {

std::string with_unit(double value, std::string_view unit);  // 1.5e10, "B" -> "15.00 GB"
std::string time(Seconds seconds);                           // "4.480 ms"
std::string bytes(Bytes bytes);                              // "15.01 GB"
std::string flops(Flops flops);                              // "60.00 GFLOP"
std::string_view peak_unit(DType type);                      // "FLOP/s"; operations on integers are "OP/s"
std::string_view peak_unit(std::string_view figure);         // the same of "matrix.int8", "matrix.int8.sustained"
std::string intensity(FlopsPerByte value);                   // "295.3", "inf"
std::string percent(double fraction);                        // "12.3%"
std::string plain(double value);                             // four digits, thousands separated: "62,060"
std::string grouped(double value);                           // all digits, thousands separated: "8,030,261,248"

}  // namespace roofline::render
