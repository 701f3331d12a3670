#include "roofline/cli/colour_options.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace roofline::cli {

void ColourOptions::add_to(const Verb& verb) {
    verb.add("--color,--colour", when, "Paint the terminal: auto, always or never (NO_COLOR is obeyed)")
        .one_of({"auto", "always", "never"})
        .shows_default();
}

bool ColourOptions::allowed() const {
    if (when != "auto") return when == "always";
    const char* no = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return (no == nullptr || *no == '\0') && ::isatty(STDOUT_FILENO) == 1 &&
           (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

int terminal_columns() {
    struct winsize size{};
    if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

}  // namespace roofline::cli
