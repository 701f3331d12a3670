// What calls get, without a network; and once over a real socket.
#include "roofline/serve/server.hpp"

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roofline/io/fields.hpp"

namespace roofline::serve {
namespace {

using ::testing::HasSubstr;
using Json = io::Json;

const Page small_page = {"\x1f\x8b page", "'sha256-abc'"};

Json document(const Reply& reply) {
    return Json::parse(reply.body, nullptr, false);
}

Reply post(const std::string& verb, const std::string& body) {
    return reply_to({"POST", "/api/v1/" + verb, {}, body, false}, {}, small_page);
}

Reply get(const std::string& path, std::multimap<std::string, std::string> parameters = {}) {
    return reply_to({"GET", path, std::move(parameters), "", true}, {}, small_page);
}

std::string refused(const Reply& reply, int status) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const Json json = document(reply);
    return json.contains("error") ? json["error"]["text"].get<std::string>() : "answered";
}

TEST(Serve, APredictionIsTheSameByBodyAndByAddress) {
    const Reply posted = post("predict", R"({"options": {"model": "gpt2", "device": "l40s", "batch": 4}})");
    EXPECT_EQ(posted.status, 200);
    EXPECT_EQ(document(posted)["schema"], "roofline.report/1");
    const Reply got = get("/api/v1/predict", {{"model", "gpt2"}, {"device", "l40s"}, {"batch", "4"}});
    EXPECT_EQ(got.body, posted.body);
}

TEST(Serve, BadQuestionsGetAFourHundredAndOneLine) {
    EXPECT_THAT(refused(post("predict", "{"), 400), HasSubstr("request"));
    EXPECT_THAT(refused(post("predict", "[]"), 400), HasSubstr("expected an object"));
    EXPECT_THAT(refused(post("predict", R"({"options": {"model": "gpt9", "device": "l40s"}})"), 400),
                HasSubstr("gpt9"));
    EXPECT_THAT(refused(post("predict", R"({"options": {"model": "gpt2", "device": "l40s", "requests": 1e9}})"), 400),
                HasSubstr("over the network at most"));
    EXPECT_THAT(refused(post("plan", R"({"options": {"model": "gpt2", "devices": "l40s:1000"}})"), 400),
                HasSubstr("at most 64 of a kind"));
    EXPECT_THAT(refused(post("guess", "{}"), 404), HasSubstr("nothing at"));
    EXPECT_THAT(refused(post("measure", "{}"), 403), HasSubstr("not allowed"));
    EXPECT_THAT(refused(get("/api/v1/predict", {{"bach", "1"}}), 400), HasSubstr("\"bach\" is not an option"));
}

TEST(Serve, WhatTakesTooLongIsGivenUpWithOneLine) {
    ServerOptions hurried;
    hurried.longest_answer = 0.0;  // over before it is begun, on however fast a machine
    const std::string question = R"({"options": {"model": "gpt2", "device": "l40s"}})";
    const auto asked = [&] { return reply_to({"POST", "/api/v1/advise", {}, question, false}, hurried, small_page); };
    EXPECT_EQ(refused(asked(), 503),
              "others were being answered after 0 s (serve --time-limit); the command line has no such limit");
    EXPECT_EQ(document(asked())["error"]["exit"], 130);
    hurried.longest_answer = 3600.0;
    EXPECT_EQ(asked().status, 200);
}

TEST(Serve, NoFileOfTheHostIsReachable) {
    for (const char* path : {"/etc/passwd", "/../../etc/passwd", "/api/v1/models/../../etc/passwd"}) {
        const Reply reply = get(path);
        EXPECT_GE(reply.status, 400) << path;
        EXPECT_EQ(reply.body.find("root:"), std::string::npos);
    }
    EXPECT_THAT(refused(get("/api/v1/predict", {{"model", "/etc/passwd"}, {"device", "l40s"}}), 400),
                HasSubstr("/etc/passwd"));
}

TEST(Serve, ThePageComesAsItWasCompressed) {
    const Reply reply = get("/");
    EXPECT_TRUE(reply.gzip);
    EXPECT_EQ(reply.body, small_page.gzip);
    EXPECT_EQ(reply_to({"GET", "/", {}, "", false}, {}, small_page).status, 406);
    EXPECT_EQ(reply_to({"GET", "/", {}, "", true}, {}, {}).status, 404);
}

TEST(Serve, TheInterfaceIsDescribed) {
    const Json description = document(get("/api/v1/openapi.json"));
    EXPECT_EQ(description["openapi"], "3.1.0");
    for (const char* path : {"/api/v1/predict", "/api/v1/advise", "/api/v1/sweep", "/api/v1/plan", "/api/v1/models"})
        EXPECT_TRUE(description["paths"].contains(path)) << path;
    EXPECT_TRUE(description["paths"]["/api/v1/predict"]["post"].contains("requestBody"));
}

TEST(Serve, WhatIsDescribedIsAnsweredAndWhatIsAnsweredIsDescribed) {
    const Json description = document(get("/api/v1/openapi.json"));
    std::map<std::string, std::string> described;  // path: methods, as the header Allow has them
    for (const auto& [path, methods] : description["paths"].items()) {
        const bool by_get = methods.contains("get");
        const bool by_post = methods.contains("post");
        described[path] = by_get && by_post ? "GET, HEAD, POST" : by_get ? "GET, HEAD" : "POST";
    }
    EXPECT_EQ(described, answered_paths());
    for (const auto& [path, allow] : described) {
        std::string asked = path;
        if (const std::size_t at = asked.find("{name}"); at != std::string::npos)
            asked.replace(at, 6, asked.find("models") != std::string::npos ? "gpt2" : "h100-sxm");
        for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
            const Reply reply = reply_to({method, asked, {}, "{}", true}, {}, small_page);
            if (allow.find(method) == std::string::npos) {
                EXPECT_THAT(refused(reply, 405), HasSubstr("does not take")) << method << " " << asked;
                EXPECT_EQ(reply.allow, allow) << method << " " << asked;
                continue;
            }
            std::string key = method;
            for (char& c : key) c = static_cast<char>(c - 'A' + 'a');
            EXPECT_TRUE(description["paths"][path][key]["responses"].contains(std::to_string(reply.status)))
                << method << " " << asked << " " << reply.status << " " << reply.body.substr(0, 200);
            EXPECT_NE(reply.status, 405);
        }
        EXPECT_EQ(reply_to({"OPTIONS", asked, {}, "", true}, {}, small_page).allow, allow);
    }
    EXPECT_THAT(refused(get("/api/v1/models/gpt9"), 404), HasSubstr("gpt9"));
    EXPECT_THAT(refused(get("/api/v1/models/"), 404), HasSubstr("nothing at"));
}

