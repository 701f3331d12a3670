// Several charts under each other as one.
#pragma once

#include <string>
#include <vector>

namespace roofline::render::chart {

std::string stacked(const std::vector<std::string>& charts, const std::string& title);

}  // namespace roofline::render::chart
