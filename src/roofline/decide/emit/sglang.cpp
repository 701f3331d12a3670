// SGLang: `python -m sglang.launch_server`. Its --tp-size counts all devices of a stage; with --enable-dp-attention
// --dp-size of them attend to their own sequences, and the limits below are shared out among those.
#include <fmt/format.h>

#include "roofline/decide/emit.hpp"

namespace roofline::decide {

Result<std::string> sglang_emit(const std::vector<Server>& servers) {
    std::string text;
    for (const Server& server : servers) {
        const model::Deployment& deployment = server.deployment;
        const bool grouped = deployment.groups > 1.0;
        const bool copies_are_ranks = !grouped && server.part == Part::whole;
        text += heading(server, copies_are_ranks ? 1.0 : server.replicas);
        std::vector<std::string> words = {"python", "-m", "sglang.launch_server", "--model-path", server.model};
        const auto number = [&](const char* flag, double value) {
            words.insert(words.end(), {flag, fmt::format("{:.0f}", value)});
        };
        number("--tp-size", deployment.stage_devices());
        if (deployment.pipeline > 1.0) number("--pp-size", deployment.pipeline);
        if (grouped) {
            number("--dp-size", deployment.groups);
            words.emplace_back("--enable-dp-attention");
        } else if (copies_are_ranks && server.replicas > 1.0) {
            number("--dp-size", server.replicas);
        }
        if (deployment.context > 1.0) {
            number("--attn-cp-size", deployment.context);
            words.insert(words.end(), {"--enable-prefill-cp", "--cp-strategy", "zigzag"});
        }
        if (deployment.experts > 1.0) number("--ep-size", deployment.experts);
        if (deployment.exchanges_tokens() && deployment.exchange == model::ExpertExchange::all_to_all)
            words.insert(words.end(), {"--moe-a2a-backend", "deepep"});
        number("--max-running-requests", server.sequences);
        number("--chunked-prefill-size", server.step_tokens * deployment.groups);
        if (server.part == Part::whole) words.emplace_back("--enable-mixed-chunk");
        number("--context-length", server.longest);
        words.insert(words.end(), {"--mem-fraction-static", fmt::format("{:g}", server.utilisation)});
        if (server.weights == "fp8" || server.weights == "fp8_e4m3") {
            words.insert(words.end(), {"--quantization", "fp8"});
        } else if (server.weights == "bf16" || server.weights == "fp16") {
            words.insert(words.end(), {"--dtype", server.weights == "bf16" ? "bfloat16" : "float16"});
        }
        if (server.kv.starts_with("fp8"))
            words.insert(words.end(), {"--kv-cache-dtype", server.kv == "fp8" ? "fp8_e4m3" : server.kv});
        if (server.drafted > 0.0) {
            // A chain of guesses: one candidate at each place, and one token more than guesses to check.
            words.insert(words.end(), {"--speculative-algorithm", server.draft.empty() ? "NEXTN" : "STANDALONE"});
            if (!server.draft.empty()) words.insert(words.end(), {"--speculative-draft-model-path", server.draft});
            number("--speculative-num-steps", server.drafted);
            number("--speculative-eagle-topk", 1.0);
            number("--speculative-num-draft-tokens", server.drafted + 1.0);
        }
        if (server.part == Part::prompts) words.insert(words.end(), {"--disaggregation-mode", "prefill"});
        if (server.part == Part::outputs) words.insert(words.end(), {"--disaggregation-mode", "decode"});
        text += as_command(words);
    }
    return text;
}

}  // namespace roofline::decide
