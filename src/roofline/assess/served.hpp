// Whole engines under full load, as their vendors publish them: output tokens a second with as many requests in flight
// as the cache holds. Nothing is fitted to such rows; they say how well steps, memory and scheduling come together.
#pragma once

#include <memory>
#include <string>

#include "roofline/assess/expect.hpp"
#include "roofline/predict/setup.hpp"

namespace roofline::assess {

struct Served {
    predict::Setup setup;  // without constants: those are the judge's
    double prompt = 0.0;
    double output = 0.0;
};

/// A row of the columns gpu, num_gpus, tp, pp, ep, model, weight_dtype, kv_dtype, input_len, output_len, metric, value.
/// Its time is that of one output token of the whole deployment: the reciprocal of the rate.
class ServedReader {
  public:
    /// For a table whose rows come behind those that are there.
    explicit ServedReader(const Measurements& into)
        : first_row_(into.rows.size()), first_refused_(into.refused.size()) {}

    static bool reads(const CsvTable& table, const CsvTable::Row& row);
    /// What a row asks. How fast it could be takes longest and is found for all of them at once.
    void read(const CsvTable& table, const CsvTable::Row& row, Measurements& into);
    void finish(Measurements& into) const;

  private:
    std::size_t first_row_;
    std::size_t first_refused_;
    std::map<std::string, std::shared_ptr<const predict::Setup>> known_;  // models by name and types
};

Expected expect_served(const Measurement& row, const std::shared_ptr<const predict::Calibration>& calibration);

}  // namespace roofline::assess
