// What should I change, and what would each change really buy: the question, and its answer.
#pragma once

#include <string>
#include <vector>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/ask/scenario_options.hpp"
#include "roofline/decide/advise.hpp"

namespace roofline::ask {

// What people have or can rent, when nothing else is named.
inline constexpr const char* usual_devices = "h100-sxm,h200-sxm,b200-sxm,mi300x,mi355x,l40s,rtx-4090,rtx-5090";

struct AdviseOptions {
    ScenarioOptions scenario;
    std::string goal = "tpot";
    std::vector<std::string> prices;
    std::string other_devices = usual_devices;
    std::string acceptance = "0.7";
    std::string draft_tokens = "3";
    std::string draft_cost = "0.05";
    std::string draft;
    std::string cached_share = "0.5";

    void add_to(Form& form);
    Result<decide::Advice> answer(const Library& library) const;
};

}  // namespace roofline::ask
