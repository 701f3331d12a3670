#include "roofline/io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "roofline/core/sort.hpp"

namespace roofline::io {

namespace {

struct Dtype {
    std::string_view name;
    unsigned bits;
};

constexpr std::array dtypes = {
    Dtype{"BF16", 16},   Dtype{"F16", 16},    Dtype{"F32", 32},        Dtype{"F64", 64},        Dtype{"F8_E4M3", 8},
    Dtype{"F8_E5M2", 8}, Dtype{"F8_E8M0", 8}, Dtype{"F8_E4M3FNUZ", 8}, Dtype{"F8_E5M2FNUZ", 8}, Dtype{"F4", 4},
    Dtype{"F6_E2M3", 6}, Dtype{"F6_E3M2", 6}, Dtype{"BOOL", 8},        Dtype{"U8", 8},          Dtype{"I8", 8},
    Dtype{"U16", 16},    Dtype{"I16", 16},    Dtype{"U32", 32},        Dtype{"I32", 32},        Dtype{"U64", 64},
    Dtype{"I64", 64},    Dtype{"C64", 64},
};

constexpr std::size_t most_dimensions = 16;

// Both JSON texts are read as a stream of events: a document tree of a hostile 100 MB header (say, fifty million open
// brackets) would take gigabytes, and the tensors are all that is wanted. A handler returns false to stop and has then
// said why in `problem`.
struct Events {
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    std::string problem;
    std::size_t depth = 0;

    bool stop(std::string text) {
        problem = std::move(text);
        return false;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
        return stop(fmt::format("not valid JSON at byte {}", position));
    }
};

class HeaderEvents : public Events {
  public:
    struct Entry {
        StoredTensor tensor;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    std::vector<Entry> entries;

    bool start_object(std::size_t) {
        if (++depth > 2 || list_ != List::none) {
            return stop(fmt::format("{}: an object where none is expected", place()));
        }
        if (depth == 2 && !in_metadata()) {
            current_ = {};
            current_.tensor.name = name_;
            has_dtype_ = has_shape_ = has_offsets_ = false;
        }
        return true;
    }

    bool end_object() {
        if (depth-- == 2 && !in_metadata()) {
            if (!has_dtype_ || !has_shape_ || !has_offsets_) {
                return stop(fmt::format("{}: {} is missing", place(),
                                        !has_dtype_   ? "dtype"
                                        : !has_shape_ ? "shape"
                                                      : "data_offsets"));
            }
            entries.push_back(std::move(current_));
        }
        return true;
    }

    bool key(string_t& text) {
        if (depth == 1) {
            name_ = text;
        } else {
            field_ = text;
        }
        return true;
    }

    bool start_array(std::size_t) {
        if (depth != 2 || in_metadata() || list_ != List::none) {
            return stop(fmt::format("{}: an array where none is expected", place()));
        }
        list_ = field_ == "shape" ? List::shape : field_ == "data_offsets" ? List::offsets : List::ignored;
        numbers_.clear();
        return true;
    }

    bool end_array() {
        if (list_ == List::shape) {
            current_.tensor.shape = numbers_;
            has_shape_ = true;
        } else if (list_ == List::offsets) {
            if (numbers_.size() != 2) {
                return stop(fmt::format("{}: data_offsets has {} numbers, expected 2", place(), numbers_.size()));
            }
            current_.begin = numbers_[0];
            current_.end = numbers_[1];
            has_offsets_ = true;
        }
        list_ = List::none;
        return true;
    }

    bool string(string_t& text) {
        if (depth == 2 && list_ == List::none) {
            if (!in_metadata() && field_ == "dtype") {
                current_.tensor.type = text;
                has_dtype_ = true;
            }
            return true;
        }
        return unexpected("a string");
    }

    bool number_unsigned(number_unsigned_t number) {
        if (list_ == List::shape || list_ == List::offsets) {
            if (numbers_.size() == most_dimensions) {
                return stop(
                    fmt::format("{}: {} has more than {} numbers", place(), printable(field_), most_dimensions));
            }
            numbers_.push_back(number);
            return true;
        }
        return unexpected("a number");
    }

    bool number_integer(number_integer_t number) { return unexpected(fmt::format("the number {}", number)); }
    bool number_float(number_float_t, const string_t& text) {
        return unexpected(fmt::format("the number {}", printable(text)));
    }
    bool boolean(bool) { return unexpected("a boolean"); }
    bool null() { return unexpected("null"); }
    bool binary(binary_t&) { return unexpected("binary"); }

