// vLLM: `vllm serve`, flags as of 0.10 and later. A scheduler belongs to a data-parallel rank, so its limits are those
// of an attention group. Copies of a dense model are data-parallel ranks too; those of a model with experts would share
// them, so they are started by themselves. Prefill context parallelism, newer than the rest, adds devices to the tensor
// ranks, and its ranks share the cache too.
#include <fmt/format.h>

#include "roofline/decide/emit.hpp"

namespace roofline::decide {

Result<std::string> vllm_emit(const std::vector<Server>& servers) {
    std::string text;
    for (const Server& server : servers) {
        const model::Deployment& deployment = server.deployment;
        const bool copies_are_ranks = !server.experts && deployment.groups == 1.0;
        const double ranks = copies_are_ranks ? server.replicas : deployment.groups;
        text += heading(server, copies_are_ranks ? 1.0 : server.replicas);
        std::vector<std::string> words = {"vllm", "serve", server.model};
        const auto number = [&](const char* flag, double value) {
            words.insert(words.end(), {flag, fmt::format("{:.0f}", value)});
        };
        number("--tensor-parallel-size", deployment.tensor);
        if (deployment.pipeline > 1.0) number("--pipeline-parallel-size", deployment.pipeline);
        if (deployment.context > 1.0) number("--prefill-context-parallel-size", deployment.context);
        if (ranks > 1.0) number("--data-parallel-size", ranks);
        if (deployment.experts > 1.0) words.emplace_back("--enable-expert-parallel");
        if (deployment.exchanges_tokens() && deployment.exchange == model::ExpertExchange::all_to_all) {
            // Gathering is the default. Of the two kinds of DeepEP one is for long steps and runs without graphs.
            words.insert(words.end(), {"--all2all-backend",
                                       server.part == Part::prompts ? "deepep_high_throughput" : "deepep_low_latency"});
        }
        number("--max-num-seqs", server.sequences_of_a_group());
        number("--max-num-batched-tokens", server.step_tokens);
        number("--max-model-len", server.longest);
        words.insert(words.end(), {"--gpu-memory-utilization", fmt::format("{:g}", server.utilisation)});
        if (server.weights == "fp8" || server.weights == "fp8_e4m3") {
            words.insert(words.end(), {"--quantization", "fp8"});
        } else if (server.weights == "bf16" || server.weights == "fp16") {
            words.insert(words.end(), {"--dtype", server.weights == "bf16" ? "bfloat16" : "float16"});
        }
        if (server.kv.starts_with("fp8")) words.insert(words.end(), {"--kv-cache-dtype", server.kv});
        if (server.drafted > 0.0) {
            const std::string who =
                server.draft.empty() ? R"("method":"mtp")" : fmt::format(R"("model":"{}")", server.draft);
            words.insert(words.end(), {"--speculative-config",
                                       fmt::format(R"({{{},"num_speculative_tokens":{:.0f}}})", who, server.drafted)});
        }
        if (server.part != Part::whole) {
            words.insert(words.end(),
                         {"--kv-transfer-config", R"({"kv_connector":"NixlConnector","kv_role":"kv_both"})"});
        }
        text += as_command(words);
    }
    return text;
}

}  // namespace roofline::decide
