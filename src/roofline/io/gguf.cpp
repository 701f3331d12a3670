#include "roofline/io/gguf.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "roofline/core/sort.hpp"

namespace roofline::io {

namespace {

// Indexed by ggml type id. The bytes are those of the block structs: for the 256-weight ("K") blocks two-byte super
// scales, packed sub-block scales, then the bits of the weights.
constexpr std::array ggml_types = {
    GgmlType{"F32", 1, 4},        GgmlType{"F16", 1, 2},        GgmlType{"Q4_0", 32, 18},  // 2 scale + 16
    GgmlType{"Q4_1", 32, 20},                                                              // 2 scale + 2 minimum + 16
    GgmlType{"Q4_2", 0, 0},                                                                // withdrawn
    GgmlType{"Q4_3", 0, 0},                                                                // withdrawn
    GgmlType{"Q5_0", 32, 22},                                                              // 2 + 4 high bits + 16
    GgmlType{"Q5_1", 32, 24},     GgmlType{"Q8_0", 32, 34},                                // 2 + 32
    GgmlType{"Q8_1", 32, 36},                                                              // 2 + 2 + 32
    GgmlType{"Q2_K", 256, 84},                                                             // 4 + 16 scales + 64
    GgmlType{"Q3_K", 256, 110},  // 2 + 12 scales + 64 + 32 high bits
    GgmlType{"Q4_K", 256, 144},  // 4 + 12 scales + 128
    GgmlType{"Q5_K", 256, 176},  // 4 + 12 scales + 128 + 32 high bits
    GgmlType{"Q6_K", 256, 210},  // 2 + 16 scales + 128 + 64 high bits
    GgmlType{"Q8_K", 256, 292},  // 4 + 256 + 32 sums
    GgmlType{"IQ2_XXS", 256, 66}, GgmlType{"IQ2_XS", 256, 74},  GgmlType{"IQ3_XXS", 256, 98},
    GgmlType{"IQ1_S", 256, 50},   GgmlType{"IQ4_NL", 32, 18},   GgmlType{"IQ3_S", 256, 110},
    GgmlType{"IQ2_S", 256, 82},   GgmlType{"IQ4_XS", 256, 136}, GgmlType{"I8", 1, 1},
    GgmlType{"I16", 1, 2},        GgmlType{"I32", 1, 4},        GgmlType{"I64", 1, 8},
    GgmlType{"F64", 1, 8},        GgmlType{"IQ1_M", 256, 56},   GgmlType{"BF16", 1, 2},
    GgmlType{"Q4_0_4_4", 0, 0},  // 31 to 33, 36 to 38: repacked at load time today, no longer stored
    GgmlType{"Q4_0_4_8", 0, 0},   GgmlType{"Q4_0_8_8", 0, 0},   GgmlType{"TQ1_0", 256, 54},
    GgmlType{"TQ2_0", 256, 66},   GgmlType{"IQ4_NL_4_4", 0, 0}, GgmlType{"IQ4_NL_4_8", 0, 0},
    GgmlType{"IQ4_NL_8_8", 0, 0}, GgmlType{"MXFP4", 32, 17},  // 1 scale (E8M0) + 16
    GgmlType{"NVFP4", 64, 36},                                // 4 scales (E4M3, one for 16 weights) + 32
    GgmlType{"Q1_0", 128, 18},                                // 2 + 16
    GgmlType{"Q2_0", 64, 18},                                 // 2 + 16
};
static_assert(ggml_types.size() == 43);

constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t longest_name = 65535;
constexpr std::uint32_t most_dimensions = 4;

// Least bytes a metadata pair (key length, type, one byte of value) and a tensor entry (name length, rank, type,
// offset) can take. They bound what a count may claim before anything is reserved for it.
constexpr std::uint64_t least_pair_bytes = 8 + 4 + 1;
constexpr std::uint64_t least_tensor_bytes = 8 + 4 + 4 + 8;

// Zero for types that have no fixed size.
constexpr std::uint64_t value_bytes(GgufType type) {
    switch (type) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean:
            return 1;
        case GgufType::u16:
        case GgufType::i16:
            return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32:
            return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64:
            return 8;
        case GgufType::string:
        case GgufType::array:
            return 0;
    }
    return 0;
}

// Walks the prefix. The first read that cannot be served records why in `stop`, and the caller hands that on.
class Cursor {
  public:
    Cursor(std::span<const std::byte> prefix, std::uint64_t file_size, std::string_view file)
        : bytes_(prefix.first(static_cast<std::size_t>(std::min<std::uint64_t>(prefix.size(), file_size)))),
          file_size_(file_size),
          file_(file) {}

