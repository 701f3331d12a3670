// What a profiler recorded, whatever its file format: operators on host threads, calls that start work, what ran on
// streams of devices, and ranges that people named. Events are small (24 to 40 bytes) and refer to texts, shapes and
// sizes that are kept once, so that a trace of gigabytes becomes a few hundred megabytes. Times are whole nanoseconds:
// sums are exact.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "roofline/analyze/spool.hpp"

namespace roofline::analyze {

/// Texts kept once each, known by number.
class Texts {
  public:
    std::uint32_t number_of(std::string_view raw);
    const std::string& operator[](std::uint32_t number) const { return *texts_[number]; }
    std::size_t size() const { return texts_.size(); }

  private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
    std::vector<const std::string*> texts_;
};

/// A tensor as an operator was given it. Without strides: taken as dense.
struct Tensor {
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;
};

/// One argument: a tensor, a list of tensors, or a plain value.
struct Argument {
    std::vector<Tensor> tensors;
    std::string type;   // "c10::BFloat16", "TensorList", "Scalar", ""
    std::string value;  // of plain values, where the profiler wrote it
    bool is_list = false;
};

/// An operator's name with the shapes it was called with: thousands of calls share one.
struct Signature {
    std::string name;
    std::vector<Argument> arguments;
    std::vector<Tensor> outputs;  // where the file tells
    std::string output_type;
    bool has_shapes = false;
    // Of collectives.
    std::string collective;
    std::string type;
    double elements_in = 0.0;
    double elements_out = 0.0;
    double ranks = 0.0;
    double flops = 0.0;  // as the profiler itself counted them; zero: it did not
};

inline constexpr std::uint32_t none = 0xFFFFFFFFU;

struct Operation {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t external = none;  // by Timeline::id_of
    std::uint32_t signature = 0;
    std::uint32_t thread = 0;
    std::uint32_t parent = none;
};

/// Which function was called, and by whom: thousands of calls share one.
struct Caller {
    std::uint32_t name = 0;
    std::uint32_t thread = 0;
};

/// A call of the host that starts work on a device.
struct HostCall {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t correlation = none;  // by Timeline::id_of
    std::uint32_t caller = 0;          // into Timeline::callers
};

enum class Ran : std::uint8_t { kernel, copy, fill };

/// Something that ran on a stream.
struct DeviceEvent {
    std::int64_t begin = 0;
    std::int64_t duration = 0;
    std::uint32_t correlation = none;  // by Timeline::id_of
    std::uint32_t name = 0;
    std::uint32_t operation = none;  // that started it; until `connect`, the external id that it carries
    std::uint32_t call = none;
    std::uint32_t size = 0;  // of copies and fills: into Timeline::sizes
    std::uint16_t stream = 0;
    Ran ran = Ran::kernel;
    bool in_graph = false;

    std::int64_t end() const { return begin + duration; }
};

/// A range that somebody named: record_function, NVTX.
struct Annotation {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t name = 0;
    std::uint32_t thread = 0;
};

struct Stream {
    std::int64_t device = 0;
    std::int64_t number = 0;
    bool operator==(const Stream&) const = default;
};

struct Timeline {
    Texts texts;
    std::vector<Signature> signatures;
    Spool<Operation> operations;
    Spool<HostCall> calls;
    std::vector<Caller> callers;
    Spool<DeviceEvent> ran;
    std::vector<Annotation> annotations;
    std::vector<Stream> streams;
    std::vector<double> sizes{0.0};               // in bytes
    std::map<std::int64_t, std::string> devices;  // names, by number
    std::int64_t rank = -1;                       // of a distributed run; -1: unknown
    std::int64_t ranks = 0;
    bool host_runs_operators = false;  // operators are what ran: a profile of a CPU
    bool any_shapes = false;
    double events = 0.0;
    std::vector<std::string> notes;

    std::uint16_t stream_of(std::int64_t device, std::int64_t number);
    std::uint32_t caller_of(std::uint32_t name, std::uint32_t thread);
    std::uint32_t size_of(double bytes);
    double bytes(const DeviceEvent& event) const { return sizes[event.size]; }
    /// The number a profiler gave in half the room: itself where it is small, as they nearly always are. `none` for
    /// what is negative.
    std::uint32_t id_of(std::int64_t written);

  private:
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> stream_numbers_;
    std::uint16_t last_stream_ = 0;
    std::unordered_map<std::uint64_t, std::uint32_t> caller_numbers_;
    std::unordered_map<double, std::uint32_t> size_numbers_;
    std::unordered_map<std::int64_t, std::uint32_t> large_ids_;
};

/// Finds the operator that started each kernel: by the number both carry, else by the call that started it and the
/// operator around that call. Sorts what it touches by time and finds the parents of operators.
void connect(Timeline& timeline);

}  // namespace roofline::analyze
