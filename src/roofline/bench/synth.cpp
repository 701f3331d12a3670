#include "roofline/bench/synth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "roofline/bench/numbers.hpp"
#include "roofline/io/gguf.hpp"
#include "roofline/model/gguf_mix.hpp"

namespace roofline::bench {
namespace {

// Ids of ggml.
constexpr std::uint32_t type_f32 = 0;
constexpr std::uint32_t type_f16 = 1;
constexpr std::uint32_t type_q4_0 = 2;
constexpr std::uint32_t type_q8_0 = 8;
constexpr std::uint32_t type_q4_k = 12;
constexpr std::uint32_t type_q5_k = 13;
constexpr std::uint32_t type_q6_k = 14;

/// What a file is called by: the type of its matrices and of its tables, and GGUF's own "file type", which tools print.
struct FileKind {
    std::string_view name;
    std::uint32_t matrices;
    std::uint32_t tables;
    std::uint32_t file_type;
    std::uint32_t more_bits;  // of layers that have them (model/gguf_mix.hpp)
};
constexpr auto file_kinds = std::to_array<FileKind>({
    {"f16", type_f16, type_f16, 1, type_f16},
    {"q8_0", type_q8_0, type_q8_0, 7, type_q8_0},
    {"q4_0", type_q4_0, type_q4_0, 2, type_q4_0},
    {"q6_k", type_q6_k, type_q6_k, 18, type_q6_k},
    {"q4_k_m", type_q4_k, type_q6_k, 15, type_q6_k},
    {"q5_k_m", type_q5_k, type_q6_k, 17, type_q6_k},
});
constexpr std::uint64_t alignment = 32;
constexpr std::uint64_t piece_bytes = 4ULL << 20U;

class Header {
  public:
    template <class T>
    void number(T value) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    }
    void text(std::string_view value) {
        number(static_cast<std::uint64_t>(value.size()));
        const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
        bytes_.insert(bytes_.end(), bytes, bytes + value.size());
    }
    void key(std::string_view name, io::GgufType type) {
        text(name);
        number(static_cast<std::uint32_t>(type));
        ++keys_;
    }
    void string(std::string_view name, std::string_view value) {
        key(name, io::GgufType::string);
        text(value);
    }
    void count(std::string_view name, std::int64_t value) {
        key(name, io::GgufType::u32);
        number(static_cast<std::uint32_t>(value));
    }
    void real(std::string_view name, float value) {
        key(name, io::GgufType::f32);
        number(value);
    }
    void flag(std::string_view name, bool value) {
        key(name, io::GgufType::boolean);
        number(static_cast<std::uint8_t>(value));
    }
    void array(std::string_view name, io::GgufType element, std::uint64_t size) {
        key(name, io::GgufType::array);
        number(static_cast<std::uint32_t>(element));
        number(size);
    }
    std::uint64_t keys() const { return keys_; }
    std::vector<std::byte>& bytes() { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
    std::uint64_t keys_ = 0;
};

std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

std::uint64_t tensor_bytes(const SynthTensor& tensor) {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.sizes) elements *= size;
    const io::GgmlType* type = io::ggml_type(tensor.type);
    return elements / type->block * type->bytes;
}

std::vector<SynthTensor> list_tensors(const LlamaShape& shape, const SynthOptions& options, const FileKind& kind) {
    std::vector<SynthTensor> tensors;
    const auto add = [&](std::string name, std::int64_t inner, std::int64_t outer, std::uint32_t type = type_f32) {
        SynthTensor& tensor = tensors.emplace_back();
        tensor.name = std::move(name);
        tensor.sizes = {static_cast<std::uint64_t>(inner)};
        if (outer > 0) tensor.sizes.push_back(static_cast<std::uint64_t>(outer));
        tensor.type = type;
    };
    const std::int64_t q = shape.query_heads * shape.head_dim;
    const std::int64_t kv = shape.kv_heads * shape.head_dim;
    add("token_embd.weight", shape.hidden, shape.vocabulary, kind.tables);
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        const std::string block = fmt::format("blk.{}.", layer);
        const bool more = model::has_more_bits(static_cast<std::size_t>(layer), static_cast<std::size_t>(shape.layers));
        const std::uint32_t type = kind.matrices;
        const std::uint32_t wider = more ? kind.more_bits : type;
        add(block + "attn_norm.weight", shape.hidden, 0);
        add(block + "attn_q.weight", shape.hidden, q, type);
        add(block + "attn_k.weight", shape.hidden, kv, type);
        add(block + "attn_v.weight", shape.hidden, kv, wider);
        if (shape.bias) {
            add(block + "attn_q.bias", q, 0);
            add(block + "attn_k.bias", kv, 0);
            add(block + "attn_v.bias", kv, 0);
        }
        if (shape.qk_norm) {
            add(block + "attn_q_norm.weight", shape.head_dim, 0);
            add(block + "attn_k_norm.weight", shape.head_dim, 0);
        }
        add(block + "attn_output.weight", q, shape.hidden, type);
        add(block + "ffn_norm.weight", shape.hidden, 0);
        add(block + "ffn_gate.weight", shape.hidden, shape.ffn_width, type);
        add(block + "ffn_up.weight", shape.hidden, shape.ffn_width, type);
        add(block + "ffn_down.weight", shape.ffn_width, shape.hidden, wider);
    }
    add("output_norm.weight", shape.hidden, 0);
    if (!options.tied) add("output.weight", shape.hidden, shape.vocabulary, kind.tables);
    std::uint64_t offset = 0;
    for (SynthTensor& tensor : tensors) {
        tensor.bytes = tensor_bytes(tensor);
        tensor.offset = offset;
        offset += padded(tensor.bytes);
    }
    return tensors;
}

