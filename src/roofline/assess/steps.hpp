// Tables of whole-model steps: milliseconds per step, or rates and times as llama.cpp's benchmarks print them.
#pragma once

#include "roofline/assess/measured.hpp"

namespace roofline::assess {

/// Columns model, stage, time_ms, batch, tokens, context; the model's shape in columns of its own or a known name.
Result<void> read_step_table(const CsvTable& table, Measurements& into);

/// Columns model, metric, value, input_len, output_len, concurrency, context_depth.
Result<void> read_rate_table(const CsvTable& table, Measurements& into);

}  // namespace roofline::assess
