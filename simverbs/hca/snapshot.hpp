// Payload bytes that a frame owns: taken where the sender may change or free its memory while the
// packet is still about. Recycled, so that a steady state allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/frame.hpp"

#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

class SnapshotPool;

// The bytes of one packet.
class Snapshot final : public fabric::FrameCargo {
  public:
    static constexpr std::size_t kBytes = 4096;  // the largest path MTU

    explicit Snapshot(SnapshotPool& pool) : pool_(pool) {
        span_.address = reinterpret_cast<std::uint64_t>(bytes_.data());
    }
    [[nodiscard]] std::byte* bytes() { return bytes_.data(); }
    [[nodiscard]] const std::byte* bytes() const { return bytes_.data(); }
    // Returns the payload of a packet that carries these bytes.
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
    std::array<std::byte, kBytes> bytes_;
};

// Outlives every frame that carries one of its snapshots.
class SnapshotPool {
  public:
    SnapshotPool() = default;
    SnapshotPool(const SnapshotPool&) = delete;
    SnapshotPool& operator=(const SnapshotPool&) = delete;

    Snapshot& take() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<Snapshot>(*this));
            return *all_.back();
        }
        Snapshot& snapshot = *free_.back();
        free_.pop_back();
        return snapshot;
    }
    void give_back(Snapshot& snapshot) { free_.push_back(&snapshot); }

  private:
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
