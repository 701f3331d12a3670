// What the page calls: alloc and release move text in and out of the module's memory, ask answers a question. Texts are
// UTF-8 and JSON (roofline/ask/ask.hpp says of what form).
//
//   at = alloc(n); write n bytes at `at`; ask(at, n); release(at)
//   the answer is answer_length() bytes at answer(), until the next ask
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "roofline/ask/ask.hpp"

namespace {
std::string last_answer;
}

extern "C" {

// Debian's C library for WebAssembly is built with a stack protector and without what it calls.
[[gnu::used]] unsigned long __stack_chk_guard = 0x5bd1e995;
[[noreturn, gnu::used]] void __stack_chk_fail() {
    std::abort();
}

[[clang::export_name("alloc")]] void* roofline_alloc(std::size_t bytes) {
    return std::malloc(bytes);
}

[[clang::export_name("release")]] void roofline_release(void* at) {
    std::free(at);
}

[[clang::export_name("ask")]] void roofline_ask(const char* request, std::size_t bytes) {
    static roofline::ask::Memory memory;  // so that dragging a slider reads no file twice
    last_answer = roofline::ask::answer(std::string_view(request, bytes), memory).text;
}

[[clang::export_name("answer")]] const char* roofline_answer() {
    return last_answer.data();
}

[[clang::export_name("answer_length")]] std::size_t roofline_answer_length() {
    return last_answer.size();
}
}
