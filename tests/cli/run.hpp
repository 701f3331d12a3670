// Runs the program as a user does, without a shell between, and keeps what it said.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "places.hpp"

extern char** environ;

namespace roofline::cli::testing {

// A folder that is gone, with all that is in it, when the test ends.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "roofline-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary folder can be made";
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::string& path() const { return path_; }
    std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }

    // Writes a file, making the folders it lies in; returns its path.
    std::string write(std::string_view name, std::string_view content) const {
        const std::string file = path(name);
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        std::ofstream out(file, std::ios::binary);
        out.write(content.data(), static_cast<std::streamsize>(content.size()));
        if (!out.flush()) ADD_FAILURE() << file << " cannot be written";
        return file;
    }
    std::string make_folder(std::string_view name) const {
        std::filesystem::create_directories(path(name));
        return path(name);
    }
    bool is_empty() const { return std::filesystem::is_empty(path_); }

  private:
    std::string path_;
};

struct Answer {
    int exit_code = -1;  // 128 + the signal when it was killed by one
    std::string out;
    std::string err;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

inline std::string content_of(std::FILE* file) {
    std::string text;
    char buffer[65536];
    std::rewind(file);
    for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
    std::fclose(file);
    return text;
}

// `out_file`: where its stdout goes instead of into the answer. `interrupt_after`: microseconds until Ctrl-C; 0: none.
inline Answer run(const std::vector<std::string>& arguments, const Environment& changes = {},
                  const char* out_file = nullptr, useconds_t interrupt_after = 0) {
    std::vector<std::string> words = {ROOFLINE_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        bool changed = false;
        for (const auto& [name, value] : changes) changed |= text.starts_with(name + "=");
        if (!changed) variables.emplace_back(text);
    }
    for (const auto& [name, value] : changes) variables.push_back(name + "=" + value);
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> result;
        for (std::string& text : texts) result.push_back(text.data());
        result.push_back(nullptr);
        return result;
    };

    Answer answer;
    std::FILE* out = std::tmpfile();
    std::FILE* err = std::tmpfile();
    if (out == nullptr || err == nullptr) {
        ADD_FAILURE() << "no temporary file can be made";
        return answer;
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (out_file != nullptr) {
        ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_file, O_WRONLY, 0);
    } else {
        ::posix_spawn_file_actions_adddup2(&actions, ::fileno(out), STDOUT_FILENO);
    }
    ::posix_spawn_file_actions_adddup2(&actions, ::fileno(err), STDERR_FILENO);
    pid_t child = 0;
    const int error =
        ::posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error != 0) {
        ADD_FAILURE() << words[0] << " cannot be run";
        return answer;
    }
    if (interrupt_after > 0) {
        ::usleep(interrupt_after);
        ::kill(child, SIGINT);
    }
    if (::waitpid(child, &status, 0) == child) {
        answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    answer.out = content_of(out);
    answer.err = content_of(err);
    return answer;
}

// As one would type it, for messages.
inline std::string typed(const std::vector<std::string>& arguments) {
    std::string text = "roofline";
    for (const std::string& argument : arguments) text += " " + argument;
    return text;
}

}  // namespace roofline::cli::testing
