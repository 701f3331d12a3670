// oneDNN, where libdnnl is installed: products in fp32, bf16 and int8, with weights in whatever layout the library
// prefers. Its C interface changed between versions 2 and 3 (descriptions became handles); both are spoken here, from
// declarations of our own, so that nothing is needed to build.
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "roofline/bench/backend.hpp"
#include "roofline/bench/kernels/rowwise.hpp"
#include "roofline/bench/library.hpp"

namespace roofline::bench {
namespace {

// As the library numbers them, in both versions.
constexpr int cpu_engine = 1;
constexpr unsigned in_order = 1;
constexpr int any_layout = 1;
constexpr int weights_description = 131;
constexpr int argument_source = 1;
constexpr int argument_result = 17;
constexpr int argument_weights = 33;

int number_of(WeightFormat type) {
    return type == WeightFormat::bf16 ? 2 : type == WeightFormat::fp32 ? 3 : 5;
}

struct Argument {
    int what;
    void* memory;
};

struct Version {
    int major;
    int minor;
    int patch;
};

/// Pointers throughout: what they point at is the library's business.
struct Functions {
    const Version* (*version)();
    int (*engine_create)(void**, int, std::size_t);
    int (*stream_create)(void**, void*, unsigned);
    int (*stream_wait)(void*);
    int (*memory_create)(void**, const void*, void*, void*);
    int (*memory_destroy)(void*);
    int (*primitive_create)(void**, const void*);
    int (*primitive_destroy)(void*);
    int (*description_destroy)(void*);
    int (*execute)(const void*, void*, int, const Argument*);
    const void* (*query_memory)(const void*, int, int);
    int (*reorder)(void**, const void*, void*, const void*, void*, const void*);
    // Version 2: memory descriptions are structures that are filled in.
    int (*fill_by_strides)(void*, int, const std::int64_t*, int, const std::int64_t*);
    int (*fill_by_tag)(void*, int, const std::int64_t*, int, int);
    int (*matmul_init)(void*, const void*, const void*, const void*, const void*);
    int (*description_create)(void**, const void*, const void*, void*, const void*);
    // Version 3: they are handles.
    int (*make_by_strides)(void**, int, const std::int64_t*, int, const std::int64_t*);
    int (*make_by_tag)(void**, int, const std::int64_t*, int, int);
    int (*matmul_create)(void**, void*, const void*, const void*, const void*, const void*, const void*);
    void (*set_threads)(int);
};

/// How a matrix lies in memory: a structure of version 2 (696 bytes in 2.6) or a handle of version 3.
struct Layout {
    alignas(16) std::array<std::byte, 4096> room{};
    void* handle = nullptr;
    const void* pointer() const { return handle != nullptr ? handle : room.data(); }
};

Layout layout(const Functions& functions, std::int64_t rows, std::int64_t columns, WeightFormat type, bool transposed,
              bool any) {
    Layout made;
    const std::array<std::int64_t, 12> sizes = {rows, columns};
    const std::array<std::int64_t, 12> strides = {transposed ? 1 : columns, transposed ? rows : 1};
    if (functions.make_by_strides != nullptr) {
        any ? functions.make_by_tag(&made.handle, 2, sizes.data(), number_of(type), any_layout)
            : functions.make_by_strides(&made.handle, 2, sizes.data(), number_of(type), strides.data());
    } else {
        any ? functions.fill_by_tag(made.room.data(), 2, sizes.data(), number_of(type), any_layout)
            : functions.fill_by_strides(made.room.data(), 2, sizes.data(), number_of(type), strides.data());
    }
    return made;
}

class OneDnnKernel final : public Kernel {
  public:
    OneDnnKernel(const Functions& functions, void* engine, void* stream, Operands& operands, Threads& threads)
        : functions_(functions), engine_(engine), stream_(stream), operands_(operands), threads_(threads) {}

    ~OneDnnKernel() override {
        for (void* memory : weights_) functions_.memory_destroy(memory);
        for (void* memory : {source_, result_}) {
            if (memory != nullptr) functions_.memory_destroy(memory);
        }
        if (primitive_ != nullptr) functions_.primitive_destroy(primitive_);
        if (description_ != nullptr) functions_.description_destroy(description_);
    }

