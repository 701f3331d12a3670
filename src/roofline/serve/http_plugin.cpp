// roofline_http.so: cpp-httplib behind http.hpp.
#include <httplib.h>
#include <memory>

#include "roofline/serve/http.hpp"

namespace roofline::serve {
namespace {

/// The library lets five connections wait to be taken; whoever comes sixth at once would try again a second later.
class Server : public httplib::Server {
  public:
    void let_wait(int connections) { ::listen(svr_sock_, connections); }
};

class Library : public Http {
  public:
    explicit Library(HttpSettings settings) : settings_(std::move(settings)) {
        http_.set_default_headers(httplib::Headers(settings_.headers.begin(), settings_.headers.end()));
        http_.set_payload_max_length(settings_.largest_request);
        http_.set_read_timeout(10, 0);
        http_.set_write_timeout(10, 0);
        // A connection has a thread; after so many requests it makes room for one that waits.
        http_.set_keep_alive_max_count(1'000);
        http_.set_keep_alive_timeout(5);
        http_.set_tcp_nodelay(true);
        // The library would share a port with whoever has it; we want to be told.
        http_.set_socket_options([](socket_t socket) {
            const int yes = 1;
            ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        http_.new_task_queue = [this] { return new httplib::ThreadPool(static_cast<std::size_t>(settings_.threads)); };
        const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
            Call call{request.method, request.path, {}, request.body, false};
            call.parameters.insert(request.params.begin(), request.params.end());
            call.takes_gzip = request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos;
            give(settings_.handle(call), response);
        };
        http_.Get(".*", handle);
        http_.Post(".*", handle);
        // Others get no answer, but are told so.
        http_.Put(".*", handle);
        http_.Patch(".*", handle);
        http_.Delete(".*", handle);
        http_.Options(".*", handle);
        http_.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
            if (response.body.empty() && response.content_length_ == 0)
                give(settings_.refuse(response.status, request.path), response);
        });
        http_.set_exception_handler(
            [this](const httplib::Request& request, httplib::Response& response, std::exception_ptr) {
                give(settings_.refuse(500, request.path), response);
            });
    }

    int bind() override {
        const int port = settings_.port == 0                                  ? http_.bind_to_any_port(settings_.host)
                         : http_.bind_to_port(settings_.host, settings_.port) ? settings_.port
                                                                              : -1;
        if (port >= 0) http_.let_wait(1024);
        return port;
    }
    void run() override { http_.listen_after_bind(); }
    void stop() override { http_.stop(); }

  private:
    static void give(Reply reply, httplib::Response& response) {
        response.status = reply.status;
        if (!reply.allow.empty()) response.set_header("Allow", reply.allow);
        if (!reply.gzip) return response.set_content(std::move(reply.body), reply.type);
        // A provider: what has a body would be compressed once more.
        auto body = std::make_shared<const std::string>(std::move(reply.body));
        response.set_header("Content-Encoding", "gzip");
        response.set_content_provider(body->size(), reply.type,
                                      [body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                          return sink.write(body->data() + offset, length);
                                      });
    }

    HttpSettings settings_;
    Server http_;
};

}  // namespace
}  // namespace roofline::serve

extern "C" roofline::serve::Http* roofline_http(roofline::serve::HttpSettings* settings) {
    return new roofline::serve::Library(std::move(*settings));
}
