// roofline serve: the calculator in the browser, and the same questions for programs.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <malloc.h>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/cli/output.hpp"
#include "roofline/cli/program.hpp"
#include "roofline/serve/server.hpp"

namespace roofline::cli {
namespace {

struct Options {
    std::string host = "127.0.0.1";
    std::string port = "8080";
    std::string threads;
    std::string time_limit = "10";
    bool open = false;
    bool allow_measure = false;
};

/// Nobody waits for a browser, and one that is not there is no fault: what it would say is not for this terminal, and
/// the Ctrl-C that stops the server is not for the browser.
void open_browser(const std::string& address) {
    const ::pid_t child = ::fork();
    if (child != 0) return;
    ::setsid();
    sigset_t none;
    ::sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // the server's is inherited, and would leave it deaf
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (nowhere >= 0) ::dup2(nowhere, stream);
    for (const char* opener : {"xdg-open", "open"}) ::execlp(opener, opener, address.c_str(), nullptr);
    ::_exit(0);
}

Result<int> run(const Options& options) {
#ifdef __GLIBC__
    // A thread for each connection, and only a few that compute: a heap for each of them would only spread what is
    // kept.
    ::mallopt(M_ARENA_MAX, 4);
#endif
    serve::ServerOptions asked;
    asked.host = options.host;
    const auto port = parse_whole("--port", options.port, 0.0, 65535.0);
    if (!port) return std::unexpected(port.error());
    asked.port = static_cast<int>(*port);
    if (!options.threads.empty()) {
        const auto threads = parse_whole("--threads", options.threads, 1.0, 1024.0);
        if (!threads) return std::unexpected(threads.error());
        asked.threads = static_cast<int>(*threads);
    }
    const auto limit = parse_whole("--time-limit", options.time_limit, 1.0, 86400.0);
    if (!limit) return std::unexpected(limit.error());
    asked.longest_answer = *limit;
    asked.now = now_iso;
    if (options.allow_measure) {
        // The program measures best as a process of its own, with nothing else in it.
        std::error_code error;
        const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
        asked.measure = [self]() -> Result<std::string> {
            static std::mutex one_at_a_time;  // two at once would measure each other
            const std::lock_guard lock(one_at_a_time);
            std::string text;
            FILE* pipe = ::popen(fmt::format("'{}' measure --quick --format json 2>/dev/null", self).c_str(), "r");
            if (pipe == nullptr) return fail("measure: cannot be started");
            std::array<char, 4096> buffer{};
            for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
                text.append(buffer.data(), n);
            if (::pclose(pipe) != 0) return fail("measure: did not succeed on this machine");
            return text;
        };
    }
    // Signals are waited for by a thread of their own, so that whatever is being answered is answered.
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGINT);
    ::sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    serve::Server server(std::move(asked));
    const auto bound = server.bind();
    if (!bound) return std::unexpected(bound.error());
    // An address of colons stands in brackets, or its port is one more part of it.
    const bool colons = options.host.contains(':');
    const std::string address =
        fmt::format("http://{}{}{}:{}/", colons ? "[" : "", options.host, colons ? "]" : "", *bound);
    fmt::print(stdout, "{}  (Ctrl-C stops it)\n", address);
    std::fflush(stdout);
    if (options.open) open_browser(address);
    std::thread waiting([&] {
        int signal = 0;
        ::sigwait(&signals, &signal);
        server.stop();
    });
    server.run();
    // Wakes the waiting thread where the server ended by itself.
    ::pthread_kill(waiting.native_handle(), SIGTERM);
    waiting.join();
    return done;
}

}  // namespace

void serve_verb(Program& program) {
    auto options = std::make_shared<Options>();
    const Verb verb = program.verb("serve", "The calculator in the browser, and an interface for programs");
    verb.add("--host", options->host, "Address to listen at; others than this machine's own are open to all")
        .shows_default()
        .type("ADDRESS");
    verb.add("--port", options->port, "Port; 0: any that is free").shows_default().type("N");
    verb.add("-t,--threads", options->threads, "Connections at once (default: 128)").type("N");
    verb.add("--time-limit", options->time_limit, "Seconds after which a question is given up")
        .shows_default()
        .type("SECONDS");
    verb.add("--open", options->open, "Open it in the browser");
    verb.add("--allow-measure", options->allow_measure, "Let anyone who can reach it measure this machine");
    verb.runs([options] { return run(*options); });
}

}  // namespace roofline::cli