    std::uint64_t at() const { return at_; }
    std::uint64_t left_in_file() const { return file_size_ - at_; }

    bool take(std::uint64_t count, std::span<const std::byte>& out) {
        if (count > left_in_file()) {
            // `count` may be anything: say the byte only where it is a number that exists.
            std::uint64_t end = 0;
            if (__builtin_add_overflow(at_, count, &end)) {
                stop_ = Problem{fmt::format("{}: at byte {}: a length of {} is not possible in a file of {} bytes",
                                            file_, at_, count, file_size_)};
            } else {
                stop_ = Problem{fmt::format("{}: truncated: the header needs byte {} but the file ends at {}", file_,
                                            end, file_size_)};
            }
            return false;
        }
        if (count > bytes_.size() - at_) {
            std::uint64_t twice = std::min<std::uint64_t>(file_size_, std::uint64_t{2} * bytes_.size());
            stop_ = NeedMore{std::max(at_ + count, twice)};
            return false;
        }
        out = bytes_.subspan(static_cast<std::size_t>(at_), static_cast<std::size_t>(count));
        at_ += count;
        return true;
    }

    template <class T>
    bool read(T& out) {
        std::span<const std::byte> raw;
        if (!take(sizeof(T), raw)) {
            return false;
        }
        out = little_endian<T>(raw.data());
        return true;
    }

    bool read_string(std::string_view& out) {
        std::uint64_t length = 0;
        std::span<const std::byte> raw;
        if (!read(length) || !take(length, raw)) {
            return false;
        }
        out = {reinterpret_cast<const char*>(raw.data()), raw.size()};
        return true;
    }

    // Assembled byte by byte, so that the host's own order and alignment do not matter.
    template <class T>
    static T little_endian(const std::byte* from) {
        using Bits =
            std::conditional_t<sizeof(T) == 8, std::uint64_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                                  std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
        std::uint64_t bits = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            bits |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
        }
        return std::bit_cast<T>(static_cast<Bits>(bits));
    }

    std::unexpected<std::variant<Problem, NeedMore>> stopped() const { return std::unexpected(stop_); }

  private:
    std::span<const std::byte> bytes_;
    std::uint64_t file_size_;
    std::string_view file_;
    std::uint64_t at_ = 0;
    std::variant<Problem, NeedMore> stop_;
};

template <class Out, class T>
Out widen(const std::byte* from) {
    return static_cast<Out>(Cursor::little_endian<T>(from));
}

GgufValue scalar_value(GgufType type, const std::byte* from) {
    using std::int64_t;
    using std::uint64_t;
    switch (type) {
        case GgufType::u8:
            return widen<uint64_t, std::uint8_t>(from);
        case GgufType::u16:
            return widen<uint64_t, std::uint16_t>(from);
        case GgufType::u32:
            return widen<uint64_t, std::uint32_t>(from);
        case GgufType::u64:
            return widen<uint64_t, uint64_t>(from);
        case GgufType::i8:
            return widen<int64_t, std::int8_t>(from);
        case GgufType::i16:
            return widen<int64_t, std::int16_t>(from);
        case GgufType::i32:
            return widen<int64_t, std::int32_t>(from);
        case GgufType::i64:
            return widen<int64_t, int64_t>(from);
        case GgufType::f32:
            return widen<double, float>(from);
        case GgufType::f64:
            return widen<double, double>(from);
        case GgufType::boolean:
            return from[0] != std::byte{0};
        case GgufType::string:
        case GgufType::array:
            break;
    }
    return uint64_t{0};
}

double as_double(const GgufValue& value) {
    if (const auto* u = std::get_if<std::uint64_t>(&value)) {
        return static_cast<double>(*u);
    }
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
        return static_cast<double>(*i);
    }
    if (const auto* b = std::get_if<bool>(&value)) {
        return *b ? 1.0 : 0.0;
    }
    const auto* d = std::get_if<double>(&value);
    return d != nullptr ? *d : 0.0;
}

bool is_value_type(std::uint32_t type) {
    return type <= static_cast<std::uint32_t>(GgufType::f64);
}

