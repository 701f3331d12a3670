#include "roofline/io/units.hpp"

#include <array>

namespace roofline::io {
namespace {

struct Unit {
    std::string_view name;
    Dimension dimension;
    double factor;
};

constexpr auto units = std::to_array<Unit>({
    {"FLOP/s", Dimension::flops_per_second, 1.0},
    {"MFLOP/s", Dimension::flops_per_second, 1e6},
    {"GFLOP/s", Dimension::flops_per_second, 1e9},
    {"TFLOP/s", Dimension::flops_per_second, 1e12},
    {"PFLOP/s", Dimension::flops_per_second, 1e15},
    {"OP/s", Dimension::flops_per_second, 1.0},
    {"MOP/s", Dimension::flops_per_second, 1e6},
    {"GOP/s", Dimension::flops_per_second, 1e9},
    {"TOP/s", Dimension::flops_per_second, 1e12},
    {"POP/s", Dimension::flops_per_second, 1e15},
    {"B/s", Dimension::bytes_per_second, 1.0},
    {"kB/s", Dimension::bytes_per_second, 1e3},
    {"MB/s", Dimension::bytes_per_second, 1e6},
    {"GB/s", Dimension::bytes_per_second, 1e9},
    {"TB/s", Dimension::bytes_per_second, 1e12},
    {"PB/s", Dimension::bytes_per_second, 1e15},
    {"GiB/s", Dimension::bytes_per_second, 1073741824.0},
    {"B", Dimension::bytes, 1.0},
    {"kB", Dimension::bytes, 1e3},
    {"KB", Dimension::bytes, 1e3},
    {"MB", Dimension::bytes, 1e6},
    {"GB", Dimension::bytes, 1e9},
    {"TB", Dimension::bytes, 1e12},
    {"KiB", Dimension::bytes, 1024.0},
    {"MiB", Dimension::bytes, 1048576.0},
    {"GiB", Dimension::bytes, 1073741824.0},
    {"TiB", Dimension::bytes, 1099511627776.0},
    {"W", Dimension::watts, 1.0},
    {"kW", Dimension::watts, 1e3},
    {"count", Dimension::count, 1.0},
});

}  // namespace

std::optional<double> unit_factor(std::string_view unit, Dimension dimension) {
    for (const Unit& known : units) {
        if (known.name == unit && known.dimension == dimension) return known.factor;
    }
    return std::nullopt;
}

std::string_view expected_units(Dimension dimension) {
    switch (dimension) {
        case Dimension::flops_per_second:
            return "FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, OP/s, GOP/s, TOP/s or POP/s";
        case Dimension::bytes_per_second:
            return "B/s, MB/s, GB/s, TB/s or GiB/s";
        case Dimension::bytes:
            return "B, MB, GB, TB, MiB or GiB";
        case Dimension::watts:
            return "W or kW";
        case Dimension::count:
            return "count";
    }
    return "";
}

}  // namespace roofline::io
