// PyTorch profiler traces (Kineto), as torch.profiler's export_chrome_trace writes them: Chrome trace JSON
// (chrome_trace.hpp) whose events are, by category
//
//   cpu_op ("Operator" in old files)   an operator on a host thread; args: "External id", "Input Dims", "Input type",
//                                      "Input Strides", "Concrete Inputs"; of collectives "In msg nelems", "Group size"
//   cuda_runtime, cuda_driver          a call that starts work; args: "correlation"
//   kernel, gpu_memcpy, gpu_memset     what ran; args: "device", "stream", "correlation", "External id", "bytes"
//   user_annotation                    a range named with record_function
//   python_function, ac2g, ...         not needed
//
// The outer object names the devices ("deviceProperties") and the rank ("distributedInfo"). Files from before
// categories (PyTorch 1.7) tell host from device by the process name only.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "roofline/analyze/chrome_trace.hpp"
#include "roofline/analyze/format.hpp"
#include "roofline/analyze/host_operators.hpp"
#include "roofline/analyze/json_scan.hpp"
#include "roofline/analyze/lists.hpp"
#include "roofline/analyze/run.hpp"
#include "roofline/analyze/timeline.hpp"

namespace roofline::analyze {
namespace {

bool recognises(std::string_view first_bytes) {
    const auto has = [&](std::string_view text) { return first_bytes.find(text) != std::string_view::npos; };
    if (has("\"traceEvents\"")) return true;
    // The bare list of events; ONNX Runtime writes one too, with categories of its own.
    const std::size_t begin = first_bytes.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos || first_bytes[begin] != '[') return false;
    return has("\"ph\"") && has("\"ts\"") && !has("\"cat\" : \"Session\"") && !has("\"cat\":\"Session\"");
}

enum class Category { other, operation, call, kernel, copy, fill, annotation };

Category category_of(std::string_view raw) {
    const std::string_view text = unquoted(raw);
    if (text == "cpu_op" || text == "Operator") return Category::operation;
    if (text == "kernel" || text == "Kernel") return Category::kernel;
    if (text == "cuda_runtime" || text == "cuda_driver" || text == "Runtime" || text == "xpu_runtime")
        return Category::call;
    if (text == "gpu_memcpy" || text == "Memcpy") return Category::copy;
    if (text == "gpu_memset" || text == "Memset") return Category::fill;
    if (text == "user_annotation" || text == "UserAnnotation") return Category::annotation;
    return Category::other;
}

/// Most operators in a trace only look at a tensor differently, allocate one, or call another operator that does the
/// work and is in the trace as well. They start no kernel themselves, so nothing is lost without them.
bool starts_nothing(std::string_view name) {
    static const std::unordered_set<std::string_view> names = {
        // Views.
        "view", "as_strided", "transpose", "t", "slice", "select", "expand", "unsqueeze", "squeeze", "detach",
        "detach_", "alias", "permute", "_unsafe_view", "narrow", "_reshape_alias", "chunk", "split", "split_with_sizes",
        "unbind", "flatten", "unflatten", "view_as", "expand_as", "movedim", "swapaxes", "numpy_T", "mT",
        // Room.
        "empty", "empty_strided", "empty_like", "new_empty", "resize_", "set_", "result_type", "lift_fresh",
        // What calls others.
        "reshape", "reshape_as", "to", "_to_copy", "type_as", "contiguous", "matmul", "zeros", "zeros_like", "ones",
        "ones_like", "full", "full_like", "new_zeros", "softmax", "item", "repeat", "clone"};
    if (!name.starts_with("aten::")) return name == "detach" || name == "detach_";
    return names.contains(name.substr(6));
}

std::vector<std::int64_t> whole_numbers(JsonScan& scan) {
    std::vector<std::int64_t> numbers;
    scan.open_array();
    bool first = true;
    while (scan.element(first)) {
        if (scan.next() == '[' || scan.next() == '{') {
            scan.value();
            continue;
        }
        numbers.push_back(std::clamp<std::int64_t>(whole(scan.value(), 0), 0, std::int64_t{1} << 50U));
    }
    return numbers;
}

/// "[[4, 512], [], [[2, 3], [2, 3]]]": tensors, plain values and lists of tensors.
std::vector<std::vector<std::vector<std::int64_t>>> nested_numbers(std::string_view text, std::vector<bool>& lists) {
    std::vector<std::vector<std::vector<std::int64_t>>> result;
    // A scan wants to see what follows a number, so the text must not end with one; a bracket closes it.
    JsonScan scan(text);
    if (scan.next() != '[') return result;
    scan.open_array();
    bool first = true;
    while (scan.element(first)) {
        auto& entry = result.emplace_back();
        const std::string_view value = scan.value();
        JsonScan inside(value);
        const bool list = value.size() > 1 && value[0] == '[' && value.find('[', 1) != std::string_view::npos;
        lists.push_back(list);
        if (value.empty() || value[0] != '[') continue;
        if (!list) {
            entry.push_back(whole_numbers(inside));
            continue;
        }
        inside.open_array();
        bool first_inside = true;
        while (inside.element(first_inside)) {
            if (inside.next() == '[') {
                entry.push_back(whole_numbers(inside));
            } else {
                inside.value();
            }
        }
    }
    return result;
}

std::vector<std::string> texts(std::string_view text) {
    std::vector<std::string> result;
    JsonScan scan(text);
    if (scan.next() != '[') return result;
    scan.open_array();
    bool first = true;
    while (scan.element(first)) result.push_back(readable(unquoted(scan.value())));
    return result;
}

bool wants_arguments(const ChromeEvent& event) {
    const Category category = category_of(event.category);
    if (category == Category::other) return false;
    return category != Category::operation || !starts_nothing(unquoted(event.name));
}

class Reader {
  public:
    explicit Reader(Timeline& timeline) : timeline_(timeline) {}