    Result<void> prepare() {
        const Task& task = operands_.task;
        const bool int8 = task.weights == WeightFormat::int8;
        narrow_.resize(static_cast<std::size_t>(task.m * task.k * bits(task.weights) / 8));
        scales_.resize(static_cast<std::size_t>(task.m));
        const Layout source = layout(functions_, task.m, task.k, task.weights, false, false);
        const Layout wanted = layout(functions_, task.k, task.n, task.weights, false, true);
        const Layout ours = layout(functions_, task.k, task.n, task.weights, true, false);
        const Layout result = layout(functions_, task.m, task.n, WeightFormat::fp32, false, false);
        int status = 0;
        if (functions_.matmul_create != nullptr) {
            status = functions_.matmul_create(&description_, engine_, source.pointer(), wanted.pointer(), nullptr,
                                              result.pointer(), nullptr);
        } else {
            alignas(16) std::array<std::byte, 16384> operation{};
            status =
                functions_.matmul_init(operation.data(), source.pointer(), wanted.pointer(), nullptr, result.pointer());
            if (status == 0)
                status = functions_.description_create(&description_, operation.data(), nullptr, engine_, nullptr);
        }
        if (status != 0) return fail(fmt::format("oneDNN has no {} product here", bench::name(task.weights)));
        if (functions_.primitive_create(&primitive_, description_) != 0) return fail("oneDNN cannot make the product");
        void* input = task.weights == WeightFormat::fp32 ? static_cast<void*>(operands_.x.data()) : narrow_.data();
        if (functions_.memory_create(&source_, source.pointer(), engine_, input) != 0 ||
            functions_.memory_create(&result_, result.pointer(), engine_, operands_.y.data()) != 0)
            return fail("oneDNN cannot describe the operands");
        const void* preferred = functions_.query_memory(description_, weights_description, 0);
        for (const WeightMatrix& matrix : operands_.weights) {
            if (auto done = convert(matrix, ours.pointer(), preferred); !done) return done;
        }
        scaled_ = int8;
        return {};
    }

    void run(std::size_t copy) override {
        const Task& task = operands_.task;
        const std::int64_t count = task.m * task.k;
        if (task.weights == WeightFormat::bf16)
            narrow_to_bf16(operands_.x.data(), reinterpret_cast<Bf16*>(narrow_.data()), count, threads_);
        if (scaled_) {
            narrow_to_int8(operands_.x.data(), reinterpret_cast<std::int8_t*>(narrow_.data()), scales_.data(), nullptr,
                           count, task.k, threads_);
        }
        const std::array<Argument, 3> arguments = {
            {{argument_source, source_}, {argument_weights, weights_[copy]}, {argument_result, result_}}};
        functions_.execute(primitive_, stream_, 3, arguments.data());
        functions_.stream_wait(stream_);
        if (!scaled_) return;
        const float* row_scales = operands_.weights[copy].view().row_scales;
        threads_.ranges(task.m, 1, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                float* row = operands_.y.data() + i * task.n;
                for (std::int64_t n = 0; n < task.n; ++n)
                    row[n] *= scales_[static_cast<std::size_t>(i)] * row_scales[n];
            }
        });
    }

  private:
    /// Once, before anything is timed: as an engine does when it loads a model.
    Result<void> convert(const WeightMatrix& matrix, const void* ours, const void* preferred) {
        void* from = nullptr;
        void* to = nullptr;
        void* description = nullptr;
        void* reorder = nullptr;
        bool fine = functions_.memory_create(&from, ours, engine_, const_cast<void*>(matrix.view().values)) == 0;
        // A handle of -1 asks the library for the memory.
        fine =
            fine && functions_.memory_create(&to, preferred, engine_, reinterpret_cast<void*>(std::intptr_t{-1})) == 0;
        if (to != nullptr) weights_.push_back(to);
        fine = fine && functions_.reorder(&description, ours, engine_, preferred, engine_, nullptr) == 0 &&
               functions_.primitive_create(&reorder, description) == 0;
        if (fine) {
            const std::array<Argument, 2> arguments = {{{argument_source, from}, {argument_result, to}}};
            fine =
                functions_.execute(reorder, stream_, 2, arguments.data()) == 0 && functions_.stream_wait(stream_) == 0;
        }
        if (reorder != nullptr) functions_.primitive_destroy(reorder);
        if (description != nullptr) functions_.description_destroy(description);
        if (from != nullptr) functions_.memory_destroy(from);
        if (!fine) return fail("oneDNN cannot convert the weights (too little memory?)");
        return {};
    }

