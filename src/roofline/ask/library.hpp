// Where a question finds what it names: built-in models and devices, and files. On a machine these are its disks; in
// the page, what was dropped on it.
#pragma once

#include <optional>
#include <string>

#include "roofline/core/device.hpp"
#include "roofline/core/problem.hpp"
#include "roofline/io/model_file.hpp"
#include "roofline/predict/execution.hpp"

namespace roofline::ask {

class Library {
  public:
    Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    virtual ~Library() = default;

    virtual Result<io::ModelFile> model(const std::string& typed, const io::ConfigEdit& edit = {}) const = 0;
    virtual Result<Device> device(const std::string& typed) const = 0;
    /// The text of a file; nothing where there is no file of that name.
    virtual Result<std::optional<std::string>> file(const std::string& name) const = 0;
    virtual bool has_file(const std::string& name) const = 0;
    /// A profile by name or file, and the built-in constants with those of `calibration` (a file that `calibrate`
    /// wrote, may be empty) before them. Whoever asks often remembers: reading constants takes longer than the rest.
    virtual Result<predict::Execution> execution(const std::string& profile, const std::string& calibration,
                                                 const Device& device) const;
};

}  // namespace roofline::ask
