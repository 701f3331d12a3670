// How fast can it go, how fast will it go, and what holds it back: the question, and its answer.
#pragma once

#include <optional>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/ask/traffic_options.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/predict/report.hpp"
#include "roofline/serving/deployed.hpp"

namespace roofline::ask {

/// What a request mix does to a deployment.
struct UnderLoad {
    serving::Traffic traffic;
    serving::Answer answer;

    bool overloaded() const { return answer.pools ? answer.pools->overloaded : answer.expected.overloaded; }
};

struct Predicted {
    predict::Scenario scenario;
    predict::Report report;
    std::optional<UnderLoad> load;  // where it was asked for and the model fits

    bool has_answer() const { return report.fit.fits && !(load && load->overloaded()); }
};

struct PredictOptions {
    ScenarioOptions scenario;
    TrafficOptions traffic;
    bool has_time = false;  // whoever waits may wait half a second: near capacity the queue is simulated unasked

    void add_to(Form& form);
    Result<Predicted> answer(const Library& library) const;
};

std::string predicted_text(const Predicted& predicted, const io::RunInfo& run);

}  // namespace roofline::ask
