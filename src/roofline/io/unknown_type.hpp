// A model type that nobody here knows may be a Llama under another name, or something else under a Llama's fields. It
// is read by those fields only where every other field of its config is one that changes no count.
#pragma once

#include "roofline/io/fields.hpp"

namespace roofline::io {

/// Complains about the first field that the reader of last resort would pass over and that may change what is counted.
void refuse_unread_fields(Fields& config, std::string_view model_type);

}  // namespace roofline::io
