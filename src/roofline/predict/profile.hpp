// How an engine runs a model: which operators are kernels of their own, which ride along in another, how kernels are
// launched, and whose kernels they are. Data (data/profiles/*.json): a new engine is a new file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/record.hpp"

namespace roofline::predict {

struct Profile {
    /// What becomes of an operator. `op` names it by its style, by the last two parts of its name, by the last, or by
    /// its kind; the most exact rule counts, in this order.
    struct Rule {
        std::string op;
        std::string stage;      // "prefill", "decode"; empty: both
        double launches = 1.0;  // on average; 0: it rides along in a neighbour, and only its bytes cost
        double traffic = 1.0;   // bytes it moves, as a multiple of what it must
        double cache = 0.0;  // of a write to a cache: bytes it moves beside, as a multiple of what the cache then holds
        double pace = 1.0;   // times as long a byte as in a kernel that walks through memory in order

        bool plain() const { return launches == 1.0 && traffic == 1.0 && cache == 0.0 && pace == 1.0; }
    };

    std::string name = "engine";
    std::string title;
    std::vector<std::string> stacks;  // whose kernels, best first: they pick the calibration
    std::string kernels;              // one class for all kernels, where an engine was only timed as a whole
    std::string step = "graph_step";  // the class that turns the sum of kernels into the time of a step
    // Expected numbers of distinct experts assume that tokens choose evenly. Where kernels were timed on real text,
    // whose tokens do not, the formula itself says how many are touched, and the only weights that must be read
    // whatever is chosen are one token's.
    bool even_routing = true;
    std::vector<Rule> rules;
    std::map<std::string, std::string> elsewhere;  // vendor of the device -> the profile that holds there instead

    Rule rule_for(std::string_view operator_name, Kind kind, std::string_view stage, std::string_view style = {}) const;
};

}  // namespace roofline::predict
