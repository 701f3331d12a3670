#include "roofline/model/ffn/moe.hpp"

#include <algorithm>

#include "roofline/model/deployment.hpp"
#include "roofline/model/ffn/dense.hpp"
#include "roofline/model/lowering.hpp"
#include "roofline/model/shares.hpp"

namespace roofline::model {
namespace {

/// F37: devices that a token is sent to, of those its experts are spread over: it goes to each once, however many of
/// its experts are there.
double destinations(const MoeShape& s, double ranks) {
    double elsewhere = 1.0;  // chance that none of the chosen experts is on a certain device
    const double here = s.experts / ranks;
    for (double i = 0.0; i < s.chosen; ++i) elsewhere *= std::max(0.0, (s.experts - here - i) / (s.experts - i));
    return ranks * (1.0 - elsewhere);
}

/// Groups that attend apart bring their tokens to where the experts are. All to all: each token goes to the devices
/// that hold its experts, and their sums come back. Gathered, or where experts are cut: everybody gets every token.
void send_tokens(Lowering& to, const MoeShape& s, double inner, bool there) {
    const Deployment& spread = to.deployment();
    if (spread.groups <= 1.0) return;
    const bool everybody = spread.expert_cut() > 1.0 || spread.exchange == ExpertExchange::gather;
    const double bytes = there && spread.dispatch ? inner * bits(*spread.dispatch) / 8.0 : to.stream_bytes(inner);
    if (everybody) {
        to.communicate(there ? "gather_tokens" : "scatter_tokens",
                       there ? Collective::all_gather : Collective::reduce_scatter, spread.expert_group(),
                       bytes * spread.groups, to.tokens());
        return;
    }
    // The tensor ranks of a group have the same tokens and share the sending.
    const double copies = destinations(s, spread.experts) / spread.tensor * spread.imbalance;
    to.communicate(there ? "dispatch" : "return", Collective::all_to_all, spread.expert_group(), bytes * copies,
                   to.tokens());
}

}  // namespace

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

    const Deployment& spread = to.deployment();
    const double held = s.held > 0.0 ? s.held : s.experts;
    // F36: every token of every group goes to `chosen` experts, of which this device has its share.
    const double slots = s.chosen * spread.groups / spread.experts * spread.imbalance;
    const double inner = s.latent > 0.0 ? s.latent : to.hidden();
    if (s.latent > 0.0) {
        to.product({.name = "latent_down",
                    .group = Group::moe,
                    .role = Role::moe_latent,
                    .rows = rows,
                    .inner = to.hidden(),
                    .cols = s.latent});
    }
    send_tokens(to, s, inner, true);
    const double cols = s.gated ? 2.0 * s.width : s.width;
    to.expert_product({.name = s.gated ? "experts.gate_up" : "experts.up",
                       .role = Role::expert_gate_up,
                       .inner = inner,
                       .cols = cols,
                       .bias = s.bias ? cols : 0.0,
                       .total = s.experts,
                       .chosen = s.chosen,
                       .held = held,
                       .slots = slots});
    const double flops = s.gated ? gated_activation_flops : plain_activation_flops;
    to.elementwise("experts.activation", flops * s.width * slots, cols * slots, s.width * slots, rows);
    to.expert_product({.name = "experts.down",
                       .role = Role::expert_down,
                       .inner = s.width,
                       .cols = inner,
                       .bias = s.bias ? inner : 0.0,
                       .total = s.experts,
                       .chosen = s.chosen,
                       .held = held,
                       .slots = slots,
                       .input_per_expert = true});
    to.elementwise("experts.combine", 2.0 * inner * slots, inner * slots, std::min(1.0, slots) * inner, rows);
    send_tokens(to, s, inner, false);
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
    std::string result =
        "MoE, " + whole(shape_.chosen) + " of " + whole(shape_.experts) + " experts of " + whole(shape_.width);
    if (shape_.shared_width > 0.0) result += ", shared of " + whole(shape_.shared_width);
    if (shape_.dense_width > 0.0) result += ", beside a dense FFN of " + whole(shape_.dense_width);
    return result;
}

Result<BlockPtr> Moe::on_rank(const Deployment& deployment) const {
    MoeShape cut = shape_;
    Shares shares;
    cut.held = cut.experts + deployment.redundant_experts;
    shares.even(cut.held, deployment.experts, "experts");
    shares.even(cut.width, deployment.expert_cut(), "columns of an expert");
    shares.even(cut.shared_width, deployment.tensor, "columns of the shared expert");
    shares.even(cut.dense_width, deployment.tensor, "columns of the FFN");
    return shares.block<Moe>(cut);
}

}  // namespace roofline::model