HeaderResult<GgufArray> read_array(Cursor& cursor, std::string_view key, std::string_view file) {
    std::uint32_t element = 0;
    std::uint64_t count = 0;
    if (!cursor.read(element) || !cursor.read(count)) {
        return cursor.stopped();
    }
    if (!is_value_type(element)) {
        return fail_header(
            fmt::format("{}: metadata {}: array of unknown type {}, expected 0 to 12", file, printable(key), element));
    }
    GgufArray array{static_cast<GgufType>(element), count, {}};
    if (array.element == GgufType::array) {
        return fail_header(fmt::format("{}: metadata {}: arrays of arrays are not supported", file, printable(key)));
    }
    // A string takes at least its length field, so no count can make the loop below longer than the file.
    std::uint64_t each = array.element == GgufType::string ? 8 : value_bytes(array.element);
    if (count > cursor.left_in_file() / each) {
        return fail_header(fmt::format("{}: metadata {}: an array of {} elements does not fit in the {} bytes left",
                                       file, printable(key), count, cursor.left_in_file()));
    }
    if (array.element == GgufType::string) {
        for (std::uint64_t i = 0; i < count; ++i) {
            std::string_view skipped;
            if (!cursor.read_string(skipped)) {
                return cursor.stopped();
            }
        }
        return array;
    }
    std::span<const std::byte> raw;
    if (!cursor.take(count * each, raw)) {
        return cursor.stopped();
    }
    if (count <= gguf_kept_elements) {
        array.values.reserve(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < count; ++i) {
            array.values.push_back(as_double(scalar_value(array.element, raw.data() + i * each)));
        }
    }
    return array;
}

HeaderResult<GgufValue> read_value(Cursor& cursor, std::string_view key, std::string_view file) {
    std::uint32_t type = 0;
    if (!cursor.read(type)) {
        return cursor.stopped();
    }
    if (!is_value_type(type)) {
        return fail_header(
            fmt::format("{}: metadata {}: unknown value type {}, expected 0 to 12", file, printable(key), type));
    }
    auto value_type = static_cast<GgufType>(type);
    if (value_type == GgufType::array) {
        auto array = read_array(cursor, key, file);
        if (!array) {
            return std::unexpected(std::move(array.error()));
        }
        return GgufValue{std::move(*array)};
    }
    if (value_type == GgufType::string) {
        std::string_view text;
        if (!cursor.read_string(text)) {
            return cursor.stopped();
        }
        return GgufValue{std::string(text)};
    }
    std::span<const std::byte> raw;
    if (!cursor.take(value_bytes(value_type), raw)) {
        return cursor.stopped();
    }
    return scalar_value(value_type, raw.data());
}

struct TensorEntry {
    StoredTensor tensor;
    std::uint64_t offset = 0;
};

HeaderResult<TensorEntry> read_tensor(Cursor& cursor, std::uint64_t number, std::string_view file) {
    std::string_view name;
    std::uint32_t rank = 0;
    if (!cursor.read_string(name)) {
        return cursor.stopped();
    }
    if (name.empty() || name.size() > longest_name) {
        return fail_header(fmt::format("{}: tensor {} of the table has a name of {} bytes, expected 1 to {}", file,
                                       number, name.size(), longest_name));
    }
    if (!cursor.read(rank)) {
        return cursor.stopped();
    }
    if (rank > most_dimensions) {
        return fail_header(fmt::format("{}: tensor {} has {} dimensions, expected at most {}", file, printable(name),
                                       rank, most_dimensions));
    }
    TensorEntry entry;
    entry.tensor.name = name;
    entry.tensor.elements = 1;  // rank 0 is a scalar
    for (std::uint32_t i = 0; i < rank; ++i) {
        std::uint64_t size = 0;
        if (!cursor.read(size)) {
            return cursor.stopped();
        }
        if (size == 0) {
            return fail_header(fmt::format("{}: tensor {} has a dimension of size 0", file, printable(name)));
        }
        if (__builtin_mul_overflow(entry.tensor.elements, size, &entry.tensor.elements)) {
            return fail_header(
                fmt::format("{}: tensor {} has more elements than 64 bits can count", file, printable(name)));
        }
        entry.tensor.shape.push_back(size);
    }
    std::uint64_t row = rank == 0 ? 1 : entry.tensor.shape.front();
    std::reverse(entry.tensor.shape.begin(), entry.tensor.shape.end());

    std::uint32_t type_id = 0;
    if (!cursor.read(type_id) || !cursor.read(entry.offset)) {
        return cursor.stopped();
    }
    const GgmlType* type = ggml_type(type_id);
    if (type == nullptr) {
        return fail_header(fmt::format("{}: tensor {} has the unknown type {}, expected 0 to {}", file, printable(name),
                                       type_id, ggml_types.size() - 1));
    }
    if (type->block == 0) {
        return fail_header(
            fmt::format("{}: tensor {} has type {} ({}), which was withdrawn from the format; convert "
                        "the model anew",
                        file, printable(name), type_id, type->name));
    }
    if (row % type->block != 0) {
        return fail_header(fmt::format("{}: tensor {} has rows of {} weights, but {} stores them in blocks of {}", file,
                                       printable(name), row, type->name, type->block));
    }
    entry.tensor.type = type->name;
    if (__builtin_mul_overflow(entry.tensor.elements / type->block, std::uint64_t{type->bytes}, &entry.tensor.bytes)) {
        return fail_header(fmt::format("{}: tensor {} has more bytes than 64 bits can count", file, printable(name)));
    }
    return entry;
}

