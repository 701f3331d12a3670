#include "roofline/analyze/format.hpp"

#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace roofline::analyze {

#define ROOFLINE_ENTRY(name) Format name##_format();
#include "roofline/analyze/formats.inc"
#undef ROOFLINE_ENTRY

std::span<const Format> formats() {
    static const std::vector<Format> all = {
#define ROOFLINE_ENTRY(name) name##_format(),
#include "roofline/analyze/formats.inc"
#undef ROOFLINE_ENTRY
    };
    return all;
}

namespace {

/// The first printable characters of a file, or that there are none: enough to see what one has picked.
std::string beginning(std::string_view bytes) {
    std::string shown;
    for (const char c : bytes.substr(0, 40)) {
        if (c == '\n' || c == '\r' || c == '\t') {
            shown += ' ';
        } else if (std::isprint(static_cast<unsigned char>(c)) != 0) {
            shown += c;
        } else {
            return "it holds binary data";
        }
    }
    return fmt::format("it begins with \"{}\"", shown);
}

/// What a file of this program's own is, and who reads it; empty where it is none.
std::string own_file(std::string_view first) {
    const std::string_view mark = "\"schema\": \"roofline.";
    const std::size_t at = first.substr(0, 200).find(mark);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = first.substr(at + mark.size());
    const std::string_view schema = rest.substr(0, rest.find_first_of("/\""));
    struct Reader {
        std::string_view schema;
        std::string_view what;
        std::string_view who;
    };
    for (const Reader& reader :
         {Reader{"report", "a report",
                 "`roofline compare` holds reports against one another, `roofline plot` draws them"},
          Reader{"device", "a device", "`roofline predict MODEL --device FILE` reads it"},
          Reader{"model", "a model", "`roofline predict FILE` reads it"},
          Reader{"profile", "a profile of an engine", "`--profile FILE` of predict reads it"},
          Reader{"engine", "the memory rules of an engine", "`--engine FILE` of predict reads it"},
          Reader{"calibration", "a calibration", "`--calibration FILE` of predict reads it"}}) {
        if (reader.schema == schema)
            return fmt::format("{} that roofline itself wrote or reads, not a trace: {}", reader.what, reader.who);
    }
    return fmt::format("an answer of roofline itself (roofline.{}), not a trace", schema);
}

}  // namespace

Result<const Format*> recognise(Input& input, std::string_view wanted) {
    if (!wanted.empty()) {
        std::string known;
        for (const Format& format : formats()) {
            if (format.short_name == wanted) return &format;
            known += (known.empty() ? "" : ", ") + std::string(format.short_name);
        }
        return fail(fmt::format("--from {}: no such format; there are {}", wanted, known));
    }
    const auto first = input.peek(recognition_bytes);
    if (!first) return std::unexpected(first.error());
    if (first->empty()) {
        const std::string why = input.cut_short();
        return fail(fmt::format("{}: {}", input.name(), why.empty() ? "the file is empty" : why));
    }
    if (const std::string own = own_file(*first); !own.empty()) return fail(fmt::format("{}: {}", input.name(), own));
    for (const Format& format : formats()) {
        if (format.recognises(*first)) return &format;
    }
    std::string known;
    for (const Format& format : formats()) known += (known.empty() ? "" : ", ") + std::string(format.name);
    return fail(
        fmt::format("{}: not a file that analyze knows: {}; it reads {}", input.name(), beginning(*first), known));
}

Result<Analysis> analyze(Input& input, const Options& options, std::string_view wanted) {
    const auto format = recognise(input, wanted);
    if (!format) return std::unexpected(format.error());
    auto analysis = (*format)->read(input, options);
    if (!analysis) return std::unexpected(analysis.error());
    if (analysis->format.empty()) analysis->format = (*format)->name;
    if (analysis->file.empty()) analysis->file = input.name();
    return analysis;
}

}  // namespace roofline::analyze
