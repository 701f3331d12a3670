// What devices that share a context tell each other: in prefill every device needs the keys and values of all new
// tokens, in decode the partial results over each part of the cache are put together (F38).
#pragma once

namespace roofline::model {

class Lowering;

/// Bytes of one cached entry, and of one token's attention output on this device.
void share_context(Lowering& lowering, double entry_bytes, double output_bytes);

}  // namespace roofline::model
