#include "roofline/decide/emit.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace roofline::decide {

#define ROOFLINE_ENTRY(name) Result<std::string> name##_emit(const std::vector<Server>& servers);
#include "roofline/decide/emit.inc"
#undef ROOFLINE_ENTRY

namespace {

struct Emitter {
    std::string_view name;
    Result<std::string> (*emit)(const std::vector<Server>& servers);
};

constexpr auto registered = std::to_array<Emitter>({
#define ROOFLINE_ENTRY(name) {#name, &name##_emit},
#include "roofline/decide/emit.inc"
#undef ROOFLINE_ENTRY
});

}  // namespace

double Server::sequences_of_a_group() const {
    return std::ceil(sequences / deployment.groups);
}

double Server::nodes() const {
    return deployment.node > 0.0 ? std::ceil(deployment.replica_devices() / deployment.node) : 1.0;
}

std::vector<Server> servers_of(const Deploy& deploy, const PlanQuestion& question, const std::string& model) {
    const Choices& choices = question.choices;
    const predict::TypeChoice& types = choices.types[deploy.main.layout.types];
    const predict::Workload& workload = question.model.workload;
    Server server;
    server.model = model;
    server.longest = std::max(choices.longest, workload.cached + workload.prompt + workload.generate);
    server.utilisation = choices.utilisation;
    if (const auto& memory = question.model.memory)
        server.utilisation = memory->utilisation.value_or(memory->rules.utilisation.value);
    server.experts = has_experts(question.model);
    if (types.weights != nullptr) server.weights = types.weights->name;
    if (types.kv != nullptr) server.kv = types.kv->name;
    const bool mixed = deploy.prefill && deploy.prefill->layout.offer != deploy.main.layout.offer;
    std::vector<Server> servers;
    if (deploy.prefill) {
        if (mixed) server.device = choices.offers[deploy.prefill->layout.offer].device.name;
        server.part = Part::prompts;
        server.deployment = deploy.prefill->layout.deployment;
        server.replicas = deploy.prefill->replicas;
        server.step_tokens = deploy.prefill->step;
        // As many prompts as a step holds, and as many again that wait for their transfer.
        const double prompts = std::ceil(deploy.prefill->step / workload.prompt);
        server.sequences = 2.0 * prompts * server.deployment.groups * server.deployment.pipeline;
        servers.push_back(server);
    }
    server.part = deploy.prefill ? Part::outputs : Part::whole;
    server.deployment = deploy.main.layout.deployment;
    server.replicas = deploy.main.replicas;
    server.sequences = deploy.main.batch;
    server.step_tokens = deploy.main.step;
    if (mixed) server.device = choices.offers[deploy.main.layout.offer].device.name;
    if (deploy.main.layout.speculates) {
        server.drafted = choices.speculation.tokens;
        server.draft = question.draft;
    }
    servers.push_back(server);
    return servers;
}

std::vector<std::string> emitters() {
    std::vector<std::string> names;
    for (const Emitter& emitter : registered) names.emplace_back(emitter.name);
    return names;
}

Result<std::string> emit(std::string_view engine, const std::vector<Server>& servers) {
    for (const Emitter& emitter : registered) {
        if (emitter.name == engine) return emitter.emit(servers);
    }
    return fail(fmt::format("--emit: found \"{}\", expected one of {}", engine, fmt::join(emitters(), ", ")));
}

std::string as_command(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        const bool flag = word.starts_with("--");
        text += text.empty() ? "" : flag ? " \\\n  " : " ";
        const bool plain = word.find_first_of(" {}\"$") == std::string::npos;
        text += plain ? word : "'" + word + "'";
    }
    return text + "\n";
}

std::string heading(const Server& server, double copies) {
    std::string text;
    if (server.part != Part::whole) text += server.part == Part::prompts ? "# prompts\n" : "# outputs\n";
    if (!server.device.empty()) text += fmt::format("# on {}\n", server.device);
    if (server.drafted > 0.0 && server.draft.empty())
        text +=
            "# guesses come from the checkpoint's own heads (MTP); for another draft, name it beside the number of "
            "tokens\n";
    if (copies > 1.0) text += fmt::format("# start {:.0f} of these behind a load balancer\n", copies);
    if (server.nodes() > 1.0) text += fmt::format("# one spans {:.0f} nodes\n", server.nodes());
    if (!server.weights.empty() && !quantised_while_loading(server.weights))
        text += fmt::format("# MODEL must be a checkpoint in {}\n", server.weights);
    return text;
}

bool quantised_while_loading(std::string_view format) {
    return format == "fp8" || format == "fp8_e4m3" || format == "bf16" || format == "fp16";
}

}  // namespace roofline::decide
