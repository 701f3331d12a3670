#include "roofline/ask/sweep/sweep.hpp"

#include <fmt/format.h>

#include "roofline/ask/sweep/rows.hpp"
#include "roofline/core/patience.hpp"

namespace roofline::ask {
namespace {

constexpr std::size_t most_rows = 20'000;

}  // namespace

Result<std::vector<MetricColumn>> usual_metrics(const ScenarioOptions& scenario, const Grid& grid) {
    bool chunked = scenario.stage == "mixed";
    bool whole = false;
    for (const WorkAxis& axis : grid.work_axes()) {
        if (axis.field != &predict::Workload::chunk) continue;
        for (const double chunk : axis.values) (chunk > 0.0 ? chunked : whole) = true;
    }
    std::string list = grid.spreads_devices() ? "devices_used,fits,max_batch" : "fits,max_batch";
    if (grid.under_load()) {
        list += ",load_requests_per_s,load_output_tokens_per_s,load_ttft_s,load_tpot_s,load_running,load_bound";
        if (grid.spreads_devices()) list += ",load_output_tokens_per_s_per_device";
        if (grid.has("simulate") || grid.has("trace")) list += ",load_ttft_p99_s,load_tpot_p99_s";
        if (grid.has("price")) list += ",load_cost_per_million_output_tokens";
        return choose_metrics(list);
    }
    if (grid.has("price")) list += ",cost_per_million";
    const auto stage = [&](const char* name, bool wanted) {
        if (!wanted || (scenario.stage != "both" && scenario.stage != name)) return;
        for (const char* what : {"limit_s", "attainable_s", "expected_s", "tokens_per_s", "bound"})
            list += fmt::format(",{}_{}", name, what);
        if (grid.spreads_devices()) list += fmt::format(",{}_tokens_per_s_per_device", name);
    };
    stage("prefill", whole || scenario.stage == "prefill");
    stage("mixed", chunked);
    stage("decode", true);
    return choose_metrics(list);
}

void SweepOptions::add_to(Form& form) {
    scenario.add_to(form);
    traffic.add_to(form);
    form.text("--metrics", metrics, "Columns after the axes: names or beginnings of names, or all").of_type("LIST");
}

Result<std::string> SweepOptions::answer(const Form& form, const Library& library) const {
    Form axes;
    for (const Option& option : form.options()) {
        if (option.key() != "metrics") axes.options().push_back(option);
    }
    auto grid = Grid::read(axes, library);
    if (!grid) return std::unexpected(grid.error());
    if (grid->rows() > most_rows)
        return fail(fmt::format("a sweep of {} rows: {} are answered at once", grid->rows(), most_rows));
    auto metrics_asked = metrics.empty() ? usual_metrics(scenario, *grid) : choose_metrics(metrics);
    if (!metrics_asked) return std::unexpected(metrics_asked.error());
    if (auto done = grid->check_values(); !done) return std::unexpected(done.error());
    const RowLayout layout{&*grid, std::move(*metrics_asked), Spelling::jsonl, scenario.stage == "mixed"};
    RowWriter writer(layout);
    std::string text = "{\"schema\": \"roofline.sweep/1\", \"rows\": [\n";
    for (std::size_t row = 0; row < grid->rows(); ++row) {
        if (out_of_patience()) return fail(fmt::format("a sweep took longer than it may, after {} rows", row));
        if (row > 0) text += ',';
        writer.append(row, text);
    }
    return text + "]}\n";
}

}  // namespace roofline::ask