// Every tensor lies aligned inside the file, and no two share a byte.
std::optional<Problem> check_places(std::vector<TensorEntry>& entries, std::uint64_t alignment,
                                    std::uint64_t data_offset, std::uint64_t file_size, std::string_view file) {
    std::vector<const TensorEntry*> by_offset;
    by_offset.reserve(entries.size());
    for (const TensorEntry& entry : entries) {
        if (entry.offset % alignment != 0) {
            return Problem{fmt::format("{}: tensor {} starts at offset {}, which is not a multiple of the alignment {}",
                                       file, printable(entry.tensor.name), entry.offset, alignment)};
        }
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        if (__builtin_add_overflow(data_offset, entry.offset, &begin) ||
            __builtin_add_overflow(begin, entry.tensor.bytes, &end)) {
            return Problem{fmt::format("{}: tensor {} has the impossible offset {}", file, printable(entry.tensor.name),
                                       entry.offset)};
        }
        if (end > file_size) {
            return Problem{
                fmt::format("{}: truncated: tensor {} needs {} bytes from byte {} on, up to byte {}, but "
                            "the file ends at {}",
                            file, printable(entry.tensor.name), entry.tensor.bytes, begin, end, file_size)};
        }
        by_offset.push_back(&entry);
    }
    sort_stably(by_offset, [](const TensorEntry* a, const TensorEntry* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < by_offset.size(); ++i) {
        const TensorEntry& before = *by_offset[i - 1];
        const TensorEntry& after = *by_offset[i];
        if (before.offset + before.tensor.bytes > after.offset) {
            return Problem{fmt::format("{}: tensors {} and {} overlap", file, printable(before.tensor.name),
                                       printable(after.tensor.name))};
        }
    }
    return std::nullopt;
}

const GgufValue* find(const Gguf& gguf, std::string_view key) {
    auto found = gguf.metadata.find(key);
    return found == gguf.metadata.end() ? nullptr : &found->second;
}

template <class T>
const T* find_as(const Gguf& gguf, std::string_view key) {
    const GgufValue* value = find(gguf, key);
    return value == nullptr ? nullptr : std::get_if<T>(value);
}

}  // namespace

const GgmlType* ggml_type(std::uint32_t id) {
    return id < ggml_types.size() ? &ggml_types[id] : nullptr;
}

std::optional<std::uint64_t> Gguf::unsigned_at(std::string_view key) const {
    if (const auto* u = find_as<std::uint64_t>(*this, key)) {
        return *u;
    }
    if (const auto* i = find_as<std::int64_t>(*this, key); i != nullptr && *i >= 0) {
        return static_cast<std::uint64_t>(*i);
    }
    return std::nullopt;
}

std::optional<double> Gguf::number_at(std::string_view key) const {
    const GgufValue* value = find(*this, key);
    if (value == nullptr || std::holds_alternative<bool>(*value) || std::holds_alternative<std::string>(*value) ||
        std::holds_alternative<GgufArray>(*value)) {
        return std::nullopt;
    }
    return as_double(*value);
}

