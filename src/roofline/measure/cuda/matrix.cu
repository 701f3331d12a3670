// The matrix units, through cuBLASLt: for every type the fastest of several shapes and algorithms, in short bursts on
// a rested chip and for seconds on end, when power and heat set the clock. Flops: 2 m n k of each product.
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "roofline/measure/cuda/cublaslt.cuh"
#include "roofline/measure/cuda/nvml.cuh"
#include "roofline/measure/cuda/sustained.cuh"

namespace roofline::probe {
namespace {

constexpr ProductType types[] = {
    {"fp64", Numbers::fp64, Numbers::fp64, 1e-12, "added up in fp64"},
    {"tf32", Numbers::fp32, Numbers::fp32, 2e-3, "fp32 operands rounded to tf32, added up in fp32"},
    {"fp16", Numbers::fp16, Numbers::fp16, 2e-3, "added up in fp32"},
    {"bf16", Numbers::bf16, Numbers::bf16, 1e-2, "added up in fp32"},
    {"fp8", Numbers::fp8, Numbers::bf16, 1e-2, "e4m3, fast accumulation, bf16 out"},
    {"int8", Numbers::int8, Numbers::int32, 0.0, "int32 out"},
    {"fp4", Numbers::fp4, Numbers::bf16, 1e-2, "e2m1 with a scale for each 16 numbers, bf16 out"},
};

constexpr ProductShape shapes[] = {{8192, 8192, 8192}, {4096, 8192, 10240}, {4096, 4096, 14336}, {8192, 8192, 4096},
                                   {4096, 4096, 4096}, {16384, 8192, 8192}, {16384, 16384, 8192}};

void rest(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

std::string text_of(const ProductShape& shape) {
    return std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k);
}

/// Entries all over D against sums in fp64 of the very operands: norm(out - right) / norm(right).
double error_of(const ProductType& type, const ProductShape& shape, const Buffer& a, const Buffer& b, const Buffer& d) {
    constexpr int samples = 64;
    const std::size_t inner = storage_of(type.in, static_cast<std::size_t>(shape.k));
    const std::size_t each = storage_of(type.out, 1);
    std::vector<unsigned char> row(inner);
    std::vector<unsigned char> column(inner);
    std::vector<unsigned char> entry(each);
    const auto fetch = [](std::vector<unsigned char>& to, const void* from, std::size_t offset) {
        check(
            cudaMemcpy(to.data(), static_cast<const unsigned char*>(from) + offset, to.size(), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    };
    double difference = 0.0;
    double norm = 0.0;
    for (int sample = 0; sample < samples; ++sample) {
        // Both corners, then places that share no row or column with one another.
        const std::size_t i = sample == 0 ? 0 : (static_cast<std::size_t>(sample) * 2654435761U) % shape.m;
        const std::size_t j = sample == 1 ? shape.n - 1 : (static_cast<std::size_t>(sample) * 40503U * 977U) % shape.n;
        fetch(row, a.data(), i * inner);
        fetch(column, b.data(), j * inner);
        fetch(entry, d.data(), (j * shape.m + i) * each);
        double right = 0.0;
        for (std::size_t at = 0; at < static_cast<std::size_t>(shape.k); ++at)
            right += number_at(row.data(), at, type.in) * number_at(column.data(), at, type.in);
        const double found = number_at(entry.data(), 0, type.out);
        difference += (found - right) * (found - right);
        norm += right * right;
    }
    return std::sqrt(difference / norm);
}

struct Choice {
    ProductShape shape;
    int algorithm = -1;
    double rate = 0.0;
    double error = 0.0;
};

struct Bench {
    const Chip& chip;
    const ProductType& type;
    Stream& stream;
    Buffer& a;
    Buffer& b;
    Buffer& d;
    Buffer& workspace;

    Product product(const ProductShape& shape) const {
        return Product(type, shape, a.data(), b.data(), d.data(), workspace, chip.quick ? 3 : 6);
    }

    /// A few products after a rest, as one: seconds of one of them.
    double burst(const Product& product, int algorithm, int count, int rested, State* state) const {
        rest(rested);
        const Event begin;
        const Event end;
        product.launch(algorithm, stream);
        begin.record(stream);
        for (int i = 0; i < count; ++i) product.launch(algorithm, stream);
        end.record(stream);
        if (state != nullptr) *state = state_of(chip.index);
        stream.wait();
        return end.seconds_since(begin) / count;
    }

    Choice choose(std::string& why, Json& rates) const {
        Choice best;
        int tried = 0;
        for (const ProductShape& shape : shapes) {
            if (chip.quick && tried == 2) break;
            if (storage_of(type.in, std::size_t{1} * shape.m * shape.k) > a.bytes() ||
                storage_of(type.in, std::size_t{1} * shape.n * shape.k) > b.bytes() ||
                storage_of(type.out, std::size_t{1} * shape.m * shape.n) > d.bytes())
                continue;
            ++tried;
            try {
                const Product candidate = product(shape);
                for (int algorithm = 0; algorithm < candidate.algorithms(); ++algorithm) {
                    try {
                        const double rate =
                            shape.flops() / burst(candidate, algorithm, 3, chip.quick ? 5 : 10, nullptr);
                        const std::string key = text_of(shape);
                        rates[key] = std::max(rates.value(key, 0.0), rate);
                        if (rate > best.rate) best = {shape, algorithm, rate, 0.0};
                    } catch (const Refused& refusal) {
                        why = refusal.what();
                    }
                }
            } catch (const Refused& refusal) {
                why = refusal.what();
            }
        }
        return best;
    }

    void run(Found& found) const {
        const std::string name = std::string("matrix.") + type.name;
        std::string why = "cuBLASLt offers no algorithm for it on this chip";
        Json rates = Json::object();
        Choice choice = choose(why, rates);
        if (choice.algorithm < 0) {
            found.refuse(name, why);
            return;
        }
        const Product chosen = product(choice.shape);
        check(cudaMemset(d.data(), 0xff, d.bytes()), "cudaMemset");
        chosen.launch(choice.algorithm, stream);
        stream.wait();
        choice.error = error_of(type, choice.shape, a, b, d);
        if (!(choice.error <= type.tolerance)) {  // not a number is wrong too
            found.refuse(name, "the product is wrong by " + std::to_string(choice.error));
            return;
        }
        State state;
        std::vector<double> times;
        const int count = std::max(3, static_cast<int>(0.01 * choice.rate / choice.shape.flops()));
        for (int i = 0; i < (chip.quick ? 5 : 11); ++i) {
            times.push_back(burst(chosen, choice.algorithm, count, chip.quick ? 20 : 40, &state));
        }
        Json figure =
            rate_figure(name, type.in == Numbers::int8 ? "OP/s" : "FLOP/s", choice.shape.flops(), spread_of(times),
                        "cuBLASLt, " + text_of(choice.shape) + ", " + type.how + ", bursts of " +
                            std::to_string(count) + " on normally distributed data");
        figure["flops"] = choice.shape.flops();
        figure["bytes"] = bytes_of(type.in) * choice.shape.k * (choice.shape.m + choice.shape.n) +
                          bytes_of(type.out) * choice.shape.m * choice.shape.n;
        figure["error"] = choice.error;
        figure["tolerance"] = type.tolerance;
        figure["variants"] = rates;
        if (state.clock_hz) figure["clock_hz"] = *state.clock_hz;
        found.figures.push_back(std::move(figure));
        if (!chip.quick) {
            Json long_run = sustained_figure(
                chip, stream, name + ".sustained", type.in == Numbers::int8 ? "OP/s" : "FLOP/s", choice.shape.flops(),
                choice.shape.flops() / choice.rate, 2.2, "products", [&] { chosen.launch(choice.algorithm, stream); });
            long_run["flops"] = choice.shape.flops();
            found.figures.push_back(std::move(long_run));
        }
    }
};

void probe_matrix(const Chip& chip, Found& found) {
    std::string why;
    if (!cublaslt_is_there(why)) {
        found.refuse("matrix", why);
        return;
    }
    // The largest shape that fits, in the widest type it is run in.
    std::size_t largest = std::size_t{16384} * 16384 * 4;
    while (3 * largest > chip.free_bytes / 2 && largest > (std::size_t{64} << 20)) largest /= 2;
    Stream stream;
    Buffer a(largest);
    Buffer b(largest);
    Buffer d(largest);
    Buffer workspace(std::size_t{64} << 20);
    for (const ProductType& type : types) {
        const bool has = type.in == Numbers::fp4   ? chip.capability >= 100
                         : type.in == Numbers::fp8 ? chip.capability >= 89
                                                   : chip.capability >= 80;
        if (!has || !chip.wants(std::string("matrix.") + type.name))
            continue;  // nothing to measure is nothing to report
        chip.say(std::string("matrix units: ") + type.name);
        try {
            const auto count = static_cast<std::size_t>(static_cast<double>(largest) / bytes_of(type.in));
            fill_normal<<<chip.multiprocessors * 8, 256, 0, stream>>>(a.data(), count, type.in, 1);
            fill_normal<<<chip.multiprocessors * 8, 256, 0, stream>>>(b.data(), count, type.in, 2);
            check_launch("filling");
            stream.wait();
            Bench{chip, type, stream, a, b, d, workspace}.run(found);
        } catch (const Refused& refusal) {
            found.refuse(std::string("matrix.") + type.name, refusal.what());
        }
    }
}

const Registered registered({80, "matrix", probe_matrix});

}  // namespace
}  // namespace roofline::probe
