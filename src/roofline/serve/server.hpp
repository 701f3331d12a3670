// The web server: the calculator's page and the questions of ask/ over HTTP.
//
//   GET  /                          the page
//   POST /api/v1/VERB               body { "options": {...}, "files": {...}, "binaries": {...} }; VERB: predict,
//   advise,
//                                   plan, sweep, explain, account
//   GET  /api/v1/VERB?model=...     the same, options in the address
//   GET  /api/v1/models[/NAME]      names; one model
//   GET  /api/v1/devices[/NAME]     all devices; one
//   GET  /api/v1/options            what each verb takes
//   GET  /api/v1/openapi.json       all of this for programs
//   POST /api/v1/measure            measures this machine; only where it was allowed
//
// Errors are { "error": { "text", "exit" } } with a 4xx (405 with the methods that a path does take), or a 503 where an
// answer takes too long. No file of the host is reachable: questions bring their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "roofline/core/problem.hpp"
#include "roofline/serve/http.hpp"

namespace roofline::serve {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;  // 0: any that is free
    int threads = 0;  // connections at once; 0: 128. How many answers are computed at once: desks.hpp
    std::size_t largest_request = 16U << 20U;
    double longest_answer = 10.0;  // seconds from the arrival of a question, waiting for a desk among them
    /// Measures this machine and gives the device as JSON. Empty: not allowed.
    std::function<Result<std::string>()> measure;
    std::function<std::string()> now;  // for the answers' "run"; empty: they have no time
};

/// The page as it was built into the program: gzip, and the hashes of its scripts for the content policy. Empty where
/// the program was built without it.
struct Page {
    std::string gzip;
    std::string script_hashes;  // 'sha256-...' 'sha256-...'
};
Page embedded_page();

class Server {
  public:
    explicit Server(ServerOptions options, Page page = embedded_page());
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server();

    /// Takes the port. The number it got.
    Result<int> bind();
    /// Answers until somebody calls stop(). Requests that were begun are finished.
    void run();
    /// May be called from a signal handler's thread.
    void stop();

  private:
    ServerOptions options_;
    Page page_;
    std::unique_ptr<Http> http_;
};

/// What a call gets, without any network.
Reply reply_to(const Call& call, const ServerOptions& options, const Page& page);

/// Every path that is answered ({name} for any name) and the methods it takes.
std::map<std::string, std::string> answered_paths();

/// The description of the interface for programs, as JSON (OpenAPI 3.1).
std::string openapi();

}  // namespace roofline::serve
