// Work against the ceilings of its machine.
#include "roofline/render/chart/account_charts.hpp"

namespace roofline::render::chart {

AccountChart roofline_account_chart() {
    return {"roofline", "every operator against the roofs of its device", 1, roofline_chart};
}

}  // namespace roofline::render::chart
