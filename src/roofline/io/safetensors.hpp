// safetensors, the weight file of Hugging Face models:
//
//   offset  what
//   0       n, the length of the header, uint64 little-endian, at most 100,000,000
//   8       header, n bytes of JSON (padded at the end with spaces):
//             { "__metadata__": { "format": "pt", ... },                        optional, strings only
//               "model.norm.weight": { "dtype": "BF16", "shape": [4096],
//                                      "data_offsets": [0, 8192] }, ... }       from the end of the header
//   8 + n   the weights; the tensors cover this part without holes and without overlaps, up to the end of the file
//
// A large model is several such files, named by model.safetensors.index.json:
//   { "metadata": { "total_size": 16060522496 },
//     "weight_map": { "lm_head.weight": "model-00004-of-00004.safetensors", ... } }
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/core/problem.hpp"
#include "roofline/io/tensors.hpp"

namespace roofline::io {

inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

// `prefix` is the beginning of a file of `file_size` bytes; `file` is what problems call it. Tensors come in the order
// of the header.
HeaderResult<std::vector<StoredTensor>> read_safetensors(std::span<const std::byte> prefix, std::uint64_t file_size,
                                                         std::string_view file);

// The distinct files of an index, sorted. They are plain names beside the index, never paths: an index may come from
// anywhere and must not make us open files elsewhere.
Result<std::vector<std::string>> read_safetensors_index(std::string_view text, std::string_view file);

}  // namespace roofline::io
