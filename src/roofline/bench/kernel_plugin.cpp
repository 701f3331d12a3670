#include "roofline/bench/kernel_plugin.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <roofline_kernel.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/bench/library.hpp"

namespace roofline::bench {
namespace {

/// A shape as the header has it. The names it points to are constants, except the task's own.
roofline_shape shape_of(const Task& task, int threads) {
    return {.kind = task.kind == TaskKind::product ? "gemm" : name(task.kind).data(),
            .name = task.name.c_str(),
            .m = task.m,
            .n = task.n,
            .k = task.k,
            .weight_dtype = name(task.weights).data(),
            .batch = task.batch,
            .tokens = task.tokens,
            .context = task.context,
            .query_heads = task.query_heads,
            .kv_heads = task.kv_heads,
            .head_dim = task.head_dim,
            .kv_dtype = roofline::name(task.kv).data(),
            .threads = threads};
}

std::atomic<const char*> being_run = nullptr;  // the plugin's name

void tell_of_crash(int signal) {
    std::signal(signal, SIG_DFL);  // what is not the plugin's own happens again, as ever
    const char* name = being_run;
    if (name == nullptr) return;
    for (const std::string_view part : {std::string_view("roofline: plugin "), std::string_view(name),
                                        std::string_view(" crashed; nothing was written\n")}) {
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part.data(), part.size());
    }
    ::_exit(2);
}

/// While one lives, a crash is the plugin's: a line says so instead of nothing at all.
class Running {
  public:
    explicit Running(const char* name) { being_run = name; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { being_run = nullptr; }
};

class PluginKernel final : public Kernel {
  public:
    PluginKernel(const roofline_kernel& kernel, Operands& operands, int threads)
        : kernel_(kernel), shape_(shape_of(operands.task, threads)) {
        const Running running(kernel.name);
        for (std::size_t copy = 0; copy < operands.copies(); ++copy) {
            roofline_operands& given = given_.emplace_back();
            given.x = operands.x.data();
            given.y = operands.y.data();
            if (!operands.weights.empty()) {
                const Weights view = operands.weights[copy].view();
                given.weights = view.values;
                given.scales = view.row_scales;
                if (view.group_scales != nullptr) given.scales = view.group_scales;
                if (view.block_scales != nullptr) given.scales = view.block_scales;
                if (view.group_powers != nullptr) given.scales = view.group_powers;
                given.zeros = view.group_zeros;
            }
            if (!operands.keys.empty()) {
                given.keys = operands.keys[copy].data();
                given.values = operands.values[copy].data();
            }
            prepared_.push_back(kernel.prepare != nullptr ? kernel.prepare(&shape_, &given) : nullptr);
        }
    }
    ~PluginKernel() override {
        if (kernel_.release == nullptr) return;
        const Running running(kernel_.name);
        for (void* prepared : prepared_) kernel_.release(prepared);
    }

    void run(std::size_t copy) override {
        const Running running(kernel_.name);
        const int status = kernel_.run(&shape_, &given_[copy], prepared_[copy]);
        if (failed_with_ == 0) failed_with_ = status;
    }
    std::optional<std::string> failure() const override {
        if (failed_with_ == 0) return std::nullopt;
        return fmt::format("failed: run() returned {}", failed_with_);
    }

  private:
    const roofline_kernel& kernel_;
    roofline_shape shape_;
    std::vector<roofline_operands> given_;
    std::vector<void*> prepared_;
    int failed_with_ = 0;
};

class Plugin final : public Backend {
  public:
    explicit Plugin(const roofline_kernel& kernel) : kernel_(kernel) {}
    std::string name() const override { return kernel_.name; }
    std::string describe() const override {
        return kernel_.description != nullptr ? kernel_.description : kernel_.name;
    }
    Result<void> available() override { return {}; }
    std::optional<std::string> refuses(const Task& task) const override {
        if (task.kind != TaskKind::product && task.kind != TaskKind::attention) return "products and attention only";
        if (task.experts > 1) return "no products of several experts";
        if (task.window > 0 || task.sinks) return "plugins know neither sliding windows nor sinks";
        if (!has_even_heads(task)) return "plugins know heads of one width only";
        if (task.kind == TaskKind::product) {
            // A scale for all, and blocks of GGUF, have no place in what plugins are given.
            if (task.weights == WeightFormat::nvfp4 || is_of_gguf(task.weights) ||
                portable_products().of(task.weights) == nullptr)
                return fmt::format("plugins on processors are given no {} weights", bench::name(task.weights));
            const std::int64_t group = group_of(task.weights);
            if (group > 0 && task.k % group != 0) return fmt::format("k = {} is no multiple of {}", task.k, group);
        }
        const roofline_shape shape = shape_of(task, 1);
        const Running running(kernel_.name);
        if (kernel_.can_run(&shape) == 0) return "the plugin does not run this shape";
        return std::nullopt;
    }
    Result<std::unique_ptr<Kernel>> prepare(Operands& operands, Threads& threads) override {
        return std::make_unique<PluginKernel>(kernel_, operands, threads.count());
    }

  private:
    const roofline_kernel& kernel_;
};

}  // namespace

Result<std::unique_ptr<Backend>> load_kernel_plugin(const std::string& path) {
    // Without a slash the loader would look among the system's libraries.
    const auto library = Library::open(path.find('/') == std::string::npos ? "./" + path : path);
    if (!library) return std::unexpected(library.error());
    using Entry = const roofline_kernel*();
    Entry* entry = nullptr;
    if (!library->find("roofline_kernel_entry", entry))
        return fail(fmt::format(
            "{}: has no function roofline_kernel_entry (include/roofline_kernel.h says what it returns)", path));
    const roofline_kernel* kernel = entry();
    if (kernel == nullptr) return fail(fmt::format("{}: roofline_kernel_entry() returned nothing", path));
    if (kernel->version != ROOFLINE_KERNEL_VERSION)
        return fail(fmt::format("{}: version is {}, expected {}", path, kernel->version, ROOFLINE_KERNEL_VERSION));
    if (kernel->name == nullptr || kernel->can_run == nullptr || kernel->run == nullptr)
        return fail(fmt::format("{}: name, can_run or run is missing", path));
    const std::string_view named = kernel->name;
    const bool plain = !named.empty() && std::all_of(named.begin(), named.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    });
    if (!plain) return fail(fmt::format("{}: its name must be letters, digits, '-' and '_'", path));
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(crash, tell_of_crash);
    return std::make_unique<Plugin>(*kernel);
}

}  // namespace roofline::bench
