// The options of a question (ask/form.hpp) as flags of the command line, and this machine as the library that questions
// look things up in.
#pragma once

#include "roofline/ask/form.hpp"
#include "roofline/ask/library.hpp"
#include "roofline/cli/verb.hpp"

namespace roofline::cli {

/// Whether an option may hold a list: then its values are checked one by one by whoever takes it apart.
enum class Lists { refused, welcome };

/// `form` must outlive the parsing.
void add_to(const Verb& verb, ask::Form& form, Lists lists = Lists::refused);

/// Built-in names, and files as load.hpp finds them. Remembers constants it has read; safe for many threads.
const ask::Library& this_machine();

}  // namespace roofline::cli
