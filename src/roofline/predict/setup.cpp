#include "roofline/predict/setup.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "roofline/model/gguf_mix.hpp"
#include "roofline/model/parameters_only.hpp"
#include "roofline/model/predictor.hpp"
#include "roofline/predict/host_share.hpp"

namespace roofline::predict {
namespace {

std::string activation_summary(const model::TypePlan& plan) {
    std::vector<std::string_view> seen;
    std::string text;
    for (const model::RoleTypes& layer : plan.layers) {
        for (std::size_t role = 0; role < model::role_count; ++role) {
            if (!model::usually_quantised(static_cast<model::Role>(role))) continue;
            const std::string_view type = name(layer[role].activation);
            if (std::find(seen.begin(), seen.end(), type) != seen.end()) continue;
            seen.push_back(type);
            text += (text.empty() ? "" : " + ") + std::string(type);
        }
    }
    return text;
}

bool alike(const model::Lowered& a, const model::Lowered& b) {
    if (a.draft_weights != b.draft_weights || model::draft_cache_bytes(a, 1.0) != model::draft_cache_bytes(b, 1.0))
        return false;
    return std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), b.operators.end(),
                      [](const model::Operator& x, const model::Operator& y) {
                          return x.name == y.name && x.count == y.count && x.stored_bytes == y.stored_bytes;
                      });
}

model::Deployment as_run(const Setup& setup, model::Deployment deployment) {
    if (deployment.exchanges_tokens() && !deployment.exchange)
        deployment.exchange = (setup.memory ? usual_exchange(setup.memory->rules, setup.device.name) : std::nullopt)
                                  .value_or(model::ExpertExchange::all_to_all);
    return deployment;
}

/// A model as one device of a deployment holds it: whole, or layers of it.
struct RankModel {
    model::Architecture architecture;
    model::TypePlan types;
    model::LoweringOptions options;

    model::Lowered lower() const { return model::lower(architecture, types, options); }
    model::Lowered lower_stage(std::size_t stage) const {
        model::LoweringOptions part = options;
        part.layers = model::pipeline_ranges(architecture.layers.size(), options.deployment.pipeline)[stage];
        return model::lower(architecture, types, part);
    }
};

Result<RankModel> cut(const Setup& setup, const model::TypePlan& types, const model::Deployment& deployment) {
    RankModel rank{*setup.architecture, types, setup.lowering};
    rank.options.deployment = as_run(setup, deployment);
    if (deployment == model::Deployment{}) return rank;
    auto architecture = model::on_rank(*setup.architecture, deployment);
    if (!architecture) return std::unexpected(architecture.error());
    rank.architecture = std::move(*architecture);
    return rank;
}

/// A model and what guesses for it, on one device.
class OnDevice {
  public:
    static Result<OnDevice> cut_both(const Setup& setup, const model::TypePlan& types,
                                     const model::Deployment& deployment) {
        auto model = cut(setup, types, deployment);
        if (!model) return std::unexpected(model.error());
        OnDevice result(std::move(*model));
        if (!setup.draft || !setup.draft->architecture) return result;
        Setup asked = setup;
        asked.deployment() = deployment;
        const Setup guesses = draft_of(asked);
        auto draft = cut(guesses, plan_types(guesses), guesses.deployment());
        if (!draft) return fail("the draft model " + setup.draft->model_name + ": " + draft.error().text);
        result.draft_ = std::move(*draft);
        return result;
    }

    std::size_t stages() const { return static_cast<std::size_t>(model_.options.deployment.pipeline); }
    model::Lowered whole() const {
        return with(model_.lower(), [](const RankModel& draft) { return draft.lower(); });
    }
    model::Lowered stage(std::size_t number) const {
        model::Lowered lowered = model_.lower_stage(number);
        if (draft_ && draft_->architecture.predicts)
            return number + 1 < stages() ? lowered : with(std::move(lowered), &RankModel::lower);
        return with(std::move(lowered), [&](const RankModel& draft) { return draft.lower_stage(number); });
    }

  private:
    explicit OnDevice(RankModel model) : model_(std::move(model)) {}

    template <class LowerDraft>
    model::Lowered with(model::Lowered lowered, const LowerDraft& lower_draft) const {
        if (!draft_) return lowered;
        const model::Lowered draft = std::invoke(lower_draft, *draft_);
        const double modules = draft_->architecture.predicts ? draft_->architecture.predictors : 1.0;
        model::seat_draft(lowered, draft, model::count_parameters(draft).stored_bytes - weight_bytes_on_host(draft),
                          modules);
        return lowered;
    }