  private:
    enum class List { none, shape, offsets, ignored };

    bool in_metadata() const { return name_ == "__metadata__"; }
    std::string place() const { return depth == 0 ? "header" : printable(name_); }

    // Fields that the format does not know are passed over, as long as they are not nested.
    bool unexpected(std::string_view what) {
        bool known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
        if (depth == 2 && !in_metadata() && !known) {
            return true;
        }
        return stop(fmt::format("{}: {} where none is expected", place(), what));
    }

    std::string name_;
    std::string field_;
    List list_ = List::none;
    std::vector<std::uint64_t> numbers_;
    Entry current_;
    bool has_dtype_ = false;
    bool has_shape_ = false;
    bool has_offsets_ = false;
};

class IndexEvents : public Events {
  public:
    std::set<std::string> files;
    bool has_map = false;

    bool start_object(std::size_t) {
        ++depth;
        if (depth > deepest || list_depth_ > 0 || (depth > 2 && in_map())) {
            return stop("an object where none is expected");
        }
        has_map = has_map || (depth == 2 && in_map());
        return true;
    }
    bool end_object() {
        --depth;
        return true;
    }
    bool key(string_t& text) {
        if (depth == 1) {
            section_ = text;
        }
        name_ = text;
        return true;
    }
    bool start_array(std::size_t) {
        if (depth == 0 || in_map() || ++list_depth_ > deepest) {
            return stop("an array where none is expected");
        }
        return true;
    }
    bool end_array() {
        --list_depth_;
        return true;
    }
    bool string(string_t& text) {
        if (!in_map()) {
            return scalar();
        }
        if (depth != 2) {
            return stop("weight_map is not an object");
        }
        bool plain = text.ends_with(".safetensors") && text.size() <= 255 && text.front() != '.' &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= 0x20 && c < 0x7f && c != '/' && c != '\\' && c != ':'; });
        if (!plain) {
            return stop(
                fmt::format("weight_map: {} is in \"{}\", expected the name of a .safetensors file beside the "
                            "index",
                            printable(name_), printable(text)));
        }
        files.insert(text);
        return true;
    }
    bool number_unsigned(number_unsigned_t) { return scalar(); }
    bool number_integer(number_integer_t) { return scalar(); }
    bool number_float(number_float_t, const string_t&) { return scalar(); }
    bool boolean(bool) { return scalar(); }
    bool null() { return scalar(); }
    bool binary(binary_t&) { return scalar(); }

  private:
    static constexpr std::size_t deepest = 16;

    bool in_map() const { return section_ == "weight_map"; }
    bool scalar() {
        if (depth == 0) {
            return stop("expected an object");
        }
        return !in_map() || stop(fmt::format("weight_map: {} is not the name of a file", printable(name_)));
    }

    std::string section_;
    std::string name_;
    std::size_t list_depth_ = 0;
};

const Dtype* find_dtype(std::string_view name) {
    auto found = std::find_if(dtypes.begin(), dtypes.end(), [&](const Dtype& dtype) { return dtype.name == name; });
    return found == dtypes.end() ? nullptr : &*found;
}

// Fills in elements and bytes; empty when shape, type and offsets agree.
std::optional<std::string> measure(HeaderEvents::Entry& entry) {
    StoredTensor& tensor = entry.tensor;
    std::string name = printable(tensor.name);
    const Dtype* dtype = find_dtype(tensor.type);
    if (dtype == nullptr) {
        return fmt::format("tensor {} has the unknown dtype \"{}\"", name, printable(tensor.type));
    }
    tensor.elements = 1;
    for (std::uint64_t size : tensor.shape) {
        if (__builtin_mul_overflow(tensor.elements, size, &tensor.elements)) {
            return fmt::format("tensor {} has more elements than 64 bits can count", name);
        }
    }
    std::uint64_t bits = 0;
    if (__builtin_mul_overflow(tensor.elements, std::uint64_t{dtype->bits}, &bits)) {
        return fmt::format("tensor {} has more bits than 64 bits can count", name);
    }
    if (bits % 8 != 0) {
        return fmt::format("tensor {} has {} elements of {} bits, which is not a whole number of bytes", name,
                           tensor.elements, dtype->bits);
    }
    tensor.bytes = bits / 8;
    if (entry.end < entry.begin || entry.end - entry.begin != tensor.bytes) {
        return fmt::format("tensor {} has data_offsets {} to {}, but its shape in {} needs {} bytes", name, entry.begin,
                           entry.end, dtype->name, tensor.bytes);
    }
    return std::nullopt;
}

}  // namespace

