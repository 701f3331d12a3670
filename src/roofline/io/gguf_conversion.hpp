// One conversion of a GGUF's metadata into a config.json: what it reads with, and what it has found so far. The steps
// that every model takes are in gguf_config.cpp, those of single architectures in gguf_kinds.cpp.
//
// Reads go through `number`, `each_layer` and `has`, which remember the first thing that is wrong, so that the steps
// stay free of error handling; nothing is returned once `problem` is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "roofline/core/problem.hpp"
#include "roofline/io/gguf.hpp"
#include "roofline/io/gguf_architectures.hpp"

namespace roofline::io {

class GgufConversion {
  public:
    // Beyond these a number is a mistake or an attack; layer lists are built from the first.
    static constexpr std::uint64_t most_layers = 4096;
    static constexpr std::uint64_t largest_size = std::uint64_t{1} << 31;

    GgufConversion(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes);

    Result<nlohmann::json> run();

  private:
    // Reading.
    std::string full_key(std::string_view key) const;
    void complain(std::string text);
    std::optional<std::uint64_t> maybe(std::string_view key, std::uint64_t most = largest_size);
    std::uint64_t number(std::string_view key, std::uint64_t most = largest_size);
    // A number for each layer: the same for all, or from an array. Empty where the key is absent.
    std::vector<std::uint64_t> each_layer(std::string_view key);
    // One number for the layers that have any; zeros mark layers without. Where they differ the mean keeps the sum.
    std::uint64_t common(const std::vector<std::uint64_t>& values, std::string_view key);
    bool has(const std::string& name) const;
    // Whether any layer has such a tensor ("attn_q.bias").
    bool any_layer(std::string_view what) const;
    // The size of a dimension of the first layer's tensor of that name, counted from the fastest-running one.
    std::optional<std::uint64_t> size_of(std::string_view what, std::size_t dimension) const;
    void set_if(const char* to, std::optional<std::uint64_t> value);
    void set_real(const char* to, std::string_view key);

    // What every model has.
    void write_size();
    void write_attention();
    void write_windows();
    void write_feed_forward();

    // What one kind of architecture has besides.
    void write_kind();
    void write_latent();
    void write_delta();
    void write_nemotron();
    void write_mamba();
    void write_periodic(const char* period_key, const char* offset_key, const std::vector<bool>& marked);
    void write_jamba();
    void write_granite_hybrid();
    void write_llama4();
    void write_gemma4();
    void write_falcon();
    void write_gpt2();
    void write_lfm2();
    void write_falcon_h1();

    const Gguf& gguf_;
    std::string_view file_;
    std::vector<std::string>& notes_;
    std::unordered_map<std::string, const StoredTensor*> tensors_;

    std::string_view architecture_;
    GgufArchitecture mapping_;
    std::uint64_t layers_ = 0;
    std::uint64_t hidden_ = 1;
    std::uint64_t heads_ = 1;
    std::uint64_t experts_ = 0;
    std::vector<std::uint64_t> kv_heads_each_;
    std::vector<std::uint64_t> widths_;

    nlohmann::json config_ = nlohmann::json::object();
    std::optional<Problem> problem_;
};

}  // namespace roofline::io
