// Which stages of several accounts are the same. Steps are numbered in some ("decode 2") and not in others, and a
// profile without stages ("all") can only be held against the sum of another's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "roofline/core/account.hpp"

namespace roofline::assess {

struct JoinedStage {
    std::string name;
    std::vector<AccountStage> sides;  // one for each account; without a name where that account has no such stage
};

/// In the order in which they first appear. What had to be averaged or added up is said in `notes`.
std::vector<JoinedStage> join_stages(std::span<const Account> accounts, std::vector<std::string>& notes);

}  // namespace roofline::assess