HeaderResult<std::vector<StoredTensor>> read_safetensors(std::span<const std::byte> prefix, std::uint64_t file_size,
                                                         std::string_view file) {
    constexpr std::uint64_t length_bytes = 8;
    prefix = prefix.first(static_cast<std::size_t>(std::min<std::uint64_t>(prefix.size(), file_size)));
    auto need = [&](std::uint64_t bytes) -> std::unexpected<std::variant<Problem, NeedMore>> {
        if (bytes > file_size) {
            return fail_header(
                fmt::format("{}: truncated: the header needs byte {} but the file ends at {}", file, bytes, file_size));
        }
        return std::unexpected(std::variant<Problem, NeedMore>{NeedMore{bytes}});
    };
    if (prefix.size() < length_bytes) {
        return need(length_bytes);
    }
    std::uint64_t header_bytes = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) {
        header_bytes |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
    }
    if (header_bytes > safetensors_header_limit) {
        return fail_header(fmt::format("{}: a header of {} bytes, expected at most {}: not a safetensors file?", file,
                                       header_bytes, safetensors_header_limit));
    }
    std::uint64_t data_begin = length_bytes + header_bytes;
    if (prefix.size() < data_begin) {
        // A header that does not open with a brace need not be waited for.
        if (prefix.size() > length_bytes && prefix[length_bytes] != std::byte{'{'}) {
            return fail_header(fmt::format("{}: the header does not start with \"{{\": not a safetensors file", file));
        }
        return need(data_begin);
    }

    const char* text = reinterpret_cast<const char*>(prefix.data()) + length_bytes;
    HeaderEvents events;
    if (header_bytes == 0 || *text != '{') {
        return fail_header(fmt::format("{}: the header does not start with \"{{\": not a safetensors file", file));
    }
    if (!nlohmann::json::sax_parse(text, text + header_bytes, &events)) {
        return fail_header(fmt::format("{}: {}", file, events.problem));
    }

    std::unordered_set<std::string_view> names;
    for (HeaderEvents::Entry& entry : events.entries) {
        if (!names.insert(entry.tensor.name).second) {
            return fail_header(fmt::format("{}: tensor {} is there twice", file, printable(entry.tensor.name)));
        }
        if (auto problem = measure(entry)) {
            return fail_header(fmt::format("{}: {}", file, *problem));
        }
        if (entry.end > file_size - data_begin) {
            return fail_header(
                fmt::format("{}: truncated: tensor {} needs {} bytes of data, up to {}, but the file "
                            "has {} after its header",
                            file, printable(entry.tensor.name), entry.tensor.bytes, entry.end, file_size - data_begin));
        }
    }

    // Sorted by their place, the tensors must follow one another from the first byte of the data to the last.
    std::vector<const HeaderEvents::Entry*> by_place;
    by_place.reserve(events.entries.size());
    for (const HeaderEvents::Entry& entry : events.entries) {
        by_place.push_back(&entry);
    }
    sort_stably(by_place,
                [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    std::uint64_t covered = 0;
    for (const HeaderEvents::Entry* entry : by_place) {
        if (entry->begin != covered) {
            return fail_header(fmt::format("{}: tensor {} starts at {} of the data, but the one before it ends at {}",
                                           file, printable(entry->tensor.name), entry->begin, covered));
        }
        covered = entry->end;
    }
    if (covered != file_size - data_begin) {
        return fail_header(fmt::format("{}: the tensors hold {} bytes, but the file has {} after its header", file,
                                       covered, file_size - data_begin));
    }

    std::vector<StoredTensor> tensors;
    tensors.reserve(events.entries.size());
    for (HeaderEvents::Entry& entry : events.entries) {
        tensors.push_back(std::move(entry.tensor));
    }
    return tensors;
}

Result<std::vector<std::string>> read_safetensors_index(std::string_view text, std::string_view file) {
    IndexEvents events;
    if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &events)) {
        return fail(fmt::format("{}: {}", file, events.problem));
    }
    if (!events.has_map || events.files.empty()) {
        return fail(fmt::format("{}: weight_map is missing or empty, expected tensor names and their files", file));
    }
    return std::vector<std::string>(events.files.begin(), events.files.end());
}

}  // namespace roofline::io