std::optional<std::string_view> Gguf::string_at(std::string_view key) const {
    const auto* text = find_as<std::string>(*this, key);
    return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

std::optional<bool> Gguf::bool_at(std::string_view key) const {
    const auto* flag = find_as<bool>(*this, key);
    return flag == nullptr ? std::nullopt : std::optional<bool>(*flag);
}

std::optional<std::span<const double>> Gguf::numbers_at(std::string_view key) const {
    const auto* array = find_as<GgufArray>(*this, key);
    if (array == nullptr || array->values.size() != array->count) {
        return std::nullopt;
    }
    return std::span<const double>(array->values);
}

std::optional<std::uint64_t> Gguf::count_at(std::string_view key) const {
    const auto* array = find_as<GgufArray>(*this, key);
    return array == nullptr ? std::nullopt : std::optional<std::uint64_t>(array->count);
}

const StoredTensor* Gguf::tensor(std::string_view name) const {
    auto found = std::find_if(tensors.begin(), tensors.end(),
                              [&](const StoredTensor& candidate) { return candidate.name == name; });
    return found == tensors.end() ? nullptr : &*found;
}

HeaderResult<Gguf> read_gguf(std::span<const std::byte> prefix, std::uint64_t file_size, std::string_view file) {
    Cursor cursor(prefix, file_size, file);
    std::span<const std::byte> magic;
    Gguf gguf;
    if (!cursor.take(4, magic)) {
        return cursor.stopped();
    }
    std::string_view found_magic(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (found_magic != "GGUF") {
        return fail_header(
            fmt::format("{}: starts with \"{}\", expected \"GGUF\": not a GGUF file", file, printable(found_magic)));
    }
    if (!cursor.read(gguf.version)) {
        return cursor.stopped();
    }
    if (gguf.version == 1) {
        return fail_header(fmt::format("{}: GGUF version 1 is not supported; convert the model anew", file));
    }
    if (gguf.version != 0 && (gguf.version & 0xffff) == 0) {
        return fail_header(fmt::format("{}: the file is big-endian, expected little-endian", file));
    }
    if (gguf.version != 2 && gguf.version != 3) {
        return fail_header(fmt::format("{}: GGUF version {} is not known, expected 2 or 3", file, gguf.version));
    }

    std::uint64_t tensor_count = 0;
    std::uint64_t pair_count = 0;
    if (!cursor.read(tensor_count) || !cursor.read(pair_count)) {
        return cursor.stopped();
    }
    if (tensor_count > cursor.left_in_file() / least_tensor_bytes) {
        return fail_header(
            fmt::format("{}: {} tensors do not fit in a file of {} bytes", file, tensor_count, file_size));
    }
    if (pair_count > cursor.left_in_file() / least_pair_bytes) {
        return fail_header(
            fmt::format("{}: {} metadata pairs do not fit in a file of {} bytes", file, pair_count, file_size));
    }

    for (std::uint64_t i = 0; i < pair_count; ++i) {
        std::string_view key;
        if (!cursor.read_string(key)) {
            return cursor.stopped();
        }
        if (key.empty() || key.size() > longest_name) {
            return fail_header(fmt::format("{}: metadata pair {} has a key of {} bytes, expected 1 to {}", file, i,
                                           key.size(), longest_name));
        }
        auto value = read_value(cursor, key, file);
        if (!value) {
            return std::unexpected(std::move(value.error()));
        }
        if (!gguf.metadata.emplace(std::string(key), std::move(*value)).second) {
            return fail_header(fmt::format("{}: metadata {} is there twice", file, printable(key)));
        }
    }

    std::uint64_t alignment = default_alignment;
    if (gguf.metadata.contains("general.alignment")) {
        alignment = gguf.unsigned_at("general.alignment").value_or(0);
        if (!std::has_single_bit(alignment) || alignment > (std::uint64_t{1} << 31)) {
            return fail_header(fmt::format("{}: general.alignment is {}, expected a power of two", file, alignment));
        }
    }

    // Nothing is reserved for tensor_count: it is only known to fit the file, not the prefix at hand.
    std::vector<TensorEntry> entries;
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
        auto entry = read_tensor(cursor, i, file);
        if (!entry) {
            return std::unexpected(std::move(entry.error()));
        }
        entries.push_back(std::move(*entry));
    }
    std::unordered_set<std::string_view> names;
    for (const TensorEntry& entry : entries) {
        if (!names.insert(entry.tensor.name).second) {
            return fail_header(fmt::format("{}: tensor {} is there twice", file, printable(entry.tensor.name)));
        }
    }

    gguf.header_bytes = cursor.at();
    gguf.data_offset = (gguf.header_bytes + alignment - 1) / alignment * alignment;
    if (auto problem = check_places(entries, alignment, gguf.data_offset, file_size, file)) {
        return std::unexpected(std::variant<Problem, NeedMore>{std::move(*problem)});
    }
    gguf.tensors.reserve(entries.size());
    for (TensorEntry& entry : entries) {
        gguf.tensors.push_back(std::move(entry.tensor));
    }
    return gguf;
}

}  // namespace roofline::io
