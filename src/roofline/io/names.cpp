#include "roofline/io/names.hpp"

#include <algorithm>
#include <cctype>

#include "roofline/core/sort.hpp"

namespace roofline::io {
namespace {

/// Letters to insert, delete, replace or swap to get from one name to the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a.size()][b.size()];
}

/// "llama-8b" in "llama-3.1-8b": the words of what was typed, in their order.
bool tokens_in_order(std::string_view typed, std::string_view name) {
    std::size_t words = 0;
    std::size_t from = 0;
    std::string word;
    const auto take = [&] {
        if (word.empty()) return true;
        const std::size_t found = name.find(word, from);
        if (found == std::string_view::npos) return false;
        from = found + word.size();
        ++words;
        word.clear();
        return true;
    };
    for (const char c : typed) {
        if (c != '-' && c != '_' && c != ' ' && c != '/') {
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (!take()) {
            return false;
        }
    }
    return take() && words >= 2;
}

/// Whether the first words of a name are what was typed but for one slip: "h101" and "h100-sxm".
bool begins_nearly(std::string_view wanted, std::string_view name) {
    constexpr std::size_t shortest = 4;  // three letters with a slip among them say too little
    if (wanted.size() < shortest) return false;
    for (std::size_t end = name.find('-'); end != std::string_view::npos; end = name.find('-', end + 1)) {
        if (distance(wanted, normalised(name.substr(0, end))) <= 1) return true;
    }
    return false;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
    return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string normalised(std::string_view name) {
    std::string result;
    for (const char c : name) {
        if (c == ' ' || c == '-' || c == '_' || c == ':') continue;
        result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

std::vector<std::string> nearest(std::string_view typed, std::span<const std::string> names, std::size_t most) {
    constexpr std::size_t longest_typed = 64;
    const std::string wanted = normalised(typed.substr(0, longest_typed));
    struct Candidate {
        std::size_t score;
        std::size_t shared;  // letters at the start: people get the beginning of a name right
        std::string_view name;
    };
    const auto contains = [&](std::string_view other) {
        return wanted.size() >= 2 && other.find(wanted) != std::string_view::npos;
    };
    // Whoever types the beginning of a name without a slip means that name, not one like it.
    const bool has_slip =
        std::ranges::none_of(names, [&](const std::string& name) { return contains(normalised(name)); });
    std::vector<Candidate> candidates;
    for (const std::string& name : names) {
        const std::string other = normalised(name);
        std::size_t score = distance(wanted, other);
        // "llama-8b" should find "llama-3.1-8b", "h100" all the H100s: a name that contains what was typed is near,
        // and nearer if it begins with it.
        if (contains(other)) score = std::min<std::size_t>(score, other.starts_with(wanted) ? 1 : 2);
        if (tokens_in_order(typed.substr(0, longest_typed), other)) score = std::min<std::size_t>(score, 2);
        if (has_slip && begins_nearly(wanted, name)) score = std::min<std::size_t>(score, 2);
        if (score <= std::max<std::size_t>(2, wanted.size() / 3))
            candidates.push_back({score, common_prefix(wanted, other), name});
    }
    sort_stably(candidates, [](const Candidate& a, const Candidate& b) {
        if (a.score != b.score) return a.score < b.score;
        if (a.shared != b.shared) return a.shared > b.shared;
        if (a.name.size() != b.name.size()) return a.name.size() < b.name.size();
        return a.name < b.name;
    });
    std::vector<std::string> result;
    for (const Candidate& candidate : candidates) {
        if (result.size() == most) break;
        result.emplace_back(candidate.name);
    }
    return result;
}

std::string suggestion(std::string_view typed, std::span<const std::string> names) {
    const auto near = nearest(typed, names);
    if (near.empty()) return "";
    std::string text = "; did you mean ";
    for (std::size_t i = 0; i < near.size(); ++i) {
        if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
        text += near[i];
    }
    return text + "?";
}

}  // namespace roofline::io