    bool wants(const ChromeEvent& event) const {
        return wants_arguments(event) || (picking_.operation != none && unquoted(event.name) == "aten::as_strided");
    }

    void header(std::string_view key, std::string_view value) {
        if (key == "deviceProperties") devices(value);
        if (key == "distributedInfo") distributed(value);
        if (key == "record_shapes") shapes_asked_ = whole(value) != 0;
    }

    /// Words for events that might have been one.
    std::string without_times() const {
        return bad_times_ > 0.0 ? fmt::format(" with a time ({:.0f} have one that is none)", bad_times_) : "";
    }

    void event(const ChromeEvent& event) {
        ++timeline_.events;
        if (event.passed_over) return;
        if (event.phase.size() != 3 || event.phase[1] != 'X') {
            if (event.phase == "\"M\"") process_name(event);
            return;
        }
        Category category = category_of(event.category);
        if (category == Category::other) {
            if (!event.category.empty()) return;
            category = without_category(event);
            if (category == Category::other) return;
        }
        std::int64_t begin = 0;
        std::int64_t duration = 0;
        if (!nanoseconds(event.time, begin) || (!event.duration.empty() && !nanoseconds(event.duration, duration)) ||
            duration < 0) {
            ++bad_times_;
            return;
        }
        switch (category) {
            case Category::operation:
                if (unquoted(event.name) == "aten::as_strided") {
                    picked(event, begin);
                } else {
                    operation(event, begin, duration);
                }
                break;
            case Category::call:
                if (const std::uint32_t id = timeline_.id_of(whole(event.argument("correlation"), -1)); id != none)
                    timeline_.calls.push_back({begin, begin + duration, id, caller_of(event)});
                break;
            case Category::annotation:
                // What gloo does is named, not called: on threads of its own, with the shapes of what it moves.
                if (unquoted(event.name).starts_with("gloo:")) operation(event, begin, duration);
                timeline_.annotations.push_back(
                    {begin, begin + duration, timeline_.texts.number_of(unquoted(event.name)), thread_of(event)});
                break;
            case Category::kernel:
            case Category::copy:
            case Category::fill:
                device_event(event, category, begin, duration);
                break;
            case Category::other:
                break;
        }
    }

    void finish() {
        if (bad_times_ > 0) {
            timeline_.notes.push_back(
                bad_times_ == 1.0
                    ? "1 event has a time that is none and was left out"
                    : fmt::format("{:.0f} events have times that are none and were left out", bad_times_));
        }
        if (old_) {
            timeline_.notes.emplace_back(
                "this trace is from before PyTorch wrote categories: operators and kernels are told apart by their "
                "process, and kernels carry no number that ties them to operators");
        }
    }

  private:
    void devices(std::string_view value) {
        JsonScan list(value);
        if (list.next() != '[') return;
        list.open_array();
        bool first = true;
        while (list.element(first)) {
            JsonScan device(list.value());
            if (device.next() != '{') continue;
            device.open_object();
            bool fresh = true;
            std::string_view key;
            std::int64_t id = 0;
            std::string name;
            while (device.member(key, fresh)) {
                const std::string_view member = device.value();
                if (key == "id") id = whole(member);
                if (key == "name") name = readable(unquoted(member));
            }
            if (!name.empty()) timeline_.devices[id] = name;
        }
    }

    void distributed(std::string_view value) {
        JsonScan scan(value);
        if (scan.next() != '{') return;
        scan.open_object();
        bool first = true;
        std::string_view key;
        while (scan.member(key, first)) {
            const std::string_view member = scan.value();
            if (key == "rank") timeline_.rank = whole(member, -1);
            if (key == "world_size") timeline_.ranks = whole(member, 0);
        }
    }

