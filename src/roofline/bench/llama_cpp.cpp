#include "roofline/bench/llama_cpp.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "roofline/io/fields.hpp"

extern char** environ;

namespace roofline::bench {
namespace {

/// What node runs: prefill of a prompt, then single tokens after a short one, as llama-bench does it.
constexpr const char* node_program = R"js(
const [modules, gguf, prompt, generate, threads, repetitions] = process.argv.slice(2);
const { readFileSync } = await import("node:fs");
const { pathToFileURL } = await import("node:url");
const folder = `${modules}/node-llama-cpp`;
const version = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")).version;
const { getLlama } = await import(pathToFileURL(`${folder}/dist/index.js`).href);
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: +threads });
const model = await llama.loadModel({ modelPath: gguf });
const context = await model.createContext({
  contextSize: +prompt + +generate + 64, batchSize: Math.max(512, +prompt), threads: +threads });
const sequence = context.getSequence();
const tokens = (count) => Array.from({ length: count }, (_, i) => 300 + ((i * 7919) % 20000) % 500);
const timed = async (work) => {
  const samples = [];
  for (let i = 0; i <= +repetitions; ++i) {
    await sequence.clearHistory();
    const took = await work();
    if (i > 0) samples.push(took);  // the first one warms up
  }
  return samples;
};
const since = (begin) => Number(process.hrtime.bigint() - begin);
const prefill = await timed(async () => {
  const begin = process.hrtime.bigint();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens(+prompt));
  return since(begin);
});
const decode = await timed(async () => {
  let written = 0;
  let begin;
  for await (const token of sequence.evaluate(tokens(8), { temperature: 0 })) {
    if (written === 0) begin = process.hrtime.bigint();
    if (++written > +generate) break;
  }
  return since(begin);
});
const row = (n_prompt, n_gen, samples_ns) => ({ engine: `node-llama-cpp ${version}`, n_prompt, n_gen, samples_ns,
  avg_ns: samples_ns.reduce((a, b) => a + b, 0) / samples_ns.length, n_threads: +threads });
console.log(JSON.stringify([row(+prompt, 0, prefill), row(0, +generate, decode)]));
process.exit(0);
)js";

bool on_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    const std::string places = path != nullptr ? path : "";
    for (std::size_t begin = 0; begin <= places.size();) {
        const std::size_t end = std::min(places.find(':', begin), places.size());
        const std::string file = places.substr(begin, end - begin) + "/" + program;
        if (::access(file.c_str(), X_OK) == 0) return true;
        begin = end + 1;
    }
    return false;
}

struct Output {
    int code = -1;
    std::string text;
    std::string complaint;  // the line of what it printed to stderr that says most
};

/// Of several lines the first that names an error, else the last.
std::string telling_line(const std::string& text) {
    std::string last;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        if (line.find("rror") != std::string::npos) return line;
        if (!line.empty()) last = line;
        begin = end + 1;
    }
    return last;
}

/// A program text for node in a file of its own, gone when this ends: what is handed over by -e reaches the processes
/// that node-llama-cpp starts to try its libraries, and stops them.
class ScriptFile {
  public:
    ScriptFile() : path_((std::filesystem::temp_directory_path() / "roofline-XXXXXX.mjs").string()) {
        const int file = ::mkstemps(path_.data(), 4);
        if (file < 0) return;
        const std::string_view text = node_program;
        written_ = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        ::close(file);
    }
    ScriptFile(const ScriptFile&) = delete;
    ScriptFile& operator=(const ScriptFile&) = delete;
    ~ScriptFile() { ::unlink(path_.c_str()); }
    bool written() const { return written_; }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    bool written_ = false;
};

/// Runs a program without a shell and keeps what it printed.
Result<Output> run_program(const std::vector<std::string>& words) {
    std::FILE* out = std::tmpfile();
    std::FILE* err = std::tmpfile();
    if (out == nullptr || err == nullptr) return fail("no temporary file can be made");
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ::fileno(out), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ::fileno(err), STDERR_FILENO);
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    Output output;
    int status = 0;
    if (failed == 0 && ::waitpid(child, &status, 0) == child)
        output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const auto content = [](std::FILE* file) {
        std::string text;
        char buffer[65536];
        std::rewind(file);
        for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
        std::fclose(file);
        return text;
    };
    output.text = content(out);
    output.complaint = telling_line(content(err));
    if (failed != 0) return std::unexpected(Problem{fmt::format("{} cannot be started", words[0]), true});
    return output;
}

}  // namespace

