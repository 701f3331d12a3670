// What devices that share a context tell each other: in prefill every device needs the keys and values that its new
// tokens look at, new ones and those of earlier chunks, of which each device keeps a part; in decode the partial
// results over each part of the cache are put together (F38).
#pragma once

#include "roofline/model/reach.hpp"

namespace roofline::model {

class Lowering;

/// How far new tokens look, bytes of one cached entry, and of one token's attention output on this device.
void share_context(Lowering& lowering, const Reach& reach, double entry_bytes, double output_bytes);

}  // namespace roofline::model
