// Several processes that share a sweep under mpirun. The program itself knows nothing of MPI: what does lies in a
// shared object beside it, roofline_mpi.so, and is loaded only when the environment says that mpirun started us.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "roofline/core/problem.hpp"

namespace roofline::cli {

/// What the shared object offers, under the one name `roofline_mpi`: a function that returns this.
struct MpiCalls {
    int version;  // mpi_calls_version
    int (*start)();
    int (*rank)();
    int (*size)();
    void (*from_first)(void* data, std::size_t size);  // rank 0's data reach all
    void (*send)(const char* data, std::size_t size);  // to rank 0
    std::size_t (*incoming)(int rank);                 // waits for a message of that rank; its size
    void (*receive)(int rank, char* data, std::size_t size);
    void (*finish)();
    void (*abandon)(int exit_code);  // ends all ranks
};
inline constexpr int mpi_calls_version = 1;

/// Are we one of several processes that mpirun started? Its rank, as the environment has it; 0 when alone.
bool started_by_mpirun();
int rank_of_environment();
/// Processes of this run on this machine.
std::size_t ranks_on_this_machine();

class Ranks {
  public:
    /// Alone, unless mpirun started several of us.
    static Result<Ranks> join();

    std::size_t rank() const { return rank_; }
    std::size_t size() const { return size_; }

    template <class T>
    void from_first(T& value) const {
        if (calls_ != nullptr) calls_->from_first(&value, sizeof value);
    }
    void send(std::string_view text) const;
    std::string receive(std::size_t rank) const;
    void finish() const;
    /// Ends the other ranks with this one. Returns where there are none.
    void abandon(int exit_code) const;

  private:
    const MpiCalls* calls_ = nullptr;
    std::size_t rank_ = 0;
    std::size_t size_ = 1;
};

}  // namespace roofline::cli
