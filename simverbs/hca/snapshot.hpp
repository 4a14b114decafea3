// Payload bytes that a frame owns: taken where the sender may change or free its memory while the
// packet is still about. Recycled, so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/frame.hpp"

#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/transport/wire_effects.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

class SnapshotPool;

// The bytes of one packet, or of a train.
class Snapshot final : public fabric::FrameCargo {
  public:
    static constexpr std::size_t kBytes = 4096;  // of a packet: the largest path MTU
    static constexpr std::size_t kTrainBytes = kLongestSnapshotTrain * kBytes;

    Snapshot(SnapshotPool& pool, std::size_t bytes)
        : pool_(pool), bytes_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {
        span_.address = reinterpret_cast<std::uint64_t>(bytes_.get());
    }
    [[nodiscard]] std::byte* bytes() { return bytes_.get(); }
    [[nodiscard]] const std::byte* bytes() const { return bytes_.get(); }
    // Returns the payload of a packet or train that carries these bytes.
    [[nodiscard]] Payload payload(AddressSpace& own, std::uint32_t length) {
        span_.length = length;
        return {&own, &span_, 0, length, 1};
    }
    void retain() override { ++frames_; }
    void release() override;

  private:
    SnapshotPool& pool_;
    std::uint32_t frames_ = 1;  // that carry it
    MemorySpan span_;
    std::unique_ptr<std::byte[]> bytes_;
};

// Outlives every frame that carries one of its snapshots, which are all as long.
class SnapshotPool {
  public:
    explicit SnapshotPool(std::size_t bytes) : bytes_(bytes) {}
    SnapshotPool(const SnapshotPool&) = delete;
    SnapshotPool& operator=(const SnapshotPool&) = delete;

    Snapshot& take() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Snapshot>(*this, bytes_));
            return *all_.back();
        }
        Snapshot& snapshot = *free_.back();
        free_.pop_back();
        return snapshot;
    }
    void give_back(Snapshot& snapshot) { free_.push_back(&snapshot); }

  private:
    std::size_t bytes_;
    std::vector<std::unique_ptr<Snapshot>> all_;
    std::vector<Snapshot*> free_;
};

inline void Snapshot::release() {
    if (--frames_ == 0) {
        frames_ = 1;
        pool_.give_back(*this);
    }
}

}  // namespace simverbs
