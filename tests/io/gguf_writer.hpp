// Builds small GGUF files in memory, sound ones and broken ones. Weights are zeros.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "roofline/io/gguf.hpp"

namespace roofline::io::testing {

class GgufWriter {
  public:
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;  // for the data; write "general.alignment" to state another one

    GgufWriter& text(std::string_view key, std::string_view value) {
        begin_pair(key, 8);
        put_string(pairs_, value);
        return *this;
    }
    GgufWriter& u32(std::string_view key, std::uint32_t value) {
        begin_pair(key, 4);
        put(pairs_, value, 4);
        return *this;
    }
    GgufWriter& f32(std::string_view key, float value) {
        begin_pair(key, 6);
        put(pairs_, std::bit_cast<std::uint32_t>(value), 4);
        return *this;
    }
    GgufWriter& flag(std::string_view key, bool value) {
        begin_pair(key, 7);
        put(pairs_, value ? 1 : 0, 1);
        return *this;
    }
    // Any fixed-size scalar: its type id, its bits and its width.
    GgufWriter& scalar(std::string_view key, std::uint32_t type, std::uint64_t bits, std::size_t width) {
        begin_pair(key, type);
        put(pairs_, bits, width);
        return *this;
    }
    GgufWriter& u32s(std::string_view key, const std::vector<std::uint32_t>& values) {
        begin_array(key, 4, values.size());
        for (std::uint32_t value : values) {
            put(pairs_, value, 4);
        }
        return *this;
    }
    GgufWriter& flags(std::string_view key, const std::vector<bool>& values) {
        begin_array(key, 7, values.size());
        for (bool value : values) {
            put(pairs_, value ? 1 : 0, 1);
        }
        return *this;
    }
    GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
        begin_array(key, 8, values.size());
        for (const std::string& value : values) {
            put_string(pairs_, value);
        }
        return *this;
    }
    // The head of an array only: what follows it in the file is not what it claims.
    GgufWriter& begin_array(std::string_view key, std::uint32_t element, std::uint64_t count) {
        begin_pair(key, 9);
        put(pairs_, element, 4);
        put(pairs_, count, 8);
        return *this;
    }

    // Sizes in the order of the file: the fastest-running dimension first. Placed behind the tensor before it.
    GgufWriter& tensor(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& sizes) {
        std::uint64_t elements = 1;
        for (std::uint64_t size : sizes) {
            elements *= size;
        }
        const GgmlType* known = ggml_type(type);
        bool stored = known != nullptr && known->block > 0;
        std::uint64_t bytes = stored ? elements / known->block * known->bytes : 0;
        tensor_at(name, type, sizes, data_bytes_);
        data_bytes_ += (bytes + alignment - 1) / alignment * alignment;
        return *this;
    }
    GgufWriter& tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& sizes,
                          std::uint64_t offset) {
        put_string(table_, name);
        put(table_, sizes.size(), 4);
        for (std::uint64_t size : sizes) {
            put(table_, size, 8);
        }
        put(table_, type, 4);
        put(table_, offset, 8);
        ++tensor_count_;
        return *this;
    }

    // Without the data section: headers of real sizes are tested without holding real weights.
    std::vector<std::byte> header() const {
        std::vector<std::byte> out;
        for (char c : std::string_view("GGUF")) {
            out.push_back(static_cast<std::byte>(c));
        }
        put(out, version, 4);
        put(out, tensor_count_, 8);
        put(out, pair_count_, 8);
        out.insert(out.end(), pairs_.begin(), pairs_.end());
        out.insert(out.end(), table_.begin(), table_.end());
        return out;
    }
    std::uint64_t file_size() const { return (header().size() + alignment - 1) / alignment * alignment + data_bytes_; }
    std::vector<std::byte> file() const {
        std::vector<std::byte> out = header();
        out.resize(static_cast<std::size_t>(file_size()));
        return out;
    }

    static void put(std::vector<std::byte>& to, std::uint64_t bits, std::size_t width) {
        for (std::size_t i = 0; i < width; ++i) {
            to.push_back(static_cast<std::byte>(bits >> (8 * i) & 0xff));
        }
    }
    static void put_string(std::vector<std::byte>& to, std::string_view text) {
        put(to, text.size(), 8);
        for (char c : text) {
            to.push_back(static_cast<std::byte>(c));
        }
    }

  private:
    void begin_pair(std::string_view key, std::uint32_t type) {
        put_string(pairs_, key);
        put(pairs_, type, 4);
        ++pair_count_;
    }

    std::vector<std::byte> pairs_;
    std::vector<std::byte> table_;
    std::uint64_t pair_count_ = 0;
    std::uint64_t tensor_count_ = 0;
    std::uint64_t data_bytes_ = 0;
};

inline constexpr std::uint32_t f32_type = 0;
inline constexpr std::uint32_t q4_k_type = 12;
inline constexpr std::uint32_t q6_k_type = 14;

// A Llama of two layers: hidden 256, 4 heads of 64, 2 key-value heads, FFN 512, vocabulary 320.
inline GgufWriter tiny_llama() {
    GgufWriter writer;
    writer.text("general.architecture", "llama")
        .text("general.name", "Tiny")
        .u32("llama.block_count", 2)
        .u32("llama.context_length", 2048)
        .u32("llama.embedding_length", 256)
        .u32("llama.feed_forward_length", 512)
        .u32("llama.attention.head_count", 4)
        .u32("llama.attention.head_count_kv", 2)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
        .f32("llama.rope.freq_base", 10000.0F)
        .u32("llama.rope.dimension_count", 64)
        .texts("tokenizer.ggml.tokens", {"<s>", "a", "b"})
        .flag("tokenizer.ggml.add_bos_token", true)
        .tensor("token_embd.weight", q4_k_type, {256, 320});
    for (int i = 0; i < 2; ++i) {
        std::string block = "blk." + std::to_string(i) + ".";
        writer.tensor(block + "attn_norm.weight", f32_type, {256})
            .tensor(block + "attn_q.weight", q4_k_type, {256, 256})
            .tensor(block + "attn_k.weight", q4_k_type, {256, 128})
            .tensor(block + "attn_v.weight", q6_k_type, {256, 128})
            .tensor(block + "attn_output.weight", q4_k_type, {256, 256})
            .tensor(block + "ffn_norm.weight", f32_type, {256})
            .tensor(block + "ffn_gate.weight", q4_k_type, {256, 512})
            .tensor(block + "ffn_up.weight", q4_k_type, {256, 512})
            .tensor(block + "ffn_down.weight", q6_k_type, {512, 256});
    }
    writer.tensor("output_norm.weight", f32_type, {256}).tensor("output.weight", q6_k_type, {256, 320});
    return writer;
}

inline HeaderResult<Gguf> read(const std::vector<std::byte>& bytes, std::string_view file = "x.gguf") {
    return read_gguf(bytes, bytes.size(), file);
}

// The problem's line, "need more" or "" for success.
template <class T>
std::string problem_of(const HeaderResult<T>& result) {
    if (result) {
        return "";
    }
    const auto* problem = std::get_if<Problem>(&result.error());
    return problem != nullptr ? problem->text : "need more";
}

}  // namespace roofline::io::testing
