// ONNX Runtime profiles (SessionOptions.enable_profiling): a bare list of Chrome trace events (chrome_trace.hpp).
//
//   { "cat": "Session", "name": "model_run", ... }             one run of the model: a step
//   { "cat": "Node", "name": "NODE_kernel_time", "ts", "dur",  one node of the graph as it ran
//     "args": { "op_name": "MatMul", "provider": "CPUExecutionProvider",
//               "input_type_shape": [ { "float": [1, 4, 768] }, ... ], "output_type_shape": [ ... ] } }
#include <unordered_map>

#include <fmt/format.h>

#include "roofline/analyze/chrome_trace.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/json_scan.hpp"
#include "roofline/analyze/run.hpp"

namespace roofline::analyze {
namespace {

bool recognises(std::string_view first_bytes) {
    const auto has = [&](std::string_view text) { return first_bytes.find(text) != std::string_view::npos; };
    const std::size_t begin = first_bytes.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos || first_bytes[begin] != '[') return false;
    return has("\"cat\" : \"Session\"") || has("\"cat\":\"Session\"") || has("\"cat\": \"Session\"") ||
           (has("_kernel_time\"") && has("\"op_name\""));
}

/// [ { "float": [1, 4] }, ... ] as arguments: each object holds one type and its shape.
std::vector<Argument> arguments_of(std::string_view list) {
    std::vector<Argument> arguments;
    JsonScan scan(list);
    if (scan.next() != '[') return arguments;
    scan.open_array();
    bool first = true;
    while (scan.element(first)) {
        JsonScan entry(scan.value());
        Argument& argument = arguments.emplace_back();
        if (entry.next() != '{') continue;
        entry.open_object();
        bool fresh = true;
        std::string_view type;
        while (entry.member(type, fresh)) {
            argument.type = readable(type);
            Tensor& tensor = argument.tensors.emplace_back();
            JsonScan dims(entry.value());
            if (dims.next() != '[') continue;
            dims.open_array();
            bool first_dim = true;
            while (dims.element(first_dim)) tensor.dims.push_back(std::max<std::int64_t>(0, whole(dims.value(), 0)));
        }
    }
    return arguments;
}

/// As PyTorch spells them, so that one list of types serves both.
std::string type_name(const std::string& type) {
    if (type == "float16") return "c10::Half";
    if (type == "bfloat16") return "c10::BFloat16";
    if (type == "int64") return "long int";
    if (type == "int32") return "int";
    return type;
}

class Reader {
  public:
    explicit Reader(Timeline& timeline) : timeline_(timeline) { timeline_.host_runs_operators = true; }

    void event(const ChromeEvent& event) {
        std::int64_t begin = 0;
        std::int64_t duration = 0;
        if (!nanoseconds(event.time, begin) || !nanoseconds(event.duration, duration) || duration < 0) return;
        if (unquoted(event.category) == "Session" && unquoted(event.name) == "model_run") {
            timeline_.annotations.push_back({begin, begin + duration, timeline_.texts.number_of("model_run"), 0});
            return;
        }
        const std::string_view name = unquoted(event.name);
        const std::string_view op = unquoted(event.argument("op_name"));
        if (unquoted(event.category) != "Node" || !name.ends_with("_kernel_time") || op.empty()) return;
        std::string key(op);
        for (const char* shapes : {"input_type_shape", "output_type_shape"}) key += event.argument(shapes);
        const auto [place, fresh] =
            signatures_.try_emplace(key, static_cast<std::uint32_t>(timeline_.signatures.size()));
        if (fresh) timeline_.signatures.push_back(signature_of(op, event));
        timeline_.operations.push_back({begin, begin + duration, none, place->second, 0, none});
    }

  private:
    Signature signature_of(std::string_view op, const ChromeEvent& event) {
        Signature signature;
        signature.name = "onnx::" + readable(op);
        signature.arguments = arguments_of(event.argument("input_type_shape"));
        signature.has_shapes = !signature.arguments.empty();
        for (Argument& argument : signature.arguments) argument.type = type_name(argument.type);
        for (Argument& argument : arguments_of(event.argument("output_type_shape"))) {
            signature.output_type = type_name(argument.type);
            for (Tensor& tensor : argument.tensors) signature.outputs.push_back(std::move(tensor));
        }
        timeline_.any_shapes = timeline_.any_shapes || signature.has_shapes;
        return signature;
    }

    Timeline& timeline_;
    std::unordered_map<std::string, std::uint32_t> signatures_;
};

Result<Analysis> read(Input& input, const Options& options) {
    Timeline timeline;
    Reader reader(timeline);
    const auto end = read_chrome_trace(input, {.event = [&](const ChromeEvent& event) { reader.event(event); },
                                               .wants_arguments = {},
                                               .header = {},
                                               .progress = options.progress});
    if (!end) return std::unexpected(end.error());
    if (timeline.operations.empty()) {
        return fail(fmt::format("{}: {} events, but none is a node that ran; profile a run of the model", input.name(),
                                end->events));
    }
    auto analysis = analyze_timeline(std::move(timeline), options, input.name());
    if (!analysis) return analysis;
    analysis->bytes_read = static_cast<double>(end->bytes);
    analysis->events = static_cast<double>(end->events);
    if (end->cut) {
        analysis->partial = true;
        analysis->account.notes.insert(analysis->account.notes.begin(),
                                       fmt::format("the file stops in the middle, after {} whole events", end->events));
    }
    return analysis;
}

}  // namespace

Format onnxruntime_format() {
    return {"ONNX Runtime profile", "onnxruntime", recognises, read};
}

}  // namespace roofline::analyze