    void process_name(const ChromeEvent& event) {
        if (event.name != "\"process_name\"") return;
        if (event.argument("name").find("CUDA") != std::string_view::npos)
            device_processes_.push_back(std::string(event.process));
    }

    /// Files of PyTorch 1.7 and before: "pid": "CPU functions" or "CUDA functions".
    Category without_category(const ChromeEvent& event) {
        if (event.process == "\"CPU functions\"") {
            old_ = true;
            return Category::operation;
        }
        const bool device =
            event.process == "\"CUDA functions\"" ||
            std::find(device_processes_.begin(), device_processes_.end(), event.process) != device_processes_.end();
        if (!device) return Category::other;
        old_ = true;
        return Category::kernel;
    }

    std::uint32_t thread_of(const ChromeEvent& event) {
        if (event.process == last_process_ && event.thread == last_thread_) return last_number_;
        std::string key(event.process);
        key += '/';
        key += event.thread;
        const auto [place, fresh] = threads_.try_emplace(std::move(key), static_cast<std::uint32_t>(threads_.size()));
        last_process_ = event.process;
        last_thread_ = event.thread;
        last_number_ = place->second;
        return last_number_;
    }

    std::uint32_t caller_of(const ChromeEvent& event) {
        return timeline_.caller_of(timeline_.texts.number_of(unquoted(event.name)), thread_of(event));
    }

    void operation(const ChromeEvent& event, std::int64_t begin, std::int64_t duration) {
        std::uint32_t external = none;
        key_.assign(event.name);
        for (const auto& [name, value] : event.arguments) {
            if (name == "External id") {
                external = timeline_.id_of(whole(value, -1));
            } else if (name.starts_with("Input ") || name == "Concrete Inputs" || name == "Collective name" ||
                       name.ends_with("nelems") || name == "Group size" || name == "dtype" || name == "flops" ||
                       name == "Output Dims") {
                key_ += '\1';
                key_ += name;
                key_ += '\2';
                key_ += value;
            }
        }
        const auto found = signatures_.find(key_);
        std::uint32_t signature = 0;
        if (found != signatures_.end()) {
            signature = found->second;
        } else {
            signature = static_cast<std::uint32_t>(timeline_.signatures.size());
            timeline_.signatures.push_back(signature_of(event));
            signatures_.emplace(key_, signature);
        }
        timeline_.operations.push_back({begin, begin + duration, external, signature, thread_of(event), none});
        if (unquoted(event.name) == "aten::index")
            picking_ = {static_cast<std::uint32_t>(timeline_.operations.size() - 1), begin + duration, key_};
    }

    /// x[indices] comes without the shapes of its indices. What it does next is to look at x as if it had the size of
    /// the result, standing still where it is picked from: a stride of zero.
    void picked(const ChromeEvent& event, std::int64_t begin) {
        if (picking_.operation == none) return;
        Operation& operation = timeline_.operations[picking_.operation];
        if (begin >= picking_.end || operation.thread != thread_of(event)) {
            picking_.operation = none;
            return;
        }
        const auto values = texts(event.argument("Concrete Inputs"));
        if (values.size() < 3) return;
        JsonScan sizes(values[1]);
        JsonScan strides(values[2]);
        if (sizes.next() != '[' || strides.next() != '[') return;
        Tensor result{whole_numbers(sizes), whole_numbers(strides)};
        if (result.dims.size() != result.strides.size() ||
            std::find(result.strides.begin(), result.strides.end(), 0) == result.strides.end())
            return;
        const auto [place, fresh] = signatures_.try_emplace(picking_.key + '\3' + values[1],
                                                            static_cast<std::uint32_t>(timeline_.signatures.size()));
        if (fresh) {
            Signature signature = timeline_.signatures[operation.signature];
            signature.outputs.push_back(std::move(result));
            timeline_.signatures.push_back(std::move(signature));
        }
        operation.signature = place->second;
        picking_.operation = none;
    }

