#include "roofline/core/account.hpp"

#include <algorithm>

namespace roofline {

void hold_against(const Device& device, Record& record) {
    record.times.limit = time_under(record.work, limit_roofs(device)).time;
    record.times.attainable = std::max(record.times.limit, time_under(record.work, attainable_roofs(device)).time);
    if (record.times.expected < record.times.attainable) {
        record.times.expected = record.times.attainable;
        record.times.expected_low = record.times.attainable;
        record.times.expected_high = record.times.attainable;
    }
}

void sum_records(AccountStage& stage) {
    Times sum;
    std::optional<Seconds> measured;
    for (const Record& record : stage.records) {
        sum.limit = sum.limit + record.times.limit;
        sum.attainable = sum.attainable + record.times.attainable;
        sum.expected = sum.expected + record.times.expected;
        sum.expected_low = sum.expected_low + record.times.expected_low;
        sum.expected_high = sum.expected_high + record.times.expected_high;
        if (record.times.measured) measured = measured.value_or(Seconds{}) + *record.times.measured;
    }
    if (stage.times.measured) measured = stage.times.measured;
    stage.times = sum;
    stage.times.measured = measured;
}

}  // namespace roofline
