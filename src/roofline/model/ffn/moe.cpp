#include "roofline/model/ffn/moe.hpp"

#include "roofline/model/ffn/dense.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {

void Moe::lower(Lowering& to) const {
    const MoeShape& s = shape_;
    const int rows = to.tokens();
    if (s.dense_width > 0.0) {
        to.enter("ffn", Group::ffn);
        lower_dense(to, {.width = s.dense_width, .gated = s.gated},
                    {"gate_up", "activation", "down", Role::ffn_gate_up, Role::ffn_down}, false);
        for (int i = 0; i < s.extra_norms; ++i) to.norm("inner_norm", to.hidden(), to.norm_parameters(to.hidden()));
    }
    to.enter("ffn", Group::moe);
    Operator& router = to.product({.name = "router",
                                   .group = Group::moe,
                                   .role = Role::router,
                                   .rows = rows,
                                   .inner = to.hidden(),
                                   .cols = s.experts,
                                   .bias = s.bias ? s.experts : 0.0});
    if (s.router_parameters + s.extra_parameters > 0.0)
        to.attach(router, s.router_parameters + s.extra_parameters, Role::router);
    to.elementwise("choose", 5.0 * s.experts, s.experts, 2.0 * s.chosen, rows, Kind::select);

    const double inner = s.latent > 0.0 ? s.latent : to.hidden();
    if (s.latent > 0.0) {
        to.product({.name = "latent_down",
                    .group = Group::moe,
                    .role = Role::moe_latent,
                    .rows = rows,
                    .inner = to.hidden(),
                    .cols = s.latent});
    }
    const double cols = s.gated ? 2.0 * s.width : s.width;
    to.expert_product({.name = s.gated ? "experts.gate_up" : "experts.up",
                       .role = Role::expert_gate_up,
                       .inner = inner,
                       .cols = cols,
                       .bias = s.bias ? cols : 0.0,
                       .total = s.experts,
                       .chosen = s.chosen});
    const double flops = s.gated ? gated_activation_flops : plain_activation_flops;
    to.elementwise("experts.activation", flops * s.width * s.chosen, cols * s.chosen, s.width * s.chosen, rows);
    to.expert_product({.name = "experts.down",
                       .role = Role::expert_down,
                       .inner = s.width,
                       .cols = inner,
                       .bias = s.bias ? inner : 0.0,
                       .total = s.experts,
                       .chosen = s.chosen,
                       .input_per_expert = true});
    to.elementwise("experts.combine", 2.0 * inner * s.chosen, inner * s.chosen, inner, rows);
    if (s.latent > 0.0) {
        to.product({.name = "latent_up",
                    .group = Group::moe,
                    .role = Role::moe_latent,
                    .rows = rows,
                    .inner = s.latent,
                    .cols = to.hidden()});
    }
    if (s.shared_width > 0.0) {
        lower_dense(to, {.width = s.shared_width, .gated = s.gated},
                    {s.gated ? "shared.gate_up" : "shared.up", "shared.activation", "shared.down", Role::shared_gate_up,
                     Role::shared_down},
                    true);
        if (s.shared_gate) {
            to.product({.name = "shared.gate",
                        .group = Group::moe,
                        .role = Role::router,
                        .rows = rows,
                        .inner = to.hidden(),
                        .cols = 1.0});
        }
    }
}

std::string Moe::describe() const {
    const auto text = [](double value) { return std::to_string(static_cast<long long>(value)); };
    std::string result =
        "MoE, " + text(shape_.chosen) + " of " + text(shape_.experts) + " experts of " + text(shape_.width);
    if (shape_.shared_width > 0.0) result += ", shared of " + text(shape_.shared_width);
    if (shape_.dense_width > 0.0) result += ", beside a dense FFN of " + text(shape_.dense_width);
    return result;
}

}  // namespace roofline::model
