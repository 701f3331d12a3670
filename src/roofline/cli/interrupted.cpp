#include "roofline/cli/interrupted.hpp"

#include <atomic>
#include <csignal>
#include <string_view>
#include <unistd.h>

#include "roofline/cli/program.hpp"

namespace roofline::cli {
namespace {

volatile std::sig_atomic_t seen = 0;

void note(int signal) {
    if (seen != 0) {
        std::signal(signal, SIG_DFL);
        std::raise(signal);
    }
    seen = 1;
}

void end(int) {
    // A second signal may come to another thread before this one is through.
    static std::atomic_flag said = ATOMIC_FLAG_INIT;
    if (said.test_and_set()) return;
    // Whatever the program was doing goes on until it is gone, so nothing but system calls. The line on a terminal may
    // be in the middle of saying what is run.
    constexpr std::string_view line = "\nroofline: stopped; nothing was written\n";
    const bool terminal = ::isatty(STDERR_FILENO) == 1;
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, line.data() + (terminal ? 0 : 1), line.size() - (terminal ? 0 : 1));
    ::_exit(stopped);
}

void watch(void (*handler)(int)) {
    std::signal(SIGINT, handler);
    std::signal(SIGTERM, handler);
}

}  // namespace

Interruptible::Interruptible() {
    seen = 0;
    watch(note);
}

Interruptible::~Interruptible() {
    watch(SIG_DFL);
}

bool interrupted() {
    return seen != 0;
}

EndsAtOnce::EndsAtOnce() {
    watch(end);
}

EndsAtOnce::~EndsAtOnce() {
    watch(SIG_DFL);
}

}  // namespace roofline::cli
