// The points of a sweep: every option that can hold a list is an axis, and the points are their product. Axes that
// change what a model is, on what it runs and how come first and vary slowest, in the order of --help; those of the
// workload follow, also in that order; the last one varies fastest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/predict/setup.hpp"
#include "roofline/serving/traffic.hpp"

namespace roofline::ask {

/// An option whose value changes what must be lowered and prepared.
struct SetupAxis {
    std::string column;               // "tp", "kv_cache_dtype", "memory.bandwidth"
    std::string option;               // "tp"; "set"
    std::string path;                 // of --set: what stands before the equals sign
    std::vector<std::string> values;  // as typed
    bool numbers = false;
    bool deployment = false;

    /// A key and a value of an option, as if it alone had been typed.
    std::pair<std::string, std::string> argument(std::size_t value) const;
};

/// A number of the workload: points that differ in nothing else share everything that was prepared.
struct WorkAxis {
    std::string column;
    double predict::Workload::* field = nullptr;
    std::vector<double> values;  // a context of 0 follows the prompt
    bool shown = true;           // batch, prompt and context always are, the others where they were given
};

/// What is asked at a point, but for the numbers of its workload.
struct AskedThere {
    predict::Setup setup;
    std::optional<serving::Traffic> traffic;
    bool prompts_given = false;  // the mix has its own: it does not follow the workload's
    bool outputs_given = false;
    std::optional<double> price;
};

class Grid {
  public:
    /// `form`: what ScenarioOptions and TrafficOptions added, filled in; a text may hold a list or a range. The library
    /// is kept.
    static Result<Grid> read(const Form& form, const Library& library);

    std::size_t rows() const { return rows_; }
    /// Consecutive rows that share a setup.
    std::size_t rows_per_setup() const { return rows_per_setup_; }

    const std::vector<SetupAxis>& setup_axes() const { return setup_axes_; }
    const std::vector<WorkAxis>& work_axes() const { return work_axes_; }
    bool spreads_devices() const;
    /// Requests come and go.
    bool under_load() const;
    bool has(const std::string& option) const;

    /// Which value of each setup axis the rows of setup number `setup` have.
    std::vector<std::size_t> setup_values(std::size_t setup) const;
    /// What is asked there: the options are read anew, as if they had been typed one by one.
    Result<AskedThere> asked(std::size_t setup) const;
    void fill(std::size_t row, predict::Workload& workload) const;

    /// Every value by itself, before anything is computed: a word that means nothing is bad input, while values that
    /// only do not go together make rows that say so.
    Result<void> check_values() const;

    /// All axes with all their values in one text: two sweeps with the same text have the same rows.
    std::string definition() const;

  private:
    /// A key and a value of an option.
    using Argument = std::pair<std::string, std::string>;
    Result<AskedThere> asked_with(const std::vector<Argument>& arguments) const;

    const Library* library_ = nullptr;

    std::vector<SetupAxis> setup_axes_;
    std::vector<WorkAxis> work_axes_;
    std::size_t rows_ = 1;
    std::size_t rows_per_setup_ = 1;
};

}  // namespace roofline::ask