Result<LlamaAnswer> read_llama_bench(std::string_view text, std::string_view file) {
    const auto json = io::parse_json(text, file);
    if (!json) return std::unexpected(json.error());
    if (!json->is_array() || json->empty())
        return fail(fmt::format("{}: found {}, expected an array of llama-bench results", file, io::describe(*json)));
    LlamaAnswer answer;
    std::optional<Problem> problem;
    for (const io::Json& row : *json) {
        if (!row.is_object()) return fail(fmt::format("{}: found {}, expected a result", file, io::describe(row)));
        io::Fields fields(row, std::string(file), "", problem);
        const double prompt = fields.number_or("n_prompt", 0.0);
        const double generated = fields.number_or("n_gen", 0.0);
        if ((prompt > 0.0) == (generated > 0.0)) continue;  // both at once: no stage of ours
        LlamaResult result;
        result.prefill = prompt > 0.0;
        result.tokens = prompt + generated;
        std::vector<double> samples;
        if (fields.has("samples_ns")) samples = fields.numbers("samples_ns");
        if (samples.empty()) samples = {fields.positive("avg_ns")};
        std::sort(samples.begin(), samples.end());
        result.seconds = samples[samples.size() / 2] * 1e-9;
        result.low = samples.front() * 1e-9;
        result.high = samples.back() * 1e-9;
        result.repetitions = static_cast<double>(samples.size());
        if (!(result.low > 0.0)) fields.complain("samples_ns", "found a time that is not positive");
        answer.results.push_back(result);
        answer.engine = fields.text_or("engine", "llama-bench " + fields.text_or("build_commit", ""));
    }
    if (problem) return std::unexpected(*problem);
    if (answer.results.empty()) return fail(fmt::format("{}: holds no prefill and no decode result", file));
    return answer;
}

Result<LlamaAnswer> run_llama_cpp(const LlamaQuestion& question) {
    std::vector<std::string> words;
    std::optional<ScriptFile> script;
    const std::string module = question.node_modules + "/node-llama-cpp/package.json";
    if (on_path("llama-bench")) {
        words = {"llama-bench",
                 "-m",
                 question.gguf,
                 "-p",
                 std::to_string(question.prompt),
                 "-n",
                 std::to_string(question.generate),
                 "-t",
                 std::to_string(question.threads),
                 "-r",
                 std::to_string(question.repetitions),
                 "-o",
                 "json"};
    } else if (!question.node_modules.empty()) {
        if (!std::filesystem::exists(module)) return fail(fmt::format("--node-modules: {} is not there", module));
        if (!on_path("node")) return std::unexpected(Problem{"node is not on PATH", true});
        script.emplace();
        if (!script->written()) return fail(fmt::format("{}: cannot be written", script->path()));
        words = {"node",
                 script->path(),
                 std::filesystem::absolute(question.node_modules).string(),
                 std::filesystem::absolute(question.gguf).string(),
                 std::to_string(question.prompt),
                 std::to_string(question.generate),
                 std::to_string(question.threads),
                 std::to_string(question.repetitions)};
    } else {
        return std::unexpected(Problem{
            "llama-bench is not on PATH (or: `npm install node-llama-cpp` and --node-modules FOLDER/node_modules)",
            true});
    }
    const auto output = run_program(words);
    if (!output) return std::unexpected(output.error());
    if (output->code != 0) {
        return fail(fmt::format("{} ended with {}: {}", words[0], output->code,
                                output->complaint.empty() ? "no reason given" : output->complaint));
    }
    // Engines like to print a line or two before the answer.
    const std::size_t begin = output->text.find("[{");
    const std::size_t wide = output->text.find("[\n");
    const std::size_t first = std::min(begin, wide);
    return read_llama_bench(first == std::string::npos ? output->text : output->text.substr(first), words[0]);
}

}  // namespace roofline::bench
