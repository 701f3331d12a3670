// Reports side by side: two or more accounts (predicted, run, traced) joined stage by stage and name by name, or the
// figures of two or more devices. The first side is what the others are held against.
//
// A kernel that fuses several operators lists them in `covers`. Rows are therefore not names but knots of names: what
// any side has fused is added up on the others, so that no time is compared with a part of itself. Every record of
// every side is in exactly one row, and the rows of a stage add up to its records.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/account.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::assess {

enum class By { record, group, stage };
std::string_view name(By by);
std::optional<By> find_by(std::string_view name);

/// Which of a record's times is compared. `best_known`: measured where it was measured, else expected.
enum class TimeKind { best_known, measured, expected, attainable, limit };
std::string_view name(TimeKind kind);
std::optional<TimeKind> find_time_kind(std::string_view name);

enum class Change { same, better, worse, appeared, vanished };
std::string_view name(Change change);

/// Below this difference two times are called the same.
inline constexpr double same_within = 0.01;
/// A row of less than this share of its stage, on every side, does not fail a comparison: its jitter is not news.
inline constexpr double least_share = 0.01;

/// One side of a row; empty where the side has nothing of that name.
struct Side {
    std::optional<double> value;      // seconds, or a device's figure in base units
    double count = 0.0;               // launches
    std::optional<double> ratio;      // to the first side
    std::optional<Change> change;     // against the first side; empty for the first itself
    std::vector<std::string> merged;  // names of its records where they are more than one, or not the row's
};

struct Row {
    std::string name;
    std::string group;  // empty where rows are no records
    std::string unit;   // of a device's figure: FLOP/s, B/s, B, W or nothing; "s" for times
    bool higher_is_better = false;
    bool counts = true;  // large enough to fail a comparison
    std::vector<Side> sides;
    double largest_difference() const;  // in the row's unit, of any side to the first
};

struct StageComparison {
    std::string name;
    Row total;  // wall time where it was measured, else the time of the stage
    std::vector<Row> rows;
};

struct Comparison {
    bool devices = false;
    By by = By::record;
    TimeKind time = TimeKind::best_known;
    std::vector<std::string> titles;      // one for each side
    std::vector<std::string> time_names;  // which time each side gave: "measured", "expected", "measured and expected"
    std::vector<StageComparison> stages;  // one, without a name, for devices
    std::vector<std::string> notes;

    /// What got worse by more than the fraction (0.05 is five percent): stages and rows that count, worst first.
    struct Failure {
        std::string stage, name;
        std::size_t side = 0;
        double by = 0.0;
    };
    std::vector<Failure> worse_than(double fraction) const;
};

Result<Comparison> compare(std::span<const Account> accounts, By by, TimeKind time);
Result<Comparison> compare_devices(std::span<const Device> devices);

}  // namespace roofline::assess
