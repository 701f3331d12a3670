// The flags that say how requests come and how they are scheduled: what turns a step into a service.
#pragma once

#include <optional>
#include <string>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::ask {

/// "3,0.7" or "3,0.7,0.05": tokens guessed, chance that one is right, cost of guessing as a share of a step.
Result<serving::Speculation> parse_speculation(const std::string& text);

/// What --draft-model calls the layers of the model itself that predict further tokens.
inline constexpr std::string_view own_layers = "mtp";
Result<std::shared_ptr<const predict::Setup>> own_draft_of(const predict::Setup& model);

struct TrafficOptions {
    std::string rate;
    std::string users;
    std::string trace;
    std::string prompts;
    std::string outputs;
    std::string hit_rate = "0";
    std::string common_prefix = "0";
    std::string host_request = "0";
    std::string host_step = "0";
    std::string samples = "1";
    std::string speculate;
    std::string draft;
    std::string prefill_replicas = "0";
    std::string price;
    std::string seed = "1";
    std::string requests = "2000";
    bool saturated = false;
    bool simulate = false;
    bool captured = false;
    bool reserving = false;

    void add_to(Form& form);
    /// Nothing of it was asked for.
    bool absent() const { return !saturated && rate.empty() && users.empty() && trace.empty(); }
    /// Refused where something is said about the requests, but not how they come: it would be left unheard.
    Result<void> check_absent() const;
    /// The model that drafts, asked about like the model it drafts for.
    Result<std::shared_ptr<const predict::Setup>> draft_setup(const Library& library, const ScenarioOptions& scenario,
                                                              const predict::Setup& model) const;
    Result<serving::Traffic> load(const Library& library, const ScenarioOptions& scenario,
                                  const predict::Setup& setup) const;
};

}  // namespace roofline::ask
