#include "roofline/serve/server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "roofline/ask/ask.hpp"
#include "roofline/core/patience.hpp"
#include "roofline/io/report_json.hpp"
#include "roofline/io/tensors.hpp"
#include "roofline/serve/desks.hpp"
#include "roofline/serve/limits.hpp"

namespace roofline::serve {
namespace {

using io::Json;

constexpr std::string_view root = "/api/v1/";
constexpr int connections = 128;  // at once, a thread each that mostly waits for the other side

std::size_t processors() {
    return std::max(1U, std::thread::hardware_concurrency());
}

/// Two more than there are processors: a plan that takes seconds must not keep all predictions waiting.
Desks& desks() {
    static Desks all(processors() + 2);
    return all;
}

Reply refusal(int status, const std::string& text, int exit = 2) {
    return {status, "application/json", io::dump(io::OrderedJson{{"error", {{"text", text}, {"exit", exit}}}}), false};
}

/// 0 and 1 are answers (1: there is none, which is one too); what was asked wrongly is a 400.
int status_of(int exit) {
    return exit == 0 || exit == 1 ? 200 : exit == 3 ? 500 : exit == 4 ? 404 : 400;
}

std::string too_long(const ServerOptions& options, std::string_view what) {
    return fmt::format("{} after {:g} s (serve --time-limit); the command line has no such limit", what,
                       options.longest_answer);
}

/// Options in the address are texts; one that comes twice is a list.
Json options_of(const Call& call) {
    Json options = Json::object();
    for (const auto& [key, value] : call.parameters) {
        if (!options.contains(key)) {
            options[key] = value;
        } else {
            if (!options[key].is_array()) options[key] = Json::array({options[key]});
            options[key].push_back(value);
        }
    }
    return options;
}

Reply reply_about(const Json& question, std::string_view verb, const ServerOptions& options) {
    if (const auto found = question.find("options"); found != question.end()) {
        if (const auto done = check_cost(verb, *found); !done) return refusal(400, done.error().text);
    }
    // Names of files may hold any bytes; they are replaced rather than fallen over.
    const std::string text = question.dump(-1, ' ', false, Json::error_handler_t::replace);
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(options.longest_answer);
    const Patience limit([end] { return Clock::now() >= end; });
    Desks::Held desk(desks());
    if (out_of_patience()) return refusal(503, too_long(options, "others were being answered"), ask::stopped);
    ask::Answer answered = ask::answer(text, desk.memory(), options.now ? options.now() : std::string());
    if (answered.exit == ask::stopped) return refusal(503, too_long(options, "the answer was not there"), ask::stopped);
    return {status_of(answered.exit), "application/json", std::move(answered.text), false};
}

Reply reply_to_body(const Call& call, const std::string& verb, const ServerOptions& options) {
    auto question = io::parse_json(call.body, "request");
    if (!question) return refusal(400, question.error().text);
    if (!question->is_object()) return refusal(400, "request: expected an object with \"options\"");
    (*question)["verb"] = verb;
    return reply_about(*question, verb, options);
}

Reply the_page(const Call& call, const Page& page) {
    if (page.gzip.empty()) return refusal(404, "this program was built without the page; /api/v1 answers all the same");
    if (!call.takes_gzip) return refusal(406, "the page is sent as gzip only; say Accept-Encoding: gzip");
    return {200, "text/html; charset=utf-8", page.gzip, true};
}

Reply nothing_at(const std::string& path) {
    return refusal(404, "there is nothing at " + io::printable(path));
}

/// A call at its path.
struct Asked {
    const Call& call;
    std::string name;  // what stands behind the path of a route that takes a name
    const ServerOptions& options;
    const Page& page;

