// Measured tables as samples: each usable row becomes the launches it timed, on a known device, or a step of a known
// model. Rows that cannot be used are counted and named, never dropped silently.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/assess/csv.hpp"
#include "roofline/assess/fit.hpp"
#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/model/operators.hpp"
#include "roofline/predict/workload.hpp"

namespace roofline::assess {

/// A whole-model step that was timed.
struct Step {
    std::shared_ptr<const model::Lowered> model;
    model::Step step;
    std::string profile;              // how it was run: "graph+fused", "eager", "llama.cpp"
    std::vector<std::string> stacks;  // kernels named in the row, before the profile's own
};

struct Served;

/// What a report expected of a row that cannot be predicted anew: its model is not known here, or it is a ceiling.
struct Told {
    double expected = 0.0;
    double low = 0.0;
    double high = 0.0;
    std::string source;
};

struct Measurement {
    std::string file;
    int line = 0;
    std::shared_ptr<const Device> device;
    std::string kind;      // the op column; "step" for whole models
    std::string type;      // the dtype column
    std::string fit_type;  // the type whose constants apply, where it says more: "bf16/fp8" with an fp8 cache
    std::string stack;     // the software that was timed, as far as it makes other kernels
    std::vector<std::string> instead;  // software to lean on where nothing is known of that
    std::string stage;                 // prefill or decode, for steps
    std::string family;                // shapes that are left out together when an error is estimated
    std::string label;                 // the row in words: "m 64, n 4096, k 4096"
    double seconds = 0.0;              // of a rate that was measured: of one token
    std::vector<Call> calls;
    std::shared_ptr<const Step> step;
    std::shared_ptr<const Served> served;
    std::shared_ptr<const Told> told;
    double limit = 0.0;
    double attainable = 0.0;
};

/// predicted / measured - 1 of what was measured: a time, or a rate, which is its reciprocal.
inline double signed_error(const Measurement& row, double predicted_seconds) {
    return (row.served ? row.seconds / predicted_seconds : predicted_seconds / row.seconds) - 1.0;
}

struct Refusal {
    std::string file;
    int line = 0;
    std::string device;  // as far as known
    std::string kind;
    std::string type;
    std::string stage;
    std::string reason;  // the rule, in words
};

struct Measurements {
    std::vector<Measurement> rows;
    std::vector<Refusal> refused;
    std::vector<std::string> notes;  // columns ignored, and the like
    // Rates of whole engines are wanted. Nothing is fitted to them, and to say how fast each could be takes longer than
    // all fits together.
    bool with_served = true;
};

/// Everything a reader of rows needs to know about one of them.
struct RowContext {
    const CsvTable& table;
    const CsvTable::Row& row;
    const Device& device;

    std::string_view text(std::string_view column) const { return table.text(row, column); }
    /// A whole positive number up to a billion, or 0 where the cell holds anything else.
    double size(std::string_view column) const;
    /// Bytes: any positive number up to a petabyte, or 0.
    double amount(std::string_view column) const;
};

/// A kind of kernel row: what its columns mean. One file each in rows/.
struct RowReader {
    std::vector<std::string_view> ops;      // values of the op column; one that ends in ':' is a prefix
    std::vector<std::string_view> columns;  // that it understands, beside the common ones
    /// Fills calls, stack, family, label; an empty string is success, anything else the reason for refusing the row.
    std::string (*read)(const RowContext& context, Measurement& row);
};

/// Reads any table that `validate` and `calibrate` accept: kernel tables by their `op` column, whole-model tables by
/// their header. As CSV, or as JSON: { "schema": "roofline.measured/1", "rows": [ { "gpu": "h200-sxm", "op": "gemm",
/// ... } ] } with the columns of the tables as keys. Also what other verbs write: reports with measured times
/// (assess/reports.hpp), and device files with measured ceilings.
Result<void> read_measured(std::string_view text, const std::string& file, Measurements& into);

/// A launch on the engine that runs `type` on the device.
Call call_of(const Device& device, std::string_view class_name, DType type, const predict::Kernel& kernel);

/// A size in words: "4096".
std::string whole(double value);

/// Frameworks are spelt in many ways.
std::string lower_case(std::string_view text);

/// "fp8_block" -> fp8: what the engine multiplies in. Nothing for a name nobody knows.
std::optional<DType> engine_type(std::string_view label);
/// Bytes of a matrix of weights in the format a row names.
double stored_bytes(std::string_view label, double inner, double cols);

}  // namespace roofline::assess
