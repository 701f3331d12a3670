// What a kernel of some class will really take: a physical formula with a few constants, fitted to measurements. Adding
// a class is adding a file to this folder.
#pragma once

#include <span>
#include <string_view>

#include "roofline/core/pattern.hpp"

namespace roofline::predict {

/// What a formula may know of the device: datasheet figures, for the engine and number type that run the kernel.
struct Machine {
    double peak = 0.0;         // flop/s of that engine; 0: unknown, compute costs nothing
    double vector_peak = 0.0;  // flop/s of the plain fp32 units; 0: unknown
    double bandwidth = 0.0;    // byte/s of main memory
    double cache = 0.0;        // bytes of the last-level cache; 0: unknown
    double units = 0.0;        // multiprocessors; 0: unknown
    double tile = 0.0;         // side of a systolic array, which pads what it multiplies; 0: none
    double link = 0.0;         // byte/s per direction to the other devices of the node, of each device
    double network = 0.0;      // byte/s per direction to other nodes, of each device

    bool operator==(const Machine&) const = default;
};

/// One launch: its work and the sizes that decide how well it fills the machine. What a class does not use stays zero.
struct Kernel {
    Pattern pattern = Pattern::stream;
    double flops = 0.0;         // causal attention counts the pairs it needs, not the rectangle
    double weight_bytes = 0.0;  // weights and cached keys, values or states: they stream from memory
    double input_bytes = 0.0;   // activations read
    double output_bytes = 0.0;  // activations written
    double tokens = 0.0;        // new tokens of all sequences it works on, whatever its own rows are
    double held_bytes = 0.0;    // of the cache it writes into; moved only where a profile says so
    double pace = 1.0;          // streams: times as long a byte as in one that walks through memory in order

    // Products: y[rows x cols] = x[rows x inner] W, `copies` of them side by side (heads; experts that are touched,
    // `rows` then being the mean per expert).
    double rows = 0.0;
    double cols = 0.0;
    double inner = 0.0;
    double copies = 1.0;
    double experts_total = 0.0;   // routed experts: how many there are,
    double experts_chosen = 0.0;  // and how many a token goes through; 0: not routed

    // Attention and recurrences.
    double sequences = 0.0;
    double queries = 0.0;  // new tokens per sequence
    double keys = 0.0;     // attended entries per sequence (the window where it is shorter), new tokens included
    double context = 0.0;  // cached entries per sequence whether attended or not, new tokens included
    double window = 0.0;   // of a sliding window; 0: none
    double heads = 0.0;
    double kv_heads = 0.0;
    double key_dim = 0.0;
    double value_dim = 0.0;

    // Collectives: each rank's message (core/collective.hpp says what that is), and what must cross each link of it.
    double ranks = 0.0;
    double nodes = 1.0;
    double message_bytes = 0.0;
    double link_bytes = 0.0;
    double network_bytes = 0.0;

    // A whole step: what its kernels come to one by one.
    double launches = 0.0;
    double kernel_seconds = 0.0;

    double bytes() const { return weight_bytes + input_bytes + output_bytes; }
    bool operator==(const Kernel&) const = default;
};

/// A number of a formula: fitted in log space between `low` and `high`, starting at `start`. Its meaning stands in the
/// table for who reads it; the program never asks and does not carry it.
struct Constant {
    std::string_view name;
    std::string_view unit;  // "us", "fraction", "bytes" ...
    double start = 1.0;
    double low = 0.0;
    double high = 0.0;

    consteval Constant(std::string_view called, std::string_view in, double from, double least, double most,
                       std::string_view meaning)
        : name(called), unit(in), start(from), low(least), high(most) {
        if (meaning.empty()) every_constant_has_a_meaning();
    }

    static void every_constant_has_a_meaning();  // defined nowhere: a table without one does not compile
};

struct KernelClass {
    std::string_view name;
    std::string_view formula;  // its number in docs/method.md
    std::span<const Constant> constants;
    double (*seconds)(const Kernel& kernel, const Machine& machine, std::span<const double> constants);
    std::string_view instead_of = {};  // the class whose work it does in a way of its own; empty: nobody else's
    bool written_anew = false;         // by everyone who builds an engine; products and attention come from libraries
};

inline constexpr std::size_t max_constants = 12;

/// By name; nullptr: there is no such class.
const KernelClass* kernel_class(std::string_view name);
std::span<const KernelClass* const> kernel_classes();

}  // namespace roofline::predict
