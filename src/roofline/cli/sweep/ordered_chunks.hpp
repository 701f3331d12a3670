// Pieces of text that several threads make and one takes in order: what comes out does not depend on how many threads
// there are.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace roofline::cli {

/// Makes one chunk; a thread has one of its own and may keep state in it.
using ChunkMaker = std::function<std::string(std::size_t chunk)>;

class OrderedChunks {
  public:
    /// Chunks first, first + stride, ... below `count`.
    OrderedChunks(std::size_t first, std::size_t stride, std::size_t count, std::size_t threads,
                  std::function<ChunkMaker()> new_maker);
    ~OrderedChunks();
    OrderedChunks(const OrderedChunks&) = delete;
    OrderedChunks& operator=(const OrderedChunks&) = delete;

    /// The next chunk in order; nothing after the last, or after the last that was begun before `stop`. Gives up
    /// waiting after a fifth of a second with an empty answer and `waiting` set, so that the caller can look around.
    std::optional<std::string> next(bool& waiting);
    /// Begin no further chunk.
    void stop();

  private:
    void work(const std::function<ChunkMaker()>& new_maker);

    std::size_t stride_;
    std::size_t count_;
    std::size_t to_begin_;
    std::size_t to_take_;
    std::size_t ahead_;  // chunks that may lie ready: a slow reader must not fill the memory
    bool stopped_ = false;
    std::exception_ptr fault_;
    std::map<std::size_t, std::string> ready_;
    std::mutex mutex_;
    std::condition_variable made_;
    std::condition_variable taken_;
    std::vector<std::jthread> threads_;
};

/// Cores that this process may use.
std::size_t usable_cores();

}  // namespace roofline::cli
