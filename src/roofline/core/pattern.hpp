// What a kernel does with its operands: the part of its nature that decides which formula of time applies.
#pragma once

namespace roofline {

enum class Pattern {
    stream,      // element-wise work, norms, copies, gathers: bytes in, bytes out
    product,     // rows x weights
    experts,     // many small products, one for each expert that is touched
    attention,   // queries against cached keys and values
    latent,      // the same against one compressed entry that all heads share
    scan,        // a recurrence along the tokens
    collective,  // several devices exchange or add up what they hold
    step,        // a whole forward pass
};

}  // namespace roofline
