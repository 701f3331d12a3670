#include "roofline/ask/predict_options.hpp"

#include <memory>

#include "roofline/ask/parse.hpp"
#include "roofline/io/load_json.hpp"

namespace roofline::ask {

void PredictOptions::add_to(Form& form) {
    scenario.add_to(form);
    traffic.add_to(form);
}

Result<Predicted> PredictOptions::answer(const Library& library) const {
    auto setup = scenario.setup(library);
    if (!setup) return std::unexpected(setup.error());
    if (traffic.absent()) {
        if (auto good = traffic.check_absent(); !good) return std::unexpected(good.error());
    } else if (!traffic.draft.empty()) {
        auto draft = traffic.draft_setup(library, scenario, *setup);
        if (!draft) return std::unexpected(draft.error());
        setup->draft = std::move(*draft);
    }
    auto loaded = with_remedies(*setup);
    if (!loaded) return std::unexpected(loaded.error());
    Predicted predicted{std::move(*loaded), {}, std::nullopt};
    if (!traffic.price.empty() && traffic.absent()) {  // under load, that of the load
        const auto price = parse_positive("--price", traffic.price);
        if (!price) return std::unexpected(price.error());
        predicted.scenario.price = *price;
    }
    predicted.report = predict::predict(predicted.scenario);
    if (traffic.absent()) return predicted;
    auto asked = traffic.load(library, scenario, *setup);
    if (!asked) return std::unexpected(asked.error());
    if (!predicted.report.fit.fits) {
        predicted.report.notes.emplace_back("nothing is served under load: it does not fit");
        return predicted;
    }
    auto answered = serving::answer(predicted.scenario, *asked);
    if (!answered) return std::unexpected(answered.error());
    if (const double requests = has_time ? serving::worth_simulating(*asked, *answered) : 0.0; requests > 0.0) {
        asked->simulate = true;
        asked->sampling.requests = requests;
        answered = serving::answer(predicted.scenario, *asked);
        if (!answered) return std::unexpected(answered.error());
    }
    predicted.load = UnderLoad{std::move(*asked), std::move(*answered)};
    return predicted;
}

std::string predicted_text(const Predicted& predicted, const io::RunInfo& run) {
    if (!predicted.load) return io::report_text(predicted.scenario, predicted.report, run);
    return io::report_text(predicted.scenario, predicted.report, run, [&](io::JsonText& json) {
        json.object("load", [&] { io::write_load(json, predicted.load->traffic, predicted.load->answer); });
    });
}

}  // namespace roofline::ask