/// The least that llama.cpp's sentencepiece loader wants: three special tokens, all bytes, and words for the rest.
void add_vocabulary(Header& header, std::int64_t vocabulary) {
    const auto size = static_cast<std::uint64_t>(vocabulary);
    constexpr std::uint64_t special = 3;
    header.string("tokenizer.ggml.model", "llama");
    header.array("tokenizer.ggml.tokens", io::GgufType::string, size);
    for (std::uint64_t i = 0; i < size; ++i) {
        static constexpr std::string_view names[special] = {"<unk>", "<s>", "</s>"};
        header.text(i < special         ? std::string(names[i])
                    : i < special + 256 ? fmt::format("<0x{:02X}>", i - special)
                                        : fmt::format("\u2581w{}", i));
    }
    header.array("tokenizer.ggml.scores", io::GgufType::f32, size);
    for (std::uint64_t i = 0; i < size; ++i) header.number(-static_cast<float>(i));
    header.array("tokenizer.ggml.token_type", io::GgufType::i32, size);
    for (std::uint64_t i = 0; i < size; ++i) {
        // 1 a word, 2 unknown, 3 control, 6 a byte
        header.number(static_cast<std::int32_t>(i == 0 ? 2 : i < special ? 3 : i < special + 256 ? 6 : 1));
    }
    header.count("tokenizer.ggml.unknown_token_id", 0);
    header.count("tokenizer.ggml.bos_token_id", 1);
    header.count("tokenizer.ggml.eos_token_id", 2);
    header.flag("tokenizer.ggml.add_bos_token", true);
    header.flag("tokenizer.ggml.add_eos_token", false);
}

/// The numbers in fp16 in a block, by which random bits become weights of a size, in parts of it.
struct Unit {
    std::size_t place;
    float of_magnitude;
};
std::vector<Unit> units_of(std::uint32_t type) {
    switch (type) {
        case type_q4_0:
            return {{0, 1.0F / 8.0F}};
        case type_q8_0:
            return {{0, 1.0F / 127.0F}};
        case type_q4_k:  // scales of six bits; what is taken off is their mean
            return {{0, 1.0F / (8.0F * 32.0F)}, {2, 1.0F / 32.0F}};
        case type_q5_k:
            return {{0, 1.0F / (16.0F * 32.0F)}, {2, 1.0F / 32.0F}};
        default:  // q6_k: behind 128 bytes of low halves, 64 of upper bits, 16 scales
            return {{208, 1.0F / (32.0F * 64.0F)}};
    }
}

/// Whole blocks of a type, weights of about the size that keeps activations in bounds.
std::vector<std::byte> random_piece(std::uint32_t type, std::uint64_t inner, std::uint64_t seed) {
    const float magnitude = std::sqrt(3.0F / static_cast<float>(inner));
    constexpr std::uint64_t all_blocks = 942480;  // whole ones of 2, 4, 18, 34, 144, 176 and 210 bytes at once
    std::vector<std::byte> piece(piece_bytes / all_blocks * all_blocks);
    if (type == type_f32) {
        const float one = 1.0F;
        for (std::size_t at = 0; at + 4 <= piece.size(); at += 4) std::memcpy(piece.data() + at, &one, 4);
        return piece;
    }
    if (type == type_f16) {
        for (std::size_t at = 0; at + 2 <= piece.size(); at += 2) {
            const std::uint16_t value = to_half(magnitude * random_value(seed + at));
            std::memcpy(piece.data() + at, &value, 2);
        }
        return piece;
    }
    const std::size_t block = io::ggml_type(type)->bytes;
    for (std::size_t at = 0; at + block <= piece.size(); at += block) {
        for (std::size_t i = 0; i < block; i += 8) {
            const std::uint64_t bits = mixed(seed + at + i);
            std::memcpy(piece.data() + at + i, &bits, std::min<std::size_t>(8, block - i));
        }
        for (const Unit& unit : units_of(type)) {
            const std::uint16_t scale = to_half(magnitude * unit.of_magnitude);
            std::memcpy(piece.data() + at + unit.place, &scale, 2);
        }
    }
    return piece;
}

}  // namespace

