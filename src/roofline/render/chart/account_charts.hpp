// The charts that can be drawn of any report, by name. Each is one file in render/account_charts/; the folder is the
// registry.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/account.hpp"
#include "roofline/render/chart/roofline.hpp"

namespace roofline::render::chart {

struct AccountChart {
    std::string_view name;   // as --chart takes it
    std::string_view shows;  // for --help
    int place = 0;           // where it stands on a page: smaller first
    std::string (*draw)(std::span<const Account> accounts, const RooflineOptions& options) = nullptr;
};

/// In the order of a page.
const std::vector<AccountChart>& account_charts();
/// Null where none is called so.
const AccountChart* find_account_chart(std::string_view name);

}  // namespace roofline::render::chart
