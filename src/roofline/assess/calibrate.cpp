#include "roofline/assess/calibrate.hpp"

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "roofline/assess/fit_classes.hpp"
#include "roofline/assess/in_parallel.hpp"
#include "roofline/assess/ranges.hpp"

namespace roofline::assess {

using predict::Calibration;

std::vector<int> fold_of_rows(std::span<const Measurement> rows, int folds) {
    // Families of one kind are dealt out in turn, so that every fold holds some of each kind.
    std::map<std::string, std::set<std::string>> families;
    for (const Measurement& row : rows) families[row.kind].insert(row.family);
    std::map<std::pair<std::string, std::string>, int> fold;
    for (const auto& [kind, names] : families) {
        int next = 0;
        for (const std::string& name : names) fold[{kind, name}] = next++ % folds;
    }
    std::vector<int> result;
    result.reserve(rows.size());
    for (const Measurement& row : rows) result.push_back(fold[{row.kind, row.family}]);
    return result;
}

Calibration calibrate(std::span<const Measurement> rows, Judging judging) {
    const std::vector<bool> everything(rows.size(), true);
    const Groups kernels = kernel_groups(rows, everything);
    const std::vector<int> folds = fold_of_rows(rows, default_folds);
    Calibration result;
    // What each fit says of rows it had not seen: the fit to all of devices and generations left out, those of the
    // folds of families of shapes.
    std::array<Residuals, default_folds + 1> unseen;
    in_parallel(unseen.size(), [&](std::size_t part) {
        if (part == 0) {
            result = fit_all(rows, everything, judging == Judging::transfers_too ? unseen.data() : nullptr);
            return;
        }
        const int fold = static_cast<int>(part) - 1;
        std::vector<bool> used(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) used[i] = folds[i] != fold;
        std::vector<bool> held_back = used;
        held_back.flip();
        const auto fitted = std::make_shared<const Calibration>(fit_all(rows, used, nullptr));
        note_residuals(kernels, *fitted, held_back, rows, unseen[part]);
        note_residuals(step_groups(rows, held_back, fitted).groups, *fitted, held_back, rows, unseen[part]);
    });
    Residuals& residuals = unseen.front();
    for (std::size_t part = 1; part < unseen.size(); ++part) {
        for (const auto& [name, seen] : unseen[part]) {
            std::vector<Residual>& all = residuals[name];
            all.insert(all.end(), seen.begin(), seen.end());
        }
    }
    set_ranges(result, residuals);
    set_authors(result, step_groups(rows, everything, std::make_shared<const Calibration>(result)).groups);
    return result;
}

}  // namespace roofline::assess
