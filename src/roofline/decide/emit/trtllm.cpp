// TensorRT-LLM: `trtllm-serve`, PyTorch backend. What has no flag goes into a file of options. With attention data
// parallelism every rank of --tp_size attends to its own sequences: groups of several devices have no spelling there.
#include <fmt/format.h>

#include "roofline/decide/emit.hpp"

namespace roofline::decide {

Result<std::string> trtllm_emit(const std::vector<Server>& servers) {
    std::string text;
    for (const Server& server : servers) {
        const model::Deployment& deployment = server.deployment;
        const bool grouped = deployment.groups > 1.0;
        if (grouped && deployment.tensor > 1.0) {
            return fail(
                fmt::format("--emit trtllm: {} has attention groups of {:.0f} devices each, but TensorRT-LLM "
                            "has them of one device only",
                            describe(deployment), deployment.tensor));
        }
        const char* part = server.part == Part::prompts ? "-prompts" : server.part == Part::outputs ? "-outputs" : "";
        const std::string options = fmt::format("options{}.yaml", part);
        text += heading(server, server.replicas);
        if (!server.weights.empty() && quantised_while_loading(server.weights) && server.weights.starts_with("fp8"))
            text += fmt::format("# MODEL must be a checkpoint in {}\n", server.weights);
        text += fmt::format("cat > {} <<'END'\nenable_chunked_prefill: true\n", options);
        if (grouped) text += "enable_attention_dp: true\n";
        if (deployment.exchanges_tokens() && deployment.exchange == model::ExpertExchange::all_to_all)
            text += "moe_config:\n  backend: WIDEEP\n";
        text += fmt::format("kv_cache_config:\n  free_gpu_memory_fraction: {:g}\n", server.utilisation);
        if (server.kv.starts_with("fp8")) text += "  dtype: fp8\n";
        if (server.drafted > 0.0 && server.draft.empty()) {
            text += fmt::format("speculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: {:.0f}\n",
                                server.drafted);
        } else if (server.drafted > 0.0) {
            text += fmt::format(
                "speculative_config:\n  decoding_type: DraftTarget\n  speculative_model_dir: {}\n  max_draft_len: "
                "{:.0f}\n",
                server.draft, server.drafted);
        }
        if (server.part != Part::whole) text += "cache_transceiver_config:\n  backend: DEFAULT\n";
        text += "END\n";
        std::vector<std::string> words = {"trtllm-serve", server.model};
        const auto number = [&](const char* flag, double value) {
            words.insert(words.end(), {flag, fmt::format("{:.0f}", value)});
        };
        number("--tp_size", deployment.tensor * deployment.groups);
        if (deployment.context > 1.0) number("--cp_size", deployment.context);
        if (deployment.pipeline > 1.0) number("--pp_size", deployment.pipeline);
        if (deployment.experts > 1.0) number("--ep_size", deployment.experts);
        number("--max_batch_size", server.sequences_of_a_group());
        number("--max_num_tokens", server.step_tokens);
        number("--max_seq_len", server.longest);
        words.insert(words.end(), {"--kv_cache_free_gpu_memory_fraction", fmt::format("{:g}", server.utilisation)});
        words.insert(words.end(), {"--extra_llm_api_options", options});
        text += as_command(words);
    }
    return text;
}

}  // namespace roofline::decide