    bool by_address() const { return call.method == "GET" || call.method == "HEAD"; }
};

Reply verb(const Asked& asked) {
    const std::string called = asked.call.path.substr(root.size());
    return asked.by_address()
               ? reply_about({{"verb", called}, {"options", options_of(asked.call)}}, called, asked.options)
               : reply_to_body(asked.call, called, asked.options);
}

/// A list: what it is called is all there is to ask.
Reply listed(const Asked& asked) {
    const std::string called = asked.call.path.substr(root.size());
    return reply_about({{"verb", called}}, called, asked.options);
}

/// "models/gpt2": the verb `model` with an option of that name. A name that nobody has is an address that leads
/// nowhere.
Reply named(const Asked& asked, const std::string& what) {
    Reply reply = reply_about({{"verb", what}, {"options", {{what, asked.name}}}}, what, asked.options);
    if (reply.status == 400) reply.status = 404;
    return reply;
}

Reply measured(const Asked& asked) {
    if (!asked.options.measure) return refusal(403, "measuring is not allowed here (serve --allow-measure)");
    const auto device = asked.options.measure();
    return device ? Reply{200, "application/json", *device, false} : refusal(503, device.error().text, 4);
}

constexpr std::string_view by_get = "GET, HEAD";
constexpr std::string_view by_post = "POST";
constexpr std::string_view by_either = "GET, HEAD, POST";

struct Route {
    std::string_view path;  // one that ends in a slash takes a name behind it
    std::string_view allow;
    Reply (*answer)(const Asked&);
};

/// Everything that is answered. openapi.cpp describes it; a test holds the two against each other.
constexpr std::array<Route, 14> routes = {{
    {"/index.html", by_get, [](const Asked& asked) { return the_page(asked.call, asked.page); }},
    {"/api/v1/predict", by_either, verb},
    {"/api/v1/advise", by_either, verb},
    {"/api/v1/plan", by_either, verb},
    {"/api/v1/sweep", by_either, verb},
    {"/api/v1/explain", by_either, verb},
    {"/api/v1/account", by_post, verb},
    {"/api/v1/models", by_get, listed},
    {"/api/v1/models/", by_get, [](const Asked& asked) { return named(asked, "model"); }},
    {"/api/v1/devices", by_get, listed},
    {"/api/v1/devices/", by_get, [](const Asked& asked) { return named(asked, "device"); }},
    {"/api/v1/options", by_get, listed},
    {"/api/v1/openapi.json", by_get, [](const Asked&) { return Reply{200, "application/json", openapi(), false}; }},
    {"/api/v1/measure", by_post, measured},
}};

bool takes(const Route& route, std::string_view path) {
    return route.path.ends_with('/') ? path.size() > route.path.size() && path.starts_with(route.path)
                                     : path == route.path;
}

}  // namespace

Reply reply_to(const Call& call, const ServerOptions& options, const Page& page) {
    const std::string path = call.path == "/" ? "/index.html" : call.path;
    const auto* route = std::find_if(routes.begin(), routes.end(), [&](const Route& one) { return takes(one, path); });
    if (route == routes.end()) return nothing_at(call.path);
    const std::string allow(route->allow);
    if (call.method == "OPTIONS") return {204, "application/json", "", false, allow};
    if ((", " + allow + ",").find(", " + call.method + ",") == std::string::npos) {
        Reply reply = refusal(405, fmt::format("{} does not take {}, but {}", io::printable(call.path),
                                               io::printable(call.method), allow));
        reply.allow = allow;
        return reply;
    }
    const std::string name = route->path.ends_with('/') ? path.substr(route->path.size()) : "";
    return route->answer({call, name, options, page});
}

std::map<std::string, std::string> answered_paths() {
    std::map<std::string, std::string> paths = {{"/", std::string(by_get)}};
    for (const Route& route : routes)
        paths.emplace(std::string(route.path) + (route.path.ends_with('/') ? "{name}" : ""), route.allow);
    return paths;
}

Server::Server(ServerOptions options, Page page) : options_(std::move(options)), page_(std::move(page)) {}

Server::~Server() = default;

Result<int> Server::bind() {
    HttpSettings settings;
    settings.host = options_.host;
    settings.port = options_.port;
    settings.largest_request = options_.largest_request;
    settings.threads = options_.threads > 0 ? options_.threads : connections;
    settings.headers = {
        {"Content-Security-Policy",
         fmt::format("default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: "
                     "blob:; connect-src 'self' data: blob:; worker-src blob: data:; font-src data:; base-uri 'none'; "
                     "form-action 'none'; frame-ancestors 'none'",
                     page_.script_hashes.empty() ? "'none'" : page_.script_hashes)},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-cache"}};
    settings.handle = [this](const Call& call) { return reply_to(call, options_, page_); };
    settings.refuse = [](int status, const std::string& path) {
        if (status == 404) return nothing_at(path);
        if (status == 413) return refusal(413, "the request is too large");
        return status == 500 ? refusal(500, "internal fault", 3)
                             : refusal(status, fmt::format("the request was refused ({})", status));
    };
    auto http = load_http(std::move(settings));
    if (!http) return std::unexpected(http.error());
    http_ = std::move(*http);
    const int port = http_->bind();
    if (port < 0)
        return std::unexpected(
            Problem{fmt::format("{}:{}: cannot listen there (is it taken?)", options_.host, options_.port), true});
    return port;
}

void Server::run() {
    http_->run();
}

void Server::stop() {
    http_->stop();
}

}  // namespace roofline::serve
