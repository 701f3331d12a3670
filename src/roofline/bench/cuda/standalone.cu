// A program of its own for trying the kernels on a machine: runs the requests of a file, one JSON object a line, and
// prints a line for each result (with --tried, for each variant too, whose answers are all looked at). Not part of the
// plugin; script/cuda_bench builds it.
#include <cstdio>
#include <fstream>
#include <string>

#include "roofline/bench/cuda/requests.hpp"

namespace {

using nlohmann::json;

void print_result(const json& result, bool tried) {
    const std::string name = result.value("name", "");
    const std::string backend = result.value("backend", "");
    if (result.contains("problem")) {
        std::printf("%-34s %-9s %s\n", name.c_str(), backend.c_str(), result.value("problem", "").c_str());
        return;
    }
    const double time = result.value("time_s", 0.0);
    const double bytes = result.value("bytes", 0.0);
    std::printf("%-34s %-9s %9.2f us (%8.2f..%8.2f) %6.3f TB/s %7.1f TFLOP/s err %.1e  %4d buf  %s\n", name.c_str(),
                backend.c_str(), 1e6 * time, 1e6 * result.value("low_s", 0.0), 1e6 * result.value("high_s", 0.0),
                1e-12 * bytes / time, 1e-12 * result.value("flops", 0.0) / time, result.value("error", 0.0),
                result.value("buffers", 0), result.value("variant", "").c_str());
    if (!tried || !result.contains("tried")) return;
    for (const json& one : result["tried"]) {
        const double each = one.value("time_s", 0.0);
        std::printf("    %-40s %9.2f us %6.3f TB/s", one.value("variant", "").c_str(), 1e6 * each,
                    each > 0.0 ? 1e-12 * bytes / each : 0.0);
        if (one.contains("error")) std::printf("  err %.1e", one.value("error", 0.0));
        std::printf("\n");
    }
}

void print_step(const json& one, bool tried) {
    const std::string backend = one.value("backend", "");
    if (one.contains("problem")) {
        std::printf("    %-9s %s\n", backend.c_str(), one.value("problem", "").c_str());
        return;
    }
    const double time = one.value("time_s", 1.0);
    std::printf(
        "    %-9s %-12s %9.3f ms (%8.3f..%8.3f)  attention %7.3f  ffn %7.3f  other %7.3f ms  %9.1f tokens/s  "
        "%d kernels  %.3f TB/s  %d layers  %s\n",
        backend.c_str(), one.value("launch", "").c_str(), 1e3 * time, 1e3 * one.value("low_s", 0.0),
        1e3 * one.value("high_s", 0.0), 1e3 * one.value("attention_s", 0.0), 1e3 * one.value("ffn_s", 0.0),
        1e3 * one.value("other_s", 0.0), one.value("tokens_per_s", 0.0), one.value("kernels", 0),
        1e-12 * one.value("bytes", 0.0) / time, one.value("layers_distinct", 0),
        one.value("check", json::object()).dump().c_str());
    if (!tried) return;
    for (const json& way : one.value("ways", json::array()))
        std::printf("        %s\n", way.get<std::string>().c_str());
}

}  // namespace

int main(int count, char** arguments) {
    const bool tried = count > 2 && std::string(arguments[2]) == "--tried";
    std::ifstream requests(count > 1 ? arguments[1] : "");
    if (!requests) {
        std::fprintf(stderr, "usage: cuda_bench REQUESTS.jsonl [--tried]\n");
        return 2;
    }
    int problems = 0;
    for (std::string line; std::getline(requests, line);) {
        if (line.empty() || line[0] == '#') continue;
        json request = json::parse(line, nullptr, false);
        if (request.is_discarded()) {
            std::fprintf(stderr, "not JSON: %s\n", line.c_str());
            return 2;
        }
        if (tried) request["check_all"] = true;
        const bool whole_step = request.value("do", "") == "step";
        const json answer =
            json::parse(whole_step ? roofline::cuda::step(request, {}) : roofline::cuda::bench(request, {}));
        if (whole_step) {
            std::printf("step %s batch %d tokens %d context %d %s\n", request.value("stage", "").c_str(),
                        request.value("batch", 0), request.value("tokens", 1), request.value("context", 0),
                        request.value("name", "").c_str());
            for (const json& one : answer.value("results", json::array())) print_step(one, tried);
        } else {
            for (const json& one : answer.value("results", json::array())) print_result(one, tried);
        }
        if (answer.contains("problem")) {
            std::printf("problem: %s\n", answer.value("problem", "").c_str());
            ++problems;
        }
        std::fflush(stdout);
    }
    return problems > 0 ? 1 : 0;
}