/// A description that a program can follow: what it names is there, and what a question must bring is said.
TEST(Serve, TheDescriptionHoldsTogether) {
    const Json description = document(get("/api/v1/openapi.json"));
    const std::string text = description.dump();
    for (std::size_t at = text.find("\"$ref\":\"#/"); at != std::string::npos;
         at = text.find("\"$ref\":\"#/", at + 1)) {
        const std::size_t from = at + 9;
        const std::string pointer = text.substr(from, text.find('"', from) - from);
        EXPECT_TRUE(description.contains(Json::json_pointer(pointer))) << pointer;
    }
    for (const auto& [path, methods] : description["paths"].items()) {
        for (const auto& [method, operation] : methods.items()) {
            EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
            EXPECT_TRUE(operation["responses"].contains("200")) << path;
            EXPECT_EQ(path.find("{name}") != std::string::npos,
                      operation.contains("parameters") && operation["parameters"][0]["in"] == "path")
                << path;
        }
    }
}

TEST(Serve, NamesAreListed) {
    EXPECT_GT(document(get("/api/v1/models"))["names"].size(), 100U);
    EXPECT_GT(document(get("/api/v1/devices"))["devices"].size(), 50U);
    EXPECT_EQ(document(get("/api/v1/devices/h100-sxm"))["name"], "h100-sxm");
    EXPECT_EQ(document(get("/api/v1/models/gpt2"))["name"], "gpt2");
}

std::string over_a_socket(int port, const std::string& request) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "not connected";
    if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "not sent";
    std::string answer;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::recv(socket, buffer.data(), buffer.size(), 0)) > 0;)
        answer.append(buffer.data(), static_cast<std::size_t>(n));
    ::close(socket);
    return answer;
}

std::string get_request(const std::string& path, const std::string& more = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n" + more + "\r\n";
}

TEST(Serve, AnswersOverTheNetworkWithItsHeaders) {
    ServerOptions options;
    options.port = 0;
    options.largest_request = 1000;
    Server server(options, small_page);
    const auto port = server.bind();
    if (!port) GTEST_SKIP() << port.error().text;
    std::thread running([&] { server.run(); });

    const std::string predicted = over_a_socket(*port, get_request("/api/v1/predict?model=gpt2&device=l40s"));
    EXPECT_THAT(predicted, HasSubstr("HTTP/1.1 200"));
    EXPECT_THAT(predicted, HasSubstr("script-src 'sha256-abc' 'wasm-unsafe-eval'"));
    EXPECT_THAT(predicted, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(predicted, HasSubstr("roofline.report/1"));
    EXPECT_THAT(over_a_socket(*port, get_request("/nowhere")), HasSubstr("there is nothing at /nowhere"));
    for (const char* method : {"DELETE", "PUT", "PATCH", "POST"}) {
        const std::string other =
            over_a_socket(*port, std::string(method) + " /api/v1/models HTTP/1.1\r\nHost: here\r\n" +
                                     "Connection: close\r\nContent-Length: 0\r\n\r\n");
        EXPECT_THAT(other, HasSubstr("HTTP/1.1 405")) << method;
        EXPECT_THAT(other, HasSubstr("Allow: GET, HEAD\r\n")) << method;
        EXPECT_THAT(other, HasSubstr("does not take")) << method;
    }
    const std::string page = over_a_socket(*port, get_request("/", "Accept-Encoding: gzip\r\n"));
    EXPECT_THAT(page, HasSubstr("Content-Encoding: gzip"));
    EXPECT_TRUE(page.ends_with(small_page.gzip));
    const std::string large = over_a_socket(
        *port, "POST /api/v1/predict HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n" +
                   std::string(5000, ' '));
    EXPECT_THAT(large, HasSubstr("413"));

    std::vector<std::thread> threads;
    std::array<std::string, 8> answers;
    for (std::string& answer : answers) {
        threads.emplace_back(
            [&answer, &port] { answer = over_a_socket(*port, get_request("/api/v1/predict?model=gpt2&device=h20")); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);

    ServerOptions taken;
    taken.port = *port;
    Server other(taken, {});
    const auto again = other.bind();
    ASSERT_FALSE(again);
    EXPECT_TRUE(again.error().unavailable);

    server.stop();
    running.join();
}

}  // namespace
}  // namespace roofline::serve