    Signature signature_of(const ChromeEvent& event) {
        Signature signature;
        signature.name = readable(unquoted(event.name));
        std::string_view dims = event.argument("Input Dims");
        if (dims.empty()) dims = event.argument("Input dims");
        std::string_view types = event.argument("Input type");
        signature.collective = readable(unquoted(event.argument("Collective name")));
        signature.type = readable(unquoted(event.argument("dtype")));
        signature.elements_in = number(event.argument("In msg nelems"));
        signature.elements_out = number(event.argument("Out msg nelems"));
        signature.ranks = number(event.argument("Group size"));
        signature.flops = number(event.argument("flops"));
        if (dims.empty()) return signature;
        signature.has_shapes = true;
        timeline_.any_shapes = true;
        std::vector<bool> lists;
        std::vector<bool> ignored;
        auto shapes = nested_numbers(dims, lists);
        const auto strides = nested_numbers(event.argument("Input Strides"), ignored);
        const auto names = texts(types);
        const auto values = texts(event.argument("Concrete Inputs"));
        for (std::size_t i = 0; i < std::max({shapes.size(), names.size(), values.size()}); ++i) {
            Argument& argument = signature.arguments.emplace_back();
            if (i < names.size()) argument.type = names[i];
            if (i < values.size()) argument.value = values[i];
            if (i >= shapes.size()) continue;
            argument.is_list = lists[i];
            for (std::size_t k = 0; k < shapes[i].size(); ++k) {
                Tensor& tensor = argument.tensors.emplace_back();
                tensor.dims = std::move(shapes[i][k]);
                if (i < strides.size() && k < strides[i].size() && strides[i][k].size() == tensor.dims.size())
                    tensor.strides = strides[i][k];
            }
        }
        return signature;
    }

    void device_event(const ChromeEvent& event, Category category, std::int64_t begin, std::int64_t duration) {
        DeviceEvent ran;
        ran.begin = begin;
        ran.duration = duration;
        ran.name = timeline_.texts.number_of(unquoted(event.name));
        ran.ran = category == Category::kernel ? Ran::kernel : category == Category::copy ? Ran::copy : Ran::fill;
        // Kernels of old files are copies too, by name.
        std::int64_t device = whole(event.process, 0);
        std::int64_t stream = whole(event.thread, 0);
        for (const auto& [name, value] : event.arguments) {
            if (name == "correlation") ran.correlation = timeline_.id_of(whole(value, -1));
            if (name == "External id" || name == "external id") ran.operation = timeline_.id_of(whole(value, -1));
            if (name == "device") device = whole(value, device);
            if (name == "stream") stream = whole(value, stream);
            if (name == "bytes") ran.size = timeline_.size_of(std::max(0.0, number(value)));
            if (name == "graph id" || name == "graph node id") ran.in_graph = whole(value, 0) > 0;
        }
        ran.stream = timeline_.stream_of(device, stream);
        timeline_.ran.push_back(ran);
    }

    Timeline& timeline_;
    std::unordered_map<std::string, std::uint32_t> signatures_;
    std::unordered_map<std::string, std::uint32_t> threads_;
    /// The last x[indices], until the size of its result is known.
    struct Picking {
        std::uint32_t operation = none;
        std::int64_t end = 0;
        std::string key;
    };

    std::vector<std::string> device_processes_;
    Picking picking_;
    std::string key_;
    std::string last_process_;
    std::string last_thread_;
    std::uint32_t last_number_ = 0;
    double bad_times_ = 0.0;
    bool shapes_asked_ = false;
    bool old_ = false;
};

Result<Analysis> read(Input& input, const Options& options) {
    Timeline timeline;
    Reader reader(timeline);
    const auto end = read_chrome_trace(
        input, {.event = [&](const ChromeEvent& event) { reader.event(event); },
                .wants_arguments = [&](const ChromeEvent& event) { return reader.wants(event); },
                .header = [&](std::string_view key, std::string_view value) { reader.header(key, value); },
                .progress = options.progress});
    if (!end) return std::unexpected(end.error());
    reader.finish();
    if (timeline.ran.empty() && timeline.operations.empty()) {
        return fail(
            fmt::format("{}: a trace of {} events, but none is an operator or a kernel{}; docs/tracing.md shows "
                        "how to record one",
                        input.name(), end->events, reader.without_times()));
    }
    tell_lists(timeline);
    const bool host_alone = timeline.ran.empty();
    if (host_alone) keep_what_ran(timeline);
    auto analysis = analyze_timeline(std::move(timeline), options, input.name());
    if (!analysis) return analysis;
    analysis->bytes_read = static_cast<double>(end->bytes);
    analysis->events = static_cast<double>(end->events);
    if (host_alone) {
        analysis->account.notes.emplace_back(
            "the file holds no kernels: operators are taken to have run on the processor that called them (a device's "
            "kernels need ProfilerActivity.CUDA)");
    }
    if (end->cut) {
        analysis->partial = true;
        analysis->account.notes.insert(
            analysis->account.notes.begin(),
            fmt::format("the file stops in the middle, after {} whole events and {} bytes: what follows is about those",
                        end->events, end->bytes));
    }
    return analysis;
}

}  // namespace

Format kineto_format() {
    return {"PyTorch profiler trace", "kineto", recognises, read};
}

}  // namespace roofline::analyze
