// Our own report card: predictions held against measurements.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "roofline/assess/expect.hpp"
#include "roofline/assess/measured.hpp"

namespace roofline::assess {

/// Of |predicted / measured - 1| over some rows; bias keeps the sign.
struct Errors {
    double mean = 0.0;
    double median = 0.0;
    double p95 = 0.0;
    double bias = 0.0;
    double worst = 0.0;
};

/// Rows that are alike in what the table is grouped by; what it is not grouped by is empty.
struct Card {
    std::string device;
    std::string kind;
    std::string type;
    std::string stage;
    std::string size;
    int rows = 0;
    int refused = 0;
    Errors limit;
    Errors attainable;
    Errors expected;
    double coverage = 0.0;  // share of rows whose time lay within the expected range
};

enum class Grouping { full, kind, size, device };  // device x kind x type x stage; kind x stage; with size; device

std::vector<Card> cards(const Measurements& measured, std::span<const Expected> expected, Grouping grouping);

/// "up to 20 us", "20 us to 1 ms", "over 1 ms": start-up, ramp and steady state.
std::string_view size_class(double seconds);

/// Refused rows by reason, with the first few places of each.
struct RefusedCount {
    std::string reason;
    int rows = 0;
    std::string places;
};
std::vector<RefusedCount> count_refused(std::span<const Refusal> refused);

}  // namespace roofline::assess
