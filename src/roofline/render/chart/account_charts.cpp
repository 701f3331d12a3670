#include "roofline/render/chart/account_charts.hpp"

#include <algorithm>

namespace roofline::render::chart {

#define ROOFLINE_ENTRY(name) AccountChart name##_account_chart();
#include "roofline/render/account_charts.inc"
#undef ROOFLINE_ENTRY

const std::vector<AccountChart>& account_charts() {
    static const std::vector<AccountChart> all = [] {
        std::vector<AccountChart> charts;
#define ROOFLINE_ENTRY(name) charts.push_back(name##_account_chart());
#include "roofline/render/account_charts.inc"
#undef ROOFLINE_ENTRY
        std::stable_sort(charts.begin(), charts.end(),
                         [](const AccountChart& a, const AccountChart& b) { return a.place < b.place; });
        return charts;
    }();
    return all;
}

const AccountChart* find_account_chart(std::string_view name) {
    for (const AccountChart& chart : account_charts()) {
        if (chart.name == name) return &chart;
    }
    return nullptr;
}

}  // namespace roofline::render::chart
