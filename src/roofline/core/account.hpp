// A report as every verb gives it and every verb reads it: a device and, stage by stage, the records of what would run,
// was run or was traced on it. Charts, comparisons and calibrations are made of accounts and need not know where one
// came from. `predict` keeps more beside it (predict/report.hpp); io/account_json.hpp writes and reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/core/device.hpp"
#include "roofline/core/record.hpp"

namespace roofline {

struct AccountStage {
    std::string name;          // prefill, decode, mixed; "decode 2" where steps are numbered; "all" where none is known
    double batch = 0.0;        // sequences; zero: unknown
    double tokens = 0.0;       // new tokens in the step, over all sequences; zero: unknown
    double context = 0.0;      // tokens in the cache; zero: unknown
    double produced = 0.0;     // tokens that count for a rate: prompt tokens of prefill, written ones of decode
    double repetitions = 1.0;  // steps that were averaged
    Times times;               // of the whole stage; `measured` is wall time where there is one
    std::vector<Record> records;

    double tokens_per_second(Seconds time) const { return time.value > 0.0 ? produced / time.value : 0.0; }
};

struct Account {
    std::string title;  // what a legend calls it: "llama-3.1-8b on h100-sxm", the name of a trace
    std::string verb;   // predict, bench, analyze: what made it
    Device device;      // whole, so that a report can be judged where the device is not known
    std::string model;  // empty: unknown
    std::vector<AccountStage> stages;
    std::vector<std::string> notes;
};

/// Fills in limit and attainable of a record from its work, never touching what was measured. Expected is left where it
/// is known and raised to attainable where it is not: nobody expects to beat the roof.
void hold_against(const Device& device, Record& record);

/// Sums the times of the records into those of the stage, where the stage's own are not known. Measured is summed too,
/// unless a wall time is there.
void sum_records(AccountStage& stage);

}  // namespace roofline
