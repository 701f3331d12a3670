#include "roofline/ask/memory_options.hpp"

#include <tuple>

#include <fmt/format.h>

#include "roofline/ask/parse.hpp"
#include "roofline/io/engine_file.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::ask {

void MemoryFlags::add_to(Form& form) {
    const char* group = "Memory (default: what the model needs)";
    form.text("--engine", engine,
              fmt::format("Who shares out the memory: {}, or a file", fmt::join(io::builtin_engine_names(), ", ")))
        .in(group)
        .of_type("NAME");
    form.text("--gpu-memory-utilization", utilisation, "Share of the memory that the engine may take")
        .in(group)
        .of_type("SHARE");
    form.text("--block-size", block, "Tokens in a block of the KV cache").in(group).of_type("N");
    form.text("--max-model-len", longest, "Longest context the engine is started for").in(group).of_type("N");
    form.text("--max-num-seqs", sequences, "Sequences that run at once, at most").in(group).of_type("N");
    form.text("--max-num-batched-tokens", step_tokens, "Tokens of a step, at most").in(group).of_type("N");
}

Result<std::optional<predict::MemoryOptions>> MemoryFlags::load(const Library& library) const {
    const bool asked =
        !utilisation.empty() || !block.empty() || !longest.empty() || !sequences.empty() || !step_tokens.empty();
    if (engine.empty() && !asked) return std::optional<predict::MemoryOptions>();
    predict::MemoryOptions options;
    // Flags of an engine without its name are vLLM's, whose names they are.
    const std::string named = engine.empty() ? "vllm" : engine;
    Result<predict::EngineRules> rules = fail("");
    if (named.ends_with(".json")) {
        const auto text = library.file(named);
        if (!text) return std::unexpected(text.error());
        if (!*text) return fail(fmt::format("--engine: {}: no such file", io::printable(named)));
        rules = io::read_engine(**text, named);
    } else {
        rules = io::builtin_engine(named);
    }
    if (!rules) return std::unexpected(rules.error());
    options.rules = std::move(*rules);
    if (!utilisation.empty()) {
        const auto share = parse_positive("--gpu-memory-utilization", utilisation);
        if (!share) return std::unexpected(share.error());
        if (*share > 1.0)
            return fail(fmt::format("--gpu-memory-utilization: found {}, expected a share up to 1", utilisation));
        options.utilisation = *share;
    }
    for (const auto& [option, text, target] :
         {std::tuple{"--block-size", &block, &options.block_tokens},
          std::tuple{"--max-model-len", &longest, &options.longest},
          std::tuple{"--max-num-seqs", &sequences, &options.sequences},
          std::tuple{"--max-num-batched-tokens", &step_tokens, &options.step_tokens}}) {
        if (text->empty()) continue;
        const auto value = parse_whole(option, *text, 1.0, 1e9);
        if (!value) return std::unexpected(value.error());
        *target = *value;
    }
    return std::optional(options);
}

}  // namespace roofline::ask
