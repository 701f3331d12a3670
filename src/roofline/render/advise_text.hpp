// The answer to `advise` for people: as text, Markdown and CSV.
#pragma once

#include <string>

#include "roofline/decide/advise.hpp"

namespace roofline::render {

std::string advise_text(const decide::Advice& advice);
std::string advise_markdown(const decide::Advice& advice);
std::string advise_csv(const decide::Advice& advice);

}  // namespace roofline::render
