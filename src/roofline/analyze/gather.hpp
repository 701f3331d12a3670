// Items summed into records, stage by stage: under the names of their roles, of their operators, of their kernels.
#pragma once

#include <vector>

#include "roofline/analyze/items.hpp"
#include "roofline/analyze/steps.hpp"
#include "roofline/core/account.hpp"

namespace roofline::analyze {

enum class By { role, operation, kernel };

/// The work of an effort on a device: where its bytes lie and which engine does it.
Work work_of(const Effort& effort, const Device& device, bool device_known);

/// One account stage per stage and one more, "outside steps", for what belongs to none; "all" where no step was found.
/// Sums are per step, averaged over the repetitions. Idle and unattributed time are records too.
std::vector<AccountStage> gather(const Timeline& timeline, const Items& items, const Steps& steps, const Device& device,
                                 bool device_known, By by);

/// A kernel's name without template arguments and namespaces: what a table has room for.
std::string short_kernel_name(std::string_view name);

/// The name of an item under a way to cut.
std::string record_name(const Timeline& timeline, const Items& items, const Steps& steps, const Item& item);

}  // namespace roofline::analyze
