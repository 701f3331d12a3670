#include "roofline/io/gguf_conversion.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace roofline::io {

GgufConversion::GgufConversion(const Gguf& gguf, std::string_view file, std::vector<std::string>& notes)
    : gguf_(gguf), file_(file), notes_(notes) {
    for (const StoredTensor& tensor : gguf.tensors) {
        tensors_.emplace(tensor.name, &tensor);
    }
}

std::string GgufConversion::full_key(std::string_view key) const {
    return fmt::format("{}.{}", architecture_, key);
}

void GgufConversion::complain(std::string text) {
    if (!problem_) {
        problem_ = Problem{fmt::format("{}: {}", file_, text)};
    }
}

std::optional<std::uint64_t> GgufConversion::maybe(std::string_view key, std::uint64_t most) {
    std::string full = full_key(key);
    auto value = gguf_.unsigned_at(full);
    if (value && *value > most) {
        complain(fmt::format("{} is {}, expected at most {}", full, *value, most));
        return std::nullopt;
    }
    return value;
}

std::uint64_t GgufConversion::number(std::string_view key, std::uint64_t most) {
    auto value = maybe(key, most);
    if (!value || *value == 0) {
        complain(fmt::format("{} is {}, expected a number of at least 1", full_key(key), value ? "0" : "missing"));
        return 1;
    }
    return *value;
}

std::vector<std::uint64_t> GgufConversion::each_layer(std::string_view key) {
    std::string full = full_key(key);
    if (auto values = gguf_.numbers_at(full)) {
        if (values->size() < layers_) {
            complain(
                fmt::format("{} has {} elements, expected one for each of {} layers", full, values->size(), layers_));
            return {};
        }
        std::vector<std::uint64_t> result;
        for (double value : values->first(static_cast<std::size_t>(layers_))) {
            if (!(value >= 0 && value <= static_cast<double>(largest_size))) {
                complain(fmt::format("{} holds {}, expected numbers from 0 to {}", full, value, largest_size));
                return {};
            }
            result.push_back(static_cast<std::uint64_t>(value));
        }
        return result;
    }
    if (auto value = maybe(key)) {
        return std::vector<std::uint64_t>(static_cast<std::size_t>(layers_), *value);
    }
    return {};
}

std::uint64_t GgufConversion::common(const std::vector<std::uint64_t>& values, std::string_view key) {
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    std::uint64_t largest = 0;
    std::uint64_t smallest = largest_size;
    for (std::uint64_t value : values) {
        if (value != 0) {
            sum += value;
            ++count;
            largest = std::max(largest, value);
            smallest = std::min(smallest, value);
        }
    }
    if (count == 0) {
        return 0;
    }
    if (largest != smallest) {
        notes_.push_back(fmt::format("{}: {} differs between layers ({} to {}); the mean stands for all", file_,
                                     full_key(key), smallest, largest));
    }
    return (sum + count / 2) / count;
}

bool GgufConversion::has(const std::string& name) const {
    return tensors_.contains(name);
}

bool GgufConversion::any_layer(std::string_view what) const {
    for (std::uint64_t i = 0; i < layers_; ++i) {
        if (has(fmt::format("blk.{}.{}", i, what))) {
            return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> GgufConversion::size_of(std::string_view what, std::size_t dimension) const {
    for (std::uint64_t i = 0; i < layers_; ++i) {
        auto found = tensors_.find(fmt::format("blk.{}.{}", i, what));
        if (found != tensors_.end()) {
            const auto& shape = found->second->shape;
            return dimension < shape.size() ? std::optional(shape[shape.size() - 1 - dimension]) : std::nullopt;
        }
    }
    return std::nullopt;
}

void GgufConversion::set_if(const char* to, std::optional<std::uint64_t> value) {
    if (value) {
        config_[to] = *value;
    }
}

void GgufConversion::set_real(const char* to, std::string_view key) {
    if (auto value = gguf_.number_at(full_key(key)); value && std::isfinite(*value)) {
        config_[to] = *value;
    }
}

}  // namespace roofline::io
