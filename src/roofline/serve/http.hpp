// What speaks HTTP, as the rest of the program sees it. It is a library of its own, roofline_http.so beside the
// program, loaded when `serve` is: the web library brings others along that no other verb should wait for.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "roofline/core/problem.hpp"

namespace roofline::serve {

struct Call {
    std::string method;  // GET, HEAD, POST; whatever was sent
    std::string path;
    std::multimap<std::string, std::string> parameters;  // what stands behind the question mark
    std::string body;
    bool takes_gzip = false;
};

struct Reply {
    int status = 200;
    std::string type = "application/json";
    std::string body;
    bool gzip = false;       // the body is compressed already
    std::string allow = {};  // methods that this path takes, where another came
};

struct HttpSettings {
    std::string host;
    int port = 0;
    int threads = 0;
    std::size_t largest_request = 0;
    std::map<std::string, std::string> headers;  // of every reply
    std::function<Reply(const Call&)> handle;    // called by many threads
    std::function<Reply(int status, const std::string& path)> refuse;
};

class Http {
  public:
    Http() = default;
    Http(const Http&) = delete;
    Http& operator=(const Http&) = delete;
    virtual ~Http() = default;

    virtual int bind() = 0;  // the port, or -1
    virtual void run() = 0;
    virtual void stop() = 0;
};

Result<std::unique_ptr<Http>> load_http(HttpSettings settings);

}  // namespace roofline::serve
