// Compressed streams: whatever comes, it ends, and stays within the limit.
#include "fuzz/one_format.hpp"
#include "roofline/analyze/decompress.hpp"

namespace {

class Bytes final : public roofline::analyze::ByteSource {
  public:
    explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
    roofline::Result<std::size_t> read(std::span<char> room) override {
        const std::size_t count = std::min(room.size(), bytes_.size());
        bytes_.copy(room.data(), count);
        bytes_.remove_prefix(count);
        return count;
    }

  private:
    std::string_view bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace roofline::analyze;
    constexpr GrowthLimit limit = {.free_bytes = 1U << 16U, .largest_growth = 100};
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto plain = decompressed(std::make_unique<Bytes>(text), "fuzzed", limit);
    if (!plain) return 0;
    Input input("fuzzed", std::move(*plain));
    const auto unpacked = input.rest(std::size_t{64} << 20U);
    // A window may be filled before the limit is looked at.
    fail_unless(!unpacked || unpacked->size() <= (limit.largest_growth + 1) * size + limit.free_bytes + (2U << 20U));
    (void)input.cut_short();
    return 0;
}
