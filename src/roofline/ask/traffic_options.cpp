#include "roofline/ask/traffic_options.hpp"

#include <vector>

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {
namespace {

/// Nothing, or a time with its unit.
Result<double> parse_host_time(const char* option, const std::string& text) {
    return text == "0" ? Result<double>(0.0) : parse_duration(option, text);
}

Result<double> parse_part(const char* option, const std::string& text) {
    if (text == "0") return 0.0;
    const auto value = parse_positive(option, text);
    if (!value) return value;
    if (*value > 1.0)
        return fail(fmt::format("{}: found \"{}\", expected a share from 0 to 1", option, io::printable(text)));
    return value;
}

}  // namespace

Result<serving::Speculation> parse_speculation(const std::string& text) {
    const std::vector<std::string> parts = parts_of(text, ',');
    if (parts.size() < 2 || parts.size() > 3)
        return fail(fmt::format("--speculate: found \"{}\", expected K,ALPHA or K,ALPHA,SHARE such as 3,0.7,0.05",
                                io::printable(text)));
    const auto tokens = parse_whole("--speculate", parts[0], 1.0, 64.0);
    if (!tokens) return std::unexpected(tokens.error());
    const auto alpha = parse_part("--speculate", parts[1]);
    if (!alpha) return std::unexpected(alpha.error());
    serving::Speculation speculation;
    speculation.tokens = *tokens;
    speculation.acceptance = *alpha;
    if (parts.size() == 3) {
        const auto share = parse_part("--speculate", parts[2]);
        if (!share) return std::unexpected(share.error());
        speculation.draft_fraction = *share;
    }
    return speculation;
}

Result<std::shared_ptr<const predict::Setup>> own_draft_of(const predict::Setup& model) {
    auto own = predict::own_draft(model);
    if (!own) return fail("--draft-model mtp: " + own.error().text);
    return own;
}

void TrafficOptions::add_to(Form& form) {
    const char* group = "Under load (--prompt and --generate are the requests' lengths)";
    const auto option = [&](const char* names, std::string& target, const char* help, const char* type) -> Option& {
        return form.text(names, target, help).in(group).of_type(type);
    };
    form.flag("--saturated", saturated, "There is always another request waiting").in(group);
    option("--rate,--request-rate", rate, "Requests a second", "R");
    option("--concurrency,--max-concurrency", users, "Users who each ask again when they are answered", "N");
    option("--trace", trace, "Requests from a file: arrival,prompt,output a line", "FILE");
    option("--prompts", prompts, "Prompt lengths: 1024, 100-2000, normal:512,0.3, lognormal:512,1.2, 128*3,4096*1",
           "LENGTHS");
    option("--outputs", outputs, "Output lengths, likewise", "LENGTHS");
    form.flag("--simulate", simulate, "Also simulate: percentiles (near capacity done unasked where it is quick)")
        .in(group);
    option("--seed", seed, "Of the simulation", "N").shows_default();
    option("--requests", requests, "Simulated requests, after a warm-up", "N").shows_default();
    option("--prefix-hit-rate", hit_rate, "Share of prompt tokens found in the cache", "SHARE").shows_default();
    option("--common-prefix", common_prefix, "Tokens that all prompts begin with", "N").shows_default();
    option("--host-time", host_request, "Host time per request: tokeniser, HTTP", "TIME").shows_default();
    option("--host-time-per-step", host_step, "Host time per step: scheduler, sampling", "TIME").shows_default();
    option("--samples,--n-best", samples, "Outputs of each request over one prompt", "N").shows_default();
    option("--speculate", speculate,
           "Speculative decoding: tokens proposed, chance that one is right, cost of drafting as a share of a step",
           "K,ALPHA[,SHARE]");
    option(
        "--draft-model", draft,
        "A model that drafts, on the same devices and in their memory, instead of a share; mtp: the model's own layers",
        "MODEL");
    option("--prefill-replicas", prefill_replicas, "Disaggregate: replicas that only do prompts", "N").shows_default();
    form.flag("--captured-graphs", captured, "Pad batches to the sizes that engines capture").in(group);
    form.flag("--reserve", reserving, "Admit a request only when its whole output will fit").in(group);
    option("--price", price,
           "Of one device and hour, in any currency; without a load, tokens cost what the batch costs", "X");
}

Result<void> TrafficOptions::check_absent() const {
    const TrafficOptions usual;
    const auto said = [](const char* name, bool differs) { return std::pair(name, differs); };
    for (const auto& [name, differs] :
         {said("--prompts", prompts != usual.prompts), said("--outputs", outputs != usual.outputs),
          said("--simulate", simulate), said("--seed", seed != usual.seed),
          said("--requests", requests != usual.requests), said("--prefix-hit-rate", hit_rate != usual.hit_rate),
          said("--common-prefix", common_prefix != usual.common_prefix),
          said("--host-time", host_request != usual.host_request),
          said("--host-time-per-step", host_step != usual.host_step), said("--samples", samples != usual.samples),
          said("--speculate", speculate != usual.speculate), said("--draft-model", draft != usual.draft),
          said("--prefill-replicas", prefill_replicas != usual.prefill_replicas), said("--captured-graphs", captured),
          said("--reserve", reserving)}) {
        if (differs) {
            return fail(
                fmt::format("{}: is about requests under load, expected --saturated, --rate R, --concurrency N or "
                            "--trace FILE beside it "
                            "(--concurrency 1: a single user)",
                            name));
        }
    }
    return {};
}

Result<std::shared_ptr<const predict::Setup>> TrafficOptions::draft_setup(const Library& library,
                                                                          const ScenarioOptions& scenario,
                                                                          const predict::Setup& model) const {
    if (draft == own_layers) return own_draft_of(model);
    ScenarioOptions other = scenario;
    other.model = draft;
    other.parameters.clear();  // of the large one
    auto setup = other.setup(library);
    if (!setup) return fail("--draft-model: " + setup.error().text);
    return std::make_shared<const predict::Setup>(std::move(*setup));
}

Result<serving::Traffic> TrafficOptions::load(const Library& library, const ScenarioOptions& scenario,
                                              const predict::Setup& setup) const {
    serving::Traffic traffic;
    const int asked = static_cast<int>(saturated) + static_cast<int>(!rate.empty()) + static_cast<int>(!users.empty()) +
                      static_cast<int>(!trace.empty());
    if (asked > 1) return fail("--saturated, --rate, --concurrency, --trace: found several, expected one");
    if (!rate.empty()) {
        const auto value = parse_positive("--rate", rate);
        if (!value) return std::unexpected(value.error());
        traffic.load = serving::Load::rate(*value);
    }
    if (!users.empty()) {
        const auto value = parse_whole("--concurrency", users, 1.0, 1e7);
        if (!value) return std::unexpected(value.error());
        traffic.load = serving::Load::users(*value);
    }
    traffic.mix.prompt = serving::Lengths::fixed(setup.workload.prompt);
    traffic.mix.output = serving::Lengths::fixed(setup.workload.generate);
    if (!trace.empty()) {
        const auto text = library.file(trace);
        if (!text) return std::unexpected(text.error());
        if (!*text) return fail(fmt::format("{}: no such file", io::printable(trace)));
        auto read = serving::parse_trace(**text, trace);
        if (!read) return std::unexpected(read.error());
        traffic.mix.trace = std::move(*read);
        traffic.load = serving::Load::trace();
        traffic.simulate = true;  // only a simulation can follow arrivals
    }
    for (const auto& [name, text, target] : {std::tuple{"--prompts", &prompts, &traffic.mix.prompt},
                                             std::tuple{"--outputs", &outputs, &traffic.mix.output}}) {
        if (text->empty()) continue;
        auto lengths = serving::parse_lengths(*text, name);
        if (!lengths) return std::unexpected(lengths.error());
        *target = std::move(*lengths);
    }
    if (setup.architecture) traffic.mix.longest_context = setup.architecture->longest_context;

    serving::Policy& policy = traffic.policy;
    const auto hits = parse_part("--prefix-hit-rate", hit_rate);
    if (!hits) return std::unexpected(hits.error());
    policy.prefix.hit_rate = *hits;
    const auto common = parse_whole("--common-prefix", common_prefix, 0.0, 1e9);
    if (!common) return std::unexpected(common.error());
    policy.prefix.common = *common;
    const auto per_request = parse_host_time("--host-time", host_request);
    if (!per_request) return std::unexpected(per_request.error());
    policy.host_seconds_request = *per_request;
    const auto per_step = parse_host_time("--host-time-per-step", host_step);
    if (!per_step) return std::unexpected(per_step.error());
    policy.host_seconds_step = *per_step;
    const auto outputs_each = parse_whole("--samples", samples, 1.0, 1000.0);
    if (!outputs_each) return std::unexpected(outputs_each.error());
    policy.samples = *outputs_each;
    const bool reserves = reserving || (setup.memory && setup.memory->rules.reserves);
    policy.admission = reserves ? serving::Admission::reserving : serving::Admission::optimistic;
    if (captured) policy.captured = serving::usual_captured_sizes(512.0);
    if (!speculate.empty()) {
        const auto speculation = parse_speculation(speculate);
        if (!speculation) return std::unexpected(speculation.error());
        policy.speculation = *speculation;
    }
    if (!draft.empty()) {
        if (speculate.empty()) return fail("--draft-model: expected --speculate K,ALPHA beside it");
        predict::Setup with_draft = setup;
        const auto other = draft_setup(library, scenario, setup);
        if (!other) return std::unexpected(other.error());
        with_draft.draft = *other;
        auto realised = predict::realise(predict::draft_of(with_draft));
        if (!realised) return std::unexpected(realised.error());
        traffic.draft = std::move(*realised);
    }
    const auto prefill = parse_whole("--prefill-replicas", prefill_replicas, 0.0, 1e5);
    if (!prefill) return std::unexpected(prefill.error());
    traffic.prefill_replicas = *prefill;
    if (traffic.prefill_replicas > 0.0 && traffic.load.kind == serving::Load::Kind::users)
        return fail("--prefill-replicas: answered for --saturated and --rate, not for --concurrency");
    if (traffic.prefill_replicas > 0.0 && traffic.load.kind == serving::Load::Kind::trace)
        return fail("--prefill-replicas: answered for --saturated and --rate, not for --trace");
    traffic.simulate = traffic.simulate || simulate;
    const auto count = parse_whole("--requests", requests, 10.0, 1e7);
    if (!count) return std::unexpected(count.error());
    traffic.sampling.requests = *count;
    const auto number = parse_whole("--seed", seed, 0.0, 1e15);
    if (!number) return std::unexpected(number.error());
    traffic.sampling.seed = static_cast<std::uint64_t>(*number);
    if (!price.empty()) {
        const auto hour = parse_positive("--price", price);
        if (!hour) return std::unexpected(hour.error());
        traffic.price_per_device_hour = *hour;
    }
    return traffic;
}

}  // namespace roofline::ask