    RankModel model_;
    std::optional<RankModel> draft_;
};

void lower_stages(const OnDevice& device, Scenario& scenario) {
    for (std::size_t stage = 0; stage < device.stages(); ++stage) {
        model::Lowered lowered = device.stage(stage);
        const auto same = std::find_if(scenario.stages.begin(), scenario.stages.end(),
                                       [&](const PipelineStage& known) { return alike(known.lowered, lowered); });
        if (same != scenario.stages.end()) {
            same->count += 1.0;
            continue;
        }
        scenario.stages.push_back({std::move(lowered), 1.0});
    }
}

}  // namespace

model::Deployment deployment_as_run(const Setup& setup) {
    return as_run(setup, setup.deployment());
}

model::TypePlan plan_types(const Setup& setup) {
    return plan_types(setup, setup.types);
}

model::TypePlan plan_types(const Setup& setup, const TypeChoice& choice) {
    model::TypePlan plan = *setup.checkpoint;
    if (choice.weights != nullptr) {
        const DType activation =
            choice.activations != nullptr ? choice.activations->value : model::stream_type(plan.stream);
        const Format kv = choice.kv != nullptr ? *choice.kv : plan.kv;
        if (setup.architecture && model::is_gguf(*choice.weights))
            return model::gguf_plan(*setup.architecture, *choice.weights, activation, kv);
        return model::uniform_plan(plan.layers.size(), *choice.weights, activation, kv);
    }
    if (choice.activations != nullptr) {
        const DType activation = choice.activations->value;
        const auto change = [&](model::RoleTypes& roles) {
            for (std::size_t role = 0; role < model::role_count; ++role) {
                const bool quantised =
                    model::usually_quantised(static_cast<model::Role>(role)) || model::is_gguf(roles[role].format);
                if (bits(activation) >= 16 || quantised) roles[role].activation = activation;
            }
        };
        change(plan.outside);
        for (model::RoleTypes& roles : plan.layers) change(roles);
        plan.stream = model::stream_type(activation);
        plan.attention = plan.stream;
    }
    if (choice.kv != nullptr) plan.kv = *choice.kv;
    return plan;
}

Setup draft_of(const Setup& setup) {
    Setup draft = *setup.draft;
    if (setup.types.kv != nullptr) draft.types.kv = setup.types.kv;  // engines keep all caches in one format
    draft.lowering = setup.lowering;
    draft.device = setup.device;
    draft.workload = setup.workload;
    draft.execution = setup.execution;
    draft.memory = setup.memory;
    draft.draft.reset();
    if (!draft.architecture || !draft.architecture->predicts) return draft;
    draft.types = setup.types;
    if (draft.deployment().pipeline > 1.0) {
        draft.deployment().pipeline = 1.0;
        model::Architecture module = *draft.architecture;
        module.own_table = true;
        draft.architecture = std::make_shared<const model::Architecture>(std::move(module));
    }
    return draft;
}

Result<std::shared_ptr<const Setup>> own_draft(const Setup& setup) {
    auto module = setup.architecture ? model::predictor_of(*setup.architecture) : std::nullopt;
    if (!module) return fail(setup.model_name + " has no layers that predict further tokens (MTP)");
    auto draft = std::make_shared<Setup>();
    draft->model_name = "mtp";
    draft->model_title = "its MTP layers";
    draft->checkpoint =
        std::make_shared<const model::TypePlan>(model::predictor_types(*setup.architecture, *setup.checkpoint));
    draft->architecture = std::make_shared<const model::Architecture>(std::move(*module));
    return draft;
}

