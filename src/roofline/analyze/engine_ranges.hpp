// What the names that engines give their steps say about them. vLLM writes how many requests read a prompt and how many
// write, with their tokens, and where asked for details the lengths of their sequences too:
//
//   execute_context_1(512)_generation_3(3)
//   execute_515_context_1(sq512sk512sqsq262144sqsk262144)_generation_3(sq3sk3000sqsq3sqsk3000)
#pragma once

#include <optional>
#include <string_view>

namespace roofline::analyze {

struct Scheduled {
    struct Part {
        double requests = 0.0;
        double tokens = 0.0;   // new ones
        double lengths = 0.0;  // of their sequences together, new tokens included; zero: not said
    };
    Part reading;
    Part writing;
};

/// Empty where a name says nothing of the kind.
std::optional<Scheduled> scheduled_in(std::string_view name);

}  // namespace roofline::analyze
