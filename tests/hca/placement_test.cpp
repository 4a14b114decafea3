#include "simverbs/hca/placement.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

namespace simverbs::test {
namespace {

// Memory of another process: how often and how much of it is asked for.
class CountingMemory final : public AddressSpace {
  public:
    bool read(std::uint64_t /*address*/, std::byte* /*bytes*/, std::size_t length) override {
        reads.push_back(length);
        return true;
    }
    bool write(std::uint64_t /*address*/, const std::byte* /*bytes*/, std::size_t length) override {
        writes.push_back(length);
        return true;
    }
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t /*address*/, std::uint64_t /*length*/) override {
        return nullptr;
    }

    std::vector<std::size_t> reads;
    std::vector<std::size_t> writes;
};

TEST(Placement, CrossesBetweenProcessesInLargePieces) {
    CountingMemory from;
    CountingMemory to;
    const MemorySpan source{0x1000, 256 * 1024};
    const MemorySpan target{0x9000, 256 * 1024};
    const Payload payload{&from, &source, 4096, 15 * 4096, 1};
    EXPECT_EQ(place_payload(payload, to, std::span(&target, 1), 4096), CopyOutcome::kCopied);
    EXPECT_THAT(from.reads, testing::ElementsAre(15 * 4096));
    EXPECT_THAT(to.writes, testing::ElementsAre(15 * 4096));
}

}  // namespace
}  // namespace simverbs::test
