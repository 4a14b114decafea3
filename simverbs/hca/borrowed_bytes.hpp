// The bytes of READ responses on their way, left where they are: in the memory of the process that
// is read, which is copied once, when they are placed. A copy is taken before anything else that
// this process could notice, or do to them.
//
// Refuses what would have to be read by a system call, or in this process: whoever sends copies
// that at once (snapshot.hpp), and first takes what is borrowed of that memory: no READ sees an
// older state of it than the READ before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/deferred_arrivals.hpp"
#include "fabric/net/frame.hpp"

#include "simverbs/hca/snapshot.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

class Borrowings;

// The bytes of one packet, or train. Addresses count from its first byte.
class BorrowedBytes final : public fabric::FrameCargo, public AddressSpace {
  public:
    explicit BorrowedBytes(Borrowings& all) : all_(all) {}

    void borrow(const Payload& from);
    [[nodiscard]] Payload payload() { return {this, &span_, 0, span_.length, 1}; }
    [[nodiscard]] bool is_of(const AddressSpace& space) const { return source_ == &space; }
    // Takes a copy.
    void take(SnapshotPool& snapshots);

    void retain() override { ++frames_; }
    void release() override;

    bool read(std::uint64_t address, std::byte* bytes, std::size_t length) override;
    bool write(std::uint64_t address, const std::byte* bytes, std::size_t length) override;
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t address, std::uint64_t length) override;

  private:
    Borrowings& all_;
    std::uint32_t frames_ = 0;  // that carry it
    MemorySpan span_;
    AddressSpace* source_ = nullptr;  // nullptr: a copy has been taken
    std::uint64_t begins_at_ = 0;     // in the source
    Snapshot* copy_ = nullptr;
};

// Outlives every frame that carries some.
class Borrowings final : public fabric::LeftForLater {
  public:
    explicit Borrowings(SnapshotPool& snapshots) : snapshots_(snapshots) {}
    Borrowings(const Borrowings&) = delete;
    Borrowings& operator=(const Borrowings&) = delete;

    // For one frame, in `later`. nullptr: they are to be copied at once.
    BorrowedBytes* borrow(const Payload& from, fabric::DeferredArrivals& later);
    [[nodiscard]] bool has_some_of(const AddressSpace& space) const;
    // Takes copies of all.
    void settle() override;

    void give_back(BorrowedBytes& bytes);

  private:
    // On a path so long that more are on their way, the others are copied at once.
    static constexpr std::size_t kMost = 32;

    SnapshotPool& snapshots_;
    std::vector<std::unique_ptr<BorrowedBytes>> made_;
    std::vector<BorrowedBytes*> free_;
    std::vector<BorrowedBytes*> borrowed_;  // kMost or fewer, of which no copy has been taken
};

}  // namespace simverbs
