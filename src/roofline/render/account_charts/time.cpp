// Where the time goes.
#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/time_bars.hpp"

namespace roofline::render::chart {

AccountChart time_account_chart() {
    return {"time", "stages as bars cut into groups and operators", 2,
            [](std::span<const Account> accounts, const RooflineOptions&) { return time_bars_chart(accounts); }};
}

}  // namespace roofline::render::chart
