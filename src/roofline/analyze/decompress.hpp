// Compressed streams as plain ones: gzip (RFC 1952, members one after another too) and zstd (RFC 8878), recognised by
// their first bytes. One level only: what was compressed twice is not unpacked twice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "roofline/analyze/input.hpp"

namespace roofline::analyze {

/// How much a stream may grow: past the first `free_bytes` of output, no more than `largest_growth` bytes for one byte
/// of the file. Traces grow by 10 to 60; a file made to fill a disk grows by a thousand and more.
struct GrowthLimit {
    std::uint64_t free_bytes = std::uint64_t{64} << 20U;
    std::uint64_t largest_growth = 250;
};

enum class Compression { none, gzip, zstd };
Compression compression_of(std::string_view first_bytes);

/// The bytes themselves where they are not compressed. `name` is for messages. A problem where the library that unpacks
/// them is not on this machine.
Result<std::unique_ptr<ByteSource>> decompressed(std::unique_ptr<ByteSource> bytes, const std::string& name,
                                                 GrowthLimit limit = {});

}  // namespace roofline::analyze
