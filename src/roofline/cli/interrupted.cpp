#include "roofline/cli/interrupted.hpp"

#include <csignal>

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

}  // namespace

Interruptible::Interruptible() {
    seen = 0;
    std::signal(SIGINT, note);
    std::signal(SIGTERM, note);
}

Interruptible::~Interruptible() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
}

bool interrupted() {
    return seen != 0;
}

}  // namespace roofline::cli
