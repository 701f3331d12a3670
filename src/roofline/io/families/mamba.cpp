// Mamba and Falcon-Mamba: a selective scan in every layer and nothing else.
#include <cmath>

#include "roofline/io/family.hpp"
#include "roofline/model/attention/mamba1.hpp"

namespace roofline::io {
namespace {

void read(Fields& config, model::Architecture& architecture) {
    read_trunk(config, architecture, true);
    const Json* rank = config.find("time_step_rank");
    const bool automatic = rank == nullptr || rank->is_string();
    const model::Mamba1Shape shape{
        .inner = config.has("intermediate_size") ? config.size("intermediate_size")
                                                 : config.size_or("expand", 2.0) * architecture.hidden,
        .state_size = config.size_or("state_size", 16.0),
        .step_rank = automatic ? std::ceil(architecture.hidden / 16.0) : config.size("time_step_rank"),
        .convolution = config.size_or("conv_kernel", 4.0),
        .projection_bias = config.flag("use_bias", false),
        .convolution_bias = config.flag("use_conv_bias", true)};
    const std::size_t layers = read_layer_count(config);
    for (std::size_t i = 0; i < layers && !config.failed(); ++i)
        add_layer(architecture, "mamba", [&] { return pre_norm_layer(block<model::Mamba1>(shape), nullptr); });
}

}  // namespace

extern const Family mamba_family;
const Family mamba_family{{"mamba", "falcon_mamba"}, read};

}  // namespace roofline::io
