#include "roofline/ask/deployment_options.hpp"

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

constexpr double most_devices = 100'000.0;

Result<double> parse_share(const char* option, const std::string& text) {
    const auto value = text == "0" ? Result<double>(0.0) : parse_positive(option, text);
    if (!value) return value;
    if (*value > 1.0)
        return fail(fmt::format("{}: found \"{}\", expected a share from 0 to 1", option, io::printable(text)));
    return value;
}

}  // namespace

void DeploymentOptions::add_to(Form& form) {
    const char* group = "Deployment";
    const auto number = [&](const char* names, std::string& target, const char* help) -> Option& {
        return form.text(names, target, help).in(group).of_type("N");
    };
    number("--tp,--tensor-parallel-size", tensor, "Devices that share every head and matrix").shows_default();
    number("--pp,--pipeline-parallel-size", pipeline, "Stages that hold consecutive layers").shows_default();
    number("--dp,--data-parallel-size", data,
           "Copies that serve their own sequences; with spread experts, attention groups that share the experts")
        .shows_default();
    number("--cp,--context-parallel-size", context, "Devices that share every sequence").shows_default();
    form.flag("--enable-expert-parallel", spread_experts, "Whole experts on each device instead of a slice of all")
        .in(group);
    number("--ep,--expert-parallel-size", experts,
           "Devices that whole experts are spread over; the rest of tensor x data cuts each of them");
    form.flag("--enable-attention-dp", attention_data_parallel,
              "The tensor ranks attend to their own sequences and share only the experts")
        .in(group);
    form.flag("--sequence-parallel", sequence_parallel, "Norms and sums are split by tokens over the tensor ranks")
        .in(group);
    number("--devices,--num-devices", devices, "Devices there are: a deployment that needs more is refused");
    number("--node-size,--devices-per-node", node, "Devices in a node (default: what the peer link joins, or 8)");
    form.text("--expert-imbalance", imbalance, "Tokens of the busiest expert device over the mean")
        .in(group)
        .shows_default()
        .of_type("X");
    number("--redundant-experts", redundant, "Copies of busy experts, in all").shows_default();
    form.text("--expert-exchange", exchange,
              "How tokens of attention groups reach spread experts: gather (every token on every device) or all-to-all "
              "(each where its experts are); default: as the engine does, without one all-to-all")
        .in(group)
        .of_type("WAY");
    form.text("--dispatch-dtype", dispatch, "In what tokens travel to experts, e.g. fp8 (default: as they are)")
        .in(group)
        .of_type("TYPE");
    form.text("--overlap", overlap, "Share of communication that hides behind computing")
        .in(group)
        .shows_default()
        .of_type("SHARE");
    form.flag("--two-batch-overlap", two_batches, "Half a batch computes while the other half communicates").in(group);
    form.text("--offload-weights", host_weights, "Share of the layers' weights kept in the host's memory")
        .in(group)
        .shows_default()
        .of_type("SHARE");
    form.text("--offload-kv", host_kv, "Share of the KV cache kept in the host's memory")
        .in(group)
        .shows_default()
        .of_type("SHARE");
}

Result<model::Deployment> DeploymentOptions::load(const Device& device) const {
    model::Deployment result;
    double groups = 1.0;
    const auto degree = [](const char* option, const std::string& text, double& target) -> Result<void> {
        const auto value = parse_whole(option, text, 1.0, most_devices);
        if (!value) return std::unexpected(value.error());
        target = *value;
        return {};
    };
    for (const auto& [option, text, target] :
         {std::tuple{"--tp", &tensor, &result.tensor}, std::tuple{"--pp", &pipeline, &result.pipeline},
          std::tuple{"--dp", &data, &groups}, std::tuple{"--cp", &context, &result.context}}) {
        if (auto done = degree(option, *text, *target); !done) return std::unexpected(done.error());
    }
    const bool spread = spread_experts || (!experts.empty() && experts != "1") || attention_data_parallel;
    if (attention_data_parallel) {
        result.groups = result.tensor * groups;
        result.tensor = 1.0;
    } else {
        (spread ? result.groups : result.replicas) = groups;
    }
    if (spread_experts) result.experts = result.expert_ranks();
    if (!experts.empty()) {
        if (auto done = degree("--ep", experts, result.experts); !done) return std::unexpected(done.error());
    }
    const auto extra = parse_whole("--redundant-experts", redundant, 0.0, most_devices);
    if (!extra) return std::unexpected(extra.error());
    result.redundant_experts = *extra;
    const auto uneven = parse_positive("--expert-imbalance", imbalance);
    if (!uneven) return std::unexpected(uneven.error());
    if (*uneven < 1.0 || *uneven > 1000.0)
        return fail(fmt::format("--expert-imbalance: found {}, expected 1 to 1000", imbalance));
    result.imbalance = *uneven;
    if (!dispatch.empty()) {
        const auto type = parse_dtype(dispatch);
        if (!type)
            return fail(fmt::format("--dispatch-dtype: found \"{}\", expected fp8 or bf16", io::printable(dispatch)));
        result.dispatch = *type;
    }
    for (const auto way : {model::ExpertExchange::gather, model::ExpertExchange::all_to_all}) {
        if (exchange == model::name(way)) result.exchange = way;
    }
    if (!exchange.empty() && !result.exchange)
        return fail(
            fmt::format("--expert-exchange: found \"{}\", expected gather or all-to-all", io::printable(exchange)));
    for (const auto& [option, text, target] : {std::tuple{"--overlap", &overlap, &result.overlap},
                                               std::tuple{"--offload-weights", &host_weights, &result.host_weights},
                                               std::tuple{"--offload-kv", &host_kv, &result.host_kv}}) {
        const auto share = parse_share(option, *text);
        if (!share) return std::unexpected(share.error());
        *target = *share;
    }
    result.sequence_parallel = sequence_parallel && result.tensor > 1.0;
    result.two_batches = two_batches;

    result.node = node_size(device);
    if (!node.empty()) {
        if (auto done = degree("--node-size", node, result.node); !done) return std::unexpected(done.error());
    }
    if (result.replica_devices() <= result.node) result.node = 0.0;  // nothing leaves the node
    if ((result.host_weights > 0.0 || result.host_kv > 0.0) && device.bandwidth(Level::host) == nullptr)
        return fail(fmt::format("--offload-weights, --offload-kv: {} states no link to a host", device.name));
    if (!devices.empty()) {
        double there = 0.0;
        if (auto done = degree("--devices", devices, there); !done) return std::unexpected(done.error());
        if (result.devices() > there) {
            return fail(fmt::format("--devices: {} were named, but {} needs {:.0f}", devices, describe(result),
                                    result.devices()));
        }
    }
    return result;
}

}  // namespace roofline::ask
