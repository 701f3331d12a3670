// What a replica does per second, whoever says so: the closed form or the simulation.
#pragma once

namespace roofline::serving {

struct Flow {
    double requests = 0.0;         // finished per second
    double prompt_tokens = 0.0;    // of prompts whose first token came, cached ones included, per second
    double output_tokens = 0.0;    // of all samples, per second
    double computed_tokens = 0.0;  // prompt tokens put through the model, recomputed ones included, per second
    double flops = 0.0;            // per second
    double memory_bytes = 0.0;     // per second
    double steps = 0.0;            // per second
    double decoding = 0.0;         // sequences in a step that write a token, mean over steps
    double step_seconds = 0.0;     // mean time from one step to the next while there is work
    double busy = 0.0;             // fraction of the time with a step under way
    double preemptions = 0.0;      // per finished request
};

}  // namespace roofline::serving
