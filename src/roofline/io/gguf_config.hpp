// From the metadata of a GGUF file to the config.json that Hugging Face would have for the same model, so that one
// reader of configurations serves both. Keys are spelt as Hugging Face spells them for that model type; what GGUF does
// not store as a number (tied embeddings, biases, norms of q and k, the vocabulary) is read off the tensor table.
//
// Where Hugging Face nests the language model in "text_config", the result is that inner object with its own
// model_type ("gemma3_text", "llama4_text", "qwen3_5_moe_text"). Keys that are ours and not Hugging Face's:
//   attention_out_bias   a bias on the output projection of attention (attention_bias speaks of q, k and v)
//   gated_mlp            the feed-forward has a gate matrix beside the up matrix
// Both are there whenever the file has tensors, so that a reader may take them for model types it does not know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "roofline/core/problem.hpp"
#include "roofline/io/gguf.hpp"

namespace roofline::io {

// Takes a whole model (merge_splits first). `notes` receives what had to be assumed, one sentence each.
Result<nlohmann::json> config_from_gguf(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes);

}  // namespace roofline::io
