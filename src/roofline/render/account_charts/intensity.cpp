// How many FLOPs there are for a byte.
#include "roofline/render/chart/account_charts.hpp"
#include "roofline/render/chart/intensity_line.hpp"

namespace roofline::render::chart {

AccountChart intensity_account_chart() {
    return {"intensity", "operators on a number line with the ridge", 3,
            [](std::span<const Account> accounts, const RooflineOptions&) { return intensity_line_chart(accounts); }};
}

}  // namespace roofline::render::chart
