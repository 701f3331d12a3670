// Models cut into several GGUF files: which files belong together, and one model from all of them.
#include <iterator>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "roofline/io/gguf.hpp"

namespace roofline::io {

Result<Gguf> merge_splits(std::vector<Gguf> parts, std::string_view file) {
    if (parts.empty()) {
        return fail(fmt::format("{}: no part of the model was given", file));
    }
    std::uint64_t count = parts.front().unsigned_at("split.count").value_or(0);
    if (count <= 1 && parts.size() == 1) {
        return std::move(parts.front());
    }
    if (count != parts.size()) {
        return fail(fmt::format("{}: split.count is {}, but {} files were given", file, count, parts.size()));
    }
    std::vector<Gguf*> in_order(parts.size(), nullptr);
    for (Gguf& part : parts) {
        auto part_count = part.unsigned_at("split.count");
        auto number = part.unsigned_at("split.no");
        if (!part_count || *part_count != count) {
            return fail(fmt::format("{}: one part says split.count is {}, another {}", file, count,
                                    part_count ? fmt::format("{}", *part_count) : "absent"));
        }
        if (!number || *number >= count) {
            return fail(fmt::format("{}: split.no is {}, expected 0 to {}", file,
                                    number ? fmt::format("{}", *number) : "absent", count - 1));
        }
        Gguf*& place = in_order[static_cast<std::size_t>(*number)];
        if (place != nullptr) {
            return fail(fmt::format("{}: two parts have the split.no {}", file, *number));
        }
        place = &part;
    }

    Gguf whole = std::move(*in_order.front());
    for (std::size_t i = 1; i < in_order.size(); ++i) {
        std::move(in_order[i]->tensors.begin(), in_order[i]->tensors.end(), std::back_inserter(whole.tensors));
    }
    std::unordered_set<std::string_view> names;
    for (const StoredTensor& tensor : whole.tensors) {
        if (!names.insert(tensor.name).second) {
            return fail(fmt::format("{}: tensor {} is in two parts", file, printable(tensor.name)));
        }
    }
    if (auto total = whole.unsigned_at("split.tensors.count"); total && *total != whole.tensors.size()) {
        return fail(fmt::format("{}: split.tensors.count is {}, but the parts hold {} tensors", file, *total,
                                whole.tensors.size()));
    }
    return whole;
}

std::vector<std::string> split_siblings(std::string_view file_name) {
    constexpr std::string_view middle = "-of-";
    constexpr std::string_view ending = ".gguf";
    constexpr std::size_t digits = 5;
    constexpr std::size_t tail = 1 + digits + middle.size() + digits + ending.size();  // "-00001-of-00003.gguf"

    std::vector<std::string> alone = {std::string(file_name)};
    if (file_name.size() <= tail || !file_name.ends_with(ending)) {
        return alone;
    }
    std::string_view mark = file_name.substr(file_name.size() - tail);
    auto number = [](std::string_view text) {
        unsigned value = 0;
        for (char c : text) {
            if (c < '0' || c > '9') {
                return 0U;  // part numbers start at 1, so 0 says "not a number"
            }
            value = value * 10 + static_cast<unsigned>(c - '0');
        }
        return value;
    };
    unsigned part = number(mark.substr(1, digits));
    unsigned count = number(mark.substr(1 + digits + middle.size(), digits));
    if (mark.front() != '-' || mark.substr(1 + digits, middle.size()) != middle || part == 0 || part > count) {
        return alone;
    }
    std::string_view stem = file_name.substr(0, file_name.size() - tail);
    std::vector<std::string> all;
    all.reserve(count);
    for (unsigned i = 1; i <= count; ++i) {
        all.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", stem, i, count));
    }
    return all;
}

}  // namespace roofline::io
