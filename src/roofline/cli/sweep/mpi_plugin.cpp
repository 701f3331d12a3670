// roofline_mpi.so: the few calls of MPI that a sweep under mpirun needs. Built only where MPI is, loaded only when
// mpirun started us. All calls come from one thread.
#include <mpi.h>

#include "roofline/cli/sweep/ranks.hpp"

namespace {

constexpr int tag = 1;

int start() {
    int provided = 0;
    return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS ? 0 : 1;
}

int rank() {
    int value = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &value);
    return value;
}

int size() {
    int value = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &value);
    return value;
}

void from_first(void* data, std::size_t bytes) {
    MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
}

void send(const char* data, std::size_t bytes) {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, 0, tag, MPI_COMM_WORLD);
}

std::size_t incoming(int from) {
    MPI_Status status;
    MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return static_cast<std::size_t>(bytes);
}

void receive(int from, char* data, std::size_t bytes) {
    MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void finish() {
    MPI_Finalize();
}

void abandon(int exit_code) {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

constexpr roofline::cli::MpiCalls calls = {
    roofline::cli::mpi_calls_version, start, rank, size, from_first, send, incoming, receive, finish, abandon};

}  // namespace

extern "C" const roofline::cli::MpiCalls* roofline_mpi() {
    return &calls;
}