Result<Scenario> realise(const Setup& setup) {
    const model::TypePlan plan = plan_types(setup);
    const model::Deployment deployment = deployment_as_run(setup);
    Scenario scenario;
    scenario.model_name = setup.model_name;
    scenario.model_title = setup.model_title;
    scenario.weight_types = setup.checkpoint_summary;
    scenario.notes = setup.notes;
    if (setup.types.weights != nullptr) {
        scenario.weight_types = setup.types.weights->name;
        if (!setup.types.weights->note.empty()) {
            scenario.notes.push_back(std::string(setup.types.weights->name) + ": " +
                                     std::string(setup.types.weights->note));
        }
    }
    scenario.activation_type = activation_summary(plan);
    scenario.kv_type = setup.architecture ? std::string(plan.kv.name) : "none";
    scenario.device = setup.device;
    scenario.workload = setup.workload;
    scenario.execution = setup.execution;
    scenario.memory = setup.memory;
    scenario.deployment = deployment;

    if (!setup.architecture) {
        // Without an architecture nothing says what must be copied: weights are shared evenly, nothing is exchanged.
        scenario.lowered = model::lower_parameters_only(setup.parameters / deployment.replica_devices(), plan);
        scenario.active_parameters = setup.parameters;
        scenario.parameters = model::count_parameters(model::lower_parameters_only(setup.parameters, plan));
        scenario.kv_bytes_per_token = 0.0;
        return scenario;
    }
    scenario.longest_context = setup.architecture->longest_context;
    model::LoweringOptions whole = setup.lowering;
    whole.deployment = {};
    const model::Lowered undivided = model::lower(*setup.architecture, plan, whole);
    scenario.active_parameters = model::active_parameters(undivided, setup.active_counts);
    scenario.parameters = model::count_parameters(undivided);
    scenario.kv_bytes_per_token = model::kv_bytes_per_token(undivided);
    if (deployment == model::Deployment{} && !setup.draft) {
        scenario.lowered = undivided;
        return scenario;
    }
    const auto device = OnDevice::cut_both(setup, plan, deployment);
    if (!device) return std::unexpected(device.error());
    scenario.lowered = device->whole();
    if (deployment.pipeline > 1.0) lower_stages(*device, scenario);
    return scenario;
}

bool would_fit(const Scenario& scenario, const Candidate& candidate) {
    const model::Deployment& spread = scenario.deployment;
    Workload workload = scenario.workload;
    workload.batch = std::ceil(workload.batch / (spread.replicas * spread.groups));
    std::optional<MemoryOptions> memory = scenario.memory;
    if (memory) memory->ranks = candidate.ranks;
    return fit(candidate.lowered, scenario.device, workload, scenario.longest_context, memory).fits;
}

std::vector<Candidate> other_ways(const Setup& setup, const Scenario& scenario) {
    std::vector<Candidate> ways;
    if (!setup.architecture) return ways;
    const auto bytes = [](const model::Lowered& lowered) { return model::count_parameters(lowered).stored_bytes; };
    const model::Deployment& asked = setup.deployment();
    const TypeChoice& types = setup.types;

    /// One device of it; of a pipeline, of the stage with the most to hold.
    const auto fullest = [&](const model::TypePlan& plan,
                             const model::Deployment& spread) -> std::optional<model::Lowered> {
        const auto device = OnDevice::cut_both(setup, plan, spread);
        if (!device) return std::nullopt;  // it cannot be cut so
        if (spread.pipeline <= 1.0) return device->whole();
        std::optional<model::Lowered> most;
        for (std::size_t number = 0; number < device->stages(); ++number) {
            model::Lowered stage = device->stage(number);
            if (!most || bytes(stage) > bytes(*most)) most = std::move(stage);
        }
        return most;
    };

    double now = 0.0;
    if (scenario.stages.empty()) now = bytes(scenario.lowered);
    for (const PipelineStage& stage : scenario.stages) now = std::max(now, bytes(stage.lowered));
    for (const std::string_view name : {"fp8", "awq"}) {
        const Format* format = find_format(name);
        if (format == nullptr) continue;
        auto narrow = fullest(plan_types(setup, {format, types.activations, types.kv}), asked);
        if (!narrow || bytes(*narrow) >= now) continue;
        ways.push_back({Remedy::Kind::weights, "weights in " + std::string(name == "awq" ? "int4 (awq)" : name),
                        bits_per_element(*format), std::move(*narrow), asked.replica_devices()});
    }
    const model::TypePlan plan = plan_types(setup);
    if (const Format* fp8 = find_format("fp8"); fp8 != nullptr && bits_per_element(plan.kv) > bits_per_element(*fp8)) {
        if (auto narrow = fullest(plan_types(setup, {types.weights, types.activations, fp8}), asked)) {
            ways.push_back({Remedy::Kind::kv, "a KV cache in fp8", bits_per_element(*fp8), std::move(*narrow),
                            asked.replica_devices()});
        }
    }
    // Doubling until it fits or nothing more can be divided.
    for (double more = 2.0; more <= 64.0; more *= 2.0) {
        model::Deployment wider = asked;
        wider.tensor *= more;
        auto lowered = fullest(plan, wider);
        if (!lowered) continue;
        const auto whole = [](double value) { return std::to_string(static_cast<long long>(value)); };
        ways.push_back({Remedy::Kind::devices,
                        whole(wider.devices()) + " devices (tensor parallel " + whole(wider.tensor) + ")",
                        wider.devices(), std::move(*lowered), wider.replica_devices()});
        if (would_fit(scenario, ways.back())) break;
    }
    return ways;
}

}  // namespace roofline::predict
