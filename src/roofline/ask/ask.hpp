// Questions and answers as JSON: the one interface of the page (as WebAssembly) and of the server. An answer is what
// `roofline VERB ... --format json` prints, to the digit.
//
//   question  { "verb": "predict" | "advise" | "plan" | "sweep" | "models" | "devices" | "model" | "device" | "options"
//                       | "explain" | "account",
//               "options": { "model": "llama-3.1-8b", "device": "h100-sxm", "batch": 8, "kv-cache-dtype": "fp8" ... },
//               "files": { "mine/config.json": "text" },
//               "binaries": { "mine.gguf": { "base64": "its first bytes", "size": bytes of the whole file } } }
//   answer    the document of the verb, with "command" among its "run": the command line that asks the same
//   or        { "error": { "text": "one line", "exit": 2, "needs": bytes of the file that are missing, or none } }
//
// Options have the long names of the command line; values are texts or numbers as one would type them. "options" lists
// what a verb takes, with help, defaults and choices. "explain" is the arithmetic of predict as text. "account" reads a
// report (files: one of them, named by the option "report") and gives back what a chart needs of it.
#pragma once

#include <string>
#include <string_view>

#include "roofline/ask/request_library.hpp"

namespace roofline::ask {

constexpr int stopped = 130;

struct Answer {
    std::string text;  // JSON
    int exit = 0;      // as the command line would exit; `stopped` where patience (core/patience.hpp) ran out
};

/// `time` goes into the answer's "run" as it is; empty: nobody knows the time.
Answer answer(std::string_view question, Memory& memory, const std::string& time = "");

}  // namespace roofline::ask
