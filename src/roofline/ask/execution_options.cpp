#include "roofline/ask/execution_options.hpp"

#include <fmt/format.h>

#include "roofline/io/profile_file.hpp"

namespace roofline::ask {

void add_execution_options(Form& form, std::string& profile, std::string& calibration) {
    const char* how = "How it is computed";
    form.text("--profile", profile,
              fmt::format("What is fused and how kernels are launched: {}, or a file",
                          fmt::join(io::builtin_profile_names(), ", ")))
        .in(how)
        .shows_default()
        .of_type("NAME");
    form.text("--calibration", calibration, "Constants of expected times, as calibrate wrote them, before the built-in")
        .in(how)
        .of_type("FILE");
}

}  // namespace roofline::ask
