// GGUF, the file of llama.cpp and its relatives: metadata, a table of tensors, then the weights. Only the part before
// the weights is read here; what the metadata means for a model is in gguf_config.hpp.
//
//   offset  what
//   0       "GGUF"
//   4       version, uint32: 3 today, 2 has the same layout, 1 (32-bit counts) is refused
//   8       number of tensors, uint64
//   16      number of metadata pairs, uint64
//   24      metadata, one pair after another:
//             key      string
//             type     uint32: 0 u8, 1 i8, 2 u16, 3 i16, 4 u32, 5 i32, 6 f32, 7 bool (one byte), 8 string, 9 array,
//                              10 u64, 11 i64, 12 f64
//             value    of that type; an array is: element type uint32, count uint64, then the elements
//   ...     tensors, one after another:
//             name     string
//             rank     uint32, at most 4
//             sizes    rank x uint64, the fastest-running dimension first (the reverse of what PyTorch prints)
//             type     uint32, the ggml type; decides how many weights share a block and the bytes of that block
//             offset   uint64, from the start of the data section, a multiple of the alignment
//   ...     zeros up to the next multiple of the alignment (metadata "general.alignment", 32 if absent)
//   ...     the data section
//
// A string is a uint64 length and that many bytes, no terminator. Everything is little-endian; version 3 allows
// big-endian files, which can be told by the version's bytes lying the other way round, and which are refused.
// A model may be cut into parts "name-00001-of-00003.gguf": each is a whole GGUF with its own tensors and the keys
// split.no (from 0), split.count and split.tensors.count; the model's own metadata are in part 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::io {

// How a ggml type stores weights: `block` weights in `bytes` bytes, scales included.
struct GgmlType {
    std::string_view name;
    std::uint32_t block = 0;  // 0: the id is not in use, or no longer
    std::uint32_t bytes = 0;
};

// Null where the id is unknown; an entry with block 0 where the type was withdrawn from the format.
const GgmlType* ggml_type(std::uint32_t id);

enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

struct GgufArray {
    GgufType element = GgufType::u8;
    std::uint64_t count = 0;
    std::vector<double> values;  // numbers and bools (0 or 1); empty for strings and beyond gguf_kept_elements
};

// Longer arrays are token scores and the like: only their count is of use here.
inline constexpr std::uint64_t gguf_kept_elements = 65536;

using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray>;

struct Gguf {
    std::uint32_t version = 0;
    std::map<std::string, GgufValue, std::less<>> metadata;
    std::vector<StoredTensor> tensors;
    std::uint64_t header_bytes = 0;  // up to the end of the tensor table
    std::uint64_t data_offset = 0;   // header_bytes, aligned

    // Empty where the key is absent or holds another kind of value; a signed value that is not negative counts as
    // unsigned, and every number as a number.
    std::optional<std::uint64_t> unsigned_at(std::string_view key) const;
    std::optional<double> number_at(std::string_view key) const;
    std::optional<std::string_view> string_at(std::string_view key) const;
    std::optional<bool> bool_at(std::string_view key) const;
    std::optional<std::span<const double>> numbers_at(std::string_view key) const;  // arrays whose values were kept
    std::optional<std::uint64_t> count_at(std::string_view key) const;              // elements of any array

    const StoredTensor* tensor(std::string_view name) const;  // a linear search
};

// `prefix` is the beginning of a file of `file_size` bytes; `file` is what problems call it.
HeaderResult<Gguf> read_gguf(std::span<const std::byte> prefix, std::uint64_t file_size, std::string_view file);

// One model from all parts of a split file, in any order; a single unsplit part passes through.
Result<Gguf> merge_splits(std::vector<Gguf> parts, std::string_view file);

// All names of the set to which a "-00002-of-00003.gguf" belongs, in order; any other name gives itself alone.
std::vector<std::string> split_siblings(std::string_view file_name);

}  // namespace roofline::io
