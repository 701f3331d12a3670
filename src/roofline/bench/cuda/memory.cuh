// Errors, device memory and random data for the kernels. Errors inside this folder are thrown as `Failure` and become
// the "problem" of an answer at the two entrances (bench.cu, step.cu).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "roofline/bench/cuda/formats.hpp"

namespace roofline::cuda::kernels {

struct Failure {
    std::string text;
};

inline void must(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // a failure that is not sticky is over once it has been told
    throw Failure{std::string(doing) + ": " + cudaGetErrorString(status)};
}

inline std::size_t product_of(std::initializer_list<int> factors) {
    std::size_t product = 1;
    for (const int factor : factors) product *= static_cast<std::size_t>(factor);
    return product;
}

/// Up to where the next copy of something may begin.
inline std::size_t rounded(std::size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/// Device memory that is given back at the end of its scope.
class Memory {
  public:
    Memory() = default;
    explicit Memory(std::size_t bytes) : bytes_(bytes) {
        if (bytes > 0) must(cudaMalloc(&data_, bytes), "device memory");
    }
    Memory(Memory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Memory() {
        if (data_ != nullptr) cudaFree(data_);  // which even of nothing would end the capture of a graph
    }

    template <class T = std::uint8_t>
    T* at(std::size_t byte = 0) const {
        return reinterpret_cast<T*>(static_cast<std::uint8_t*>(data_) + byte);
    }
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// `count` values from device memory.
template <class T>
std::vector<T> copied(const T* from, std::size_t count) {
    std::vector<T> values(count);
    must(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
    return values;
}

/// Fills with random values: bf16 and fp8 uniform in +-amplitude (fp8 never NaN), others uniform over their bits.
void fill_random(void* to, std::size_t values, Format format, float amplitude, std::uint32_t seed, cudaStream_t stream);
void fill_random(float* to, std::size_t values, float low, float high, std::uint32_t seed, cudaStream_t stream);
/// Bytes from `low` to `high`.
void fill_range(void* to, std::size_t bytes, int low, int high, std::uint32_t seed, cudaStream_t stream);

}  // namespace roofline::cuda::kernels
