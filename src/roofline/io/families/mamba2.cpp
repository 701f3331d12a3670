// Mamba-2: a state space in every layer and nothing else.
#include "roofline/model/attention/mamba2.hpp"

#include <cmath>

#include "roofline/io/family.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture, true);
    const double head_dim = config.size_or("head_dim", 64.0);
    const model::Mamba2Shape shape{
        .heads = config.size_or("num_heads", config.size_or("expand", 2.0) * architecture.hidden / head_dim),
        .head_dim = head_dim,
        .groups = config.size_or("n_groups", 1.0),
        .state_size = config.size_or("state_size", 128.0),
        .convolution = config.size_or("conv_kernel", 4.0),
        .chunk = config.size_or("chunk_size", 256.0),
        .projection_bias = config.flag("use_bias", false),
        .convolution_bias = config.flag("use_conv_bias", true)};
    if (shape.heads != std::floor(shape.heads)) config.complain("head_dim", "does not divide expand x hidden_size");
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i) {
        add_layer(architecture, "mamba", [&] { return pre_norm_layer(block<model::Mamba2>(shape), nullptr); });
    }
}

}  // namespace

extern const Family mamba2_family;
const Family mamba2_family{{"mamba2"}, read};

}  // namespace roofline::io