Result<SynthPlan> plan_synth(const LlamaShape& shape, const SynthOptions& options) {
    const auto kind = std::ranges::find(file_kinds, options.dtype, &FileKind::name);
    if (kind == file_kinds.end()) {
        return fail(
            fmt::format("--dtype: found \"{}\", expected f16, q8_0, q4_0, q6_k, q4_k_m or q5_k_m", options.dtype));
    }
    if (shape.vocabulary < 259)
        return fail(fmt::format("a vocabulary of {} has no room for all bytes", shape.vocabulary));
    if (shape.bias && shape.qk_norm) return fail("no architecture of llama.cpp has both biases and norms on Q and K");
    const auto block = static_cast<std::int64_t>(std::max<std::uint64_t>(32, io::ggml_type(kind->matrices)->block));
    for (const std::int64_t inner : {shape.hidden, shape.ffn_width, shape.query_heads * shape.head_dim}) {
        if (inner % block != 0) {
            return fail(fmt::format("a width of {} is no multiple of {}, which blocks of {} need", inner, block,
                                    options.dtype));
        }
    }
    SynthPlan plan;
    plan.tensors = list_tensors(shape, options, *kind);
    const std::string family = shape.qk_norm ? "qwen3" : shape.bias ? "qwen2" : "llama";
    Header header;
    header.string("general.architecture", family);
    header.string("general.name", options.name + " with random weights");
    header.count("general.file_type", kind->file_type);
    header.count("general.alignment", alignment);
    header.count(family + ".block_count", shape.layers);
    header.count(family + ".context_length", options.context);
    header.count(family + ".embedding_length", shape.hidden);
    header.count(family + ".feed_forward_length", shape.ffn_width);
    header.count(family + ".attention.head_count", shape.query_heads);
    header.count(family + ".attention.head_count_kv", shape.kv_heads);
    header.count(family + ".attention.key_length", shape.head_dim);
    header.count(family + ".attention.value_length", shape.head_dim);
    header.real(family + ".attention.layer_norm_rms_epsilon", 1e-5F);
    header.count(family + ".rope.dimension_count", shape.head_dim);
    header.real(family + ".rope.freq_base", 10000.0F);
    header.count(family + ".vocab_size", shape.vocabulary);
    add_vocabulary(header, shape.vocabulary);

    Header file;
    for (const char letter : std::string_view("GGUF")) file.number(letter);
    file.number(std::uint32_t{3});
    file.number(static_cast<std::uint64_t>(plan.tensors.size()));
    file.number(header.keys());
    file.bytes().insert(file.bytes().end(), header.bytes().begin(), header.bytes().end());
    for (const SynthTensor& tensor : plan.tensors) {
        file.text(tensor.name);
        file.number(static_cast<std::uint32_t>(tensor.sizes.size()));
        for (const std::uint64_t size : tensor.sizes) file.number(size);
        file.number(tensor.type);
        file.number(tensor.offset);
        plan.data_bytes = tensor.offset + padded(tensor.bytes);
    }
    file.bytes().resize(padded(file.bytes().size()));
    plan.header = std::move(file.bytes());
    return plan;
}

bool write_synth(const SynthPlan& plan, const std::function<bool(std::span<const std::byte>)>& write) {
    if (!write(plan.header)) return false;
    std::uint64_t seed = 0;
    std::vector<std::byte> piece;
    std::uint32_t piece_type = ~0U;
    std::uint64_t piece_inner = 0;
    for (const SynthTensor& tensor : plan.tensors) {
        // The same random numbers serve all tensors of a kind: what they are does not matter, that they differ does.
        if (tensor.type != piece_type || tensor.sizes[0] != piece_inner) {
            piece = random_piece(tensor.type, tensor.sizes[0], seed += 1ULL << 32U);
            piece_type = tensor.type;
            piece_inner = tensor.sizes[0];
        }
        for (std::uint64_t at = 0; at < tensor.bytes; at += piece.size()) {
            const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), tensor.bytes - at));
            if (!write(std::span(piece).first(size))) return false;
        }
        const std::vector<std::byte> padding(padded(tensor.bytes) - tensor.bytes);
        if (!padding.empty() && !write(padding)) return false;
    }
    return true;
}

}  // namespace roofline::bench
