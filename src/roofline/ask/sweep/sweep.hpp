// A sweep small enough to be answered at once: what the page draws curves of. The command line has its own way of
// writing millions of rows (cli/sweep/), made of the same grid and rows.
#pragma once

#include <string>
#include <vector>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/ask/sweep/columns.hpp"
#include "roofline/ask/sweep/grid.hpp"
#include "roofline/ask/traffic_options.hpp"

namespace roofline::ask {

/// What is asked of a model most: whether it fits, and its stages. `predict` shows the same ones.
Result<std::vector<MetricColumn>> usual_metrics(const ScenarioOptions& scenario, const Grid& grid);

struct SweepOptions {
    ScenarioOptions scenario;
    TrafficOptions traffic;
    std::string metrics;

    void add_to(Form& form);
    /// { "schema": "roofline.sweep/1", "rows": [ROW] }, each row as `sweep --format jsonl` writes it.
    Result<std::string> answer(const Form& form, const Library& library) const;
};

}  // namespace roofline::ask