    const Functions& functions_;
    void* engine_;
    void* stream_;
    Operands& operands_;
    Threads& threads_;
    void* description_ = nullptr;
    void* primitive_ = nullptr;
    void* source_ = nullptr;
    void* result_ = nullptr;
    std::vector<void*> weights_;
    std::vector<std::byte> narrow_;
    std::vector<float> scales_;
    bool scaled_ = false;
};

class OneDnn final : public Backend {
  public:
    std::string name() const override { return "onednn"; }
    std::string describe() const override {
        if (!found_) return "oneDNN";
        const Version* version = functions_.version();
        return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
    }

    Result<void> available() override {
        if (found_) return {};
        const auto library = Library::open({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"});
        if (!library) return std::unexpected(Problem{"libdnnl (oneDNN) is not installed", true});
        const Library& from = *library;
        Functions& f = functions_;
        const bool shared =
            from.find("dnnl_version", f.version) && from.find("dnnl_engine_create", f.engine_create) &&
            from.find("dnnl_stream_create", f.stream_create) && from.find("dnnl_stream_wait", f.stream_wait) &&
            from.find("dnnl_memory_create", f.memory_create) && from.find("dnnl_memory_destroy", f.memory_destroy) &&
            from.find("dnnl_primitive_create", f.primitive_create) &&
            from.find("dnnl_primitive_destroy", f.primitive_destroy) &&
            from.find("dnnl_primitive_desc_destroy", f.description_destroy) &&
            from.find("dnnl_primitive_execute", f.execute) &&
            from.find("dnnl_primitive_desc_query_md", f.query_memory) &&
            from.find("dnnl_reorder_primitive_desc_create", f.reorder);
        const bool third = from.find("dnnl_memory_desc_create_with_strides", f.make_by_strides) &&
                           from.find("dnnl_memory_desc_create_with_tag", f.make_by_tag) &&
                           from.find("dnnl_matmul_primitive_desc_create", f.matmul_create);
        const bool second = from.find("dnnl_memory_desc_init_by_strides", f.fill_by_strides) &&
                            from.find("dnnl_memory_desc_init_by_tag", f.fill_by_tag) &&
                            from.find("dnnl_matmul_desc_init", f.matmul_init) &&
                            from.find("dnnl_primitive_desc_create", f.description_create);
        if (!shared || (!second && !third))
            return std::unexpected(Problem{"libdnnl is neither of version 2 nor of version 3", true});
        from.find("omp_set_num_threads", f.set_threads);
        if (f.engine_create(&engine_, cpu_engine, 0) != 0 || f.stream_create(&stream_, engine_, in_order) != 0)
            return std::unexpected(Problem{"oneDNN finds no engine on this machine", true});
        found_ = true;
        return {};
    }

    std::optional<std::string> refuses(const Task& task) const override {
        if (task.kind != TaskKind::product) return "products only";
        if (task.weights != WeightFormat::fp32 && task.weights != WeightFormat::bf16 &&
            task.weights != WeightFormat::int8)
            return fmt::format("no product for {} weights", bench::name(task.weights));
        if (task.experts > 1) return "no products of several experts";
        return std::nullopt;
    }

    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads& threads) override {
        if (functions_.set_threads != nullptr) functions_.set_threads(threads.count());
        auto kernel = std::make_unique<OneDnnKernel>(functions_, engine_, stream_, operands, threads);
        if (auto done = kernel->prepare(); !done) return std::unexpected(done.error());
        return kernel;
    }

  private:
    Functions functions_{};
    void* engine_ = nullptr;
    void* stream_ = nullptr;
    bool found_ = false;
};

}  // namespace

std::unique_ptr<Backend> onednn_backend() {
    return std::make_unique<OneDnn>();
}

}  // namespace roofline::bench
