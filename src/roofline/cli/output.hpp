// Where results go and how they are spelt: --format and -o.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/ask/parse.hpp"
#include "roofline/cli/verb.hpp"
#include "roofline/core/problem.hpp"

namespace roofline::cli {

using ask::parse_duration;
using ask::parse_positive;
using ask::parse_whole;
using ask::parts_of;

/// For the check of -o: a bare number is a length that was meant for --output-len, and no file of that name is left
/// behind.
std::string number_for_a_file(const std::string& name);

struct OutputOptions {
    std::string format = "table";
    std::string file;
    bool json_by_name = true;  // FILE.json says --format json, as every ending that is a format does

    void add_to(const Verb& verb, std::initializer_list<std::string> formats);
    /// Before long work: whether the file can be written.
    Result<void> check() const;
    /// To the file, or to stdout.
    Result<void> write(std::string_view text) const;
};

std::string now_iso();

}  // namespace roofline::cli
