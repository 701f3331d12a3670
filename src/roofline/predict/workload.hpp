// What is asked of the model: how many sequences, how long the prompt, how far along, how much to write.
#pragma once

#include <string>
#include <vector>

#include "roofline/model/step.hpp"

namespace roofline::predict {

enum class StageKind { prefill, decode, mixed };

struct Workload {
    double batch = 1.0;      // sequences
    double prompt = 1024.0;  // new tokens per sequence in prefill
    double cached = 0.0;     // of a shared prefix whose keys and values are there already
    double context = 0.0;    // tokens in the cache when a token is decoded, itself included; 0: prompt + cached
    double generate = 128.0;
    double chunk = 0.0;  // > 0: a mixed step, this many prompt tokens beside the decoding
    std::vector<StageKind> stages = {StageKind::prefill, StageKind::decode};

    double decode_context() const { return context > 0.0 ? context : prompt + cached; }
};

inline model::Step step_of(const Workload& workload, StageKind stage) {
    switch (stage) {
        case StageKind::prefill:
            return model::prefill_step(workload.batch, workload.prompt, workload.cached);
        case StageKind::decode:
            return model::decode_step(workload.batch, workload.decode_context());
        case StageKind::mixed:
            return model::mixed_step(workload.batch, workload.decode_context(), workload.chunk, workload.cached, true);
    }
    return {};
}

inline std::string_view name(StageKind stage) {
    return stage == StageKind::prefill ? "prefill" : stage == StageKind::decode ? "decode" : "mixed";
}

}  // namespace roofline::predict
