// Accounts as JSON: the part of roofline.report/1 (schema/report.schema.json) that every verb shares. What `predict`
// writes is read back as an account too.
//
//   { "schema": "roofline.report/1", "run": { "version", "command", "time" }, "verb"?, "title"?,
//     "device": DEVICE (device_file.hpp), "model"?: { "name" },
//     "stages": [ { "stage", "batch", "tokens", "context", "produced"?, "repetitions"?, "time_s": TIMES,
//                   "records": [ { "name", "covers"?, "kind", "group", "count", "engine", "dtype", "flops",
//                                  "bytes": { "memory", "cache", "weights", "kv", "peer", "network", "host" },
//                                  "time_s": TIMES, "origin"? } ] } ], "notes" }
//   TIMES: { "limit", "attainable", "expected", "expected_low", "expected_high", "measured"? }
#pragma once

#include <string>
#include <string_view>

#include "roofline/core/account.hpp"
#include "roofline/io/report_json.hpp"

namespace roofline::io {

std::string account_text(const Account& account, const RunInfo& run);
/// The same for verbs that add keys of their own.
OrderedJson account_json(const Account& account, const RunInfo& run);

Result<Account> read_account(std::string_view text, std::string_view file);

}  // namespace roofline::io
