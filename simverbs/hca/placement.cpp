#include "simverbs/hca/placement.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "simverbs/hca/guarded_copy.hpp"

namespace simverbs {
namespace {

constexpr std::size_t kBounceBytes = std::size_t{128} * 1024;

class NullMemory final : public AddressSpace {
  public:
    bool read(std::uint64_t /*address*/, std::byte* bytes, std::size_t length) override {
        std::memset(bytes, 0, length);
        return true;
    }
    bool write(std::uint64_t /*address*/, const std::byte* /*bytes*/,
               std::size_t /*length*/) override {
        return true;
    }
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t /*address*/, std::uint64_t /*length*/) override {
        return nullptr;
    }
};

// Steps through a list of spans from an offset.
class SpanCursor {
  public:
    SpanCursor(const MemorySpan* spans, std::uint32_t count, std::uint64_t offset)
        : at_(spans), end_(spans + count), into_(offset) {
        skip_finished();
    }
    [[nodiscard]] bool done() const { return at_ == end_; }
    [[nodiscard]] const MemorySpan& span() const { return *at_; }
    [[nodiscard]] std::uint64_t address() const { return at_->address + into_; }
    [[nodiscard]] std::uint64_t left() const { return at_->length - into_; }
    void advance(std::uint64_t bytes) {
        into_ += bytes;
        skip_finished();
    }

  private:
    void skip_finished() {
        while (at_ != end_ && into_ >= at_->length) {
            into_ -= at_->length;
            ++at_;
        }
    }
    const MemorySpan* at_;
    const MemorySpan* end_;
    std::uint64_t into_;
};

CopyOutcome copy_across(AddressSpace& from, std::uint64_t source, AddressSpace& to,
                        std::uint64_t target, std::uint64_t length) {
    const std::byte* const here = from.reach(source, length);
    std::byte* const there = to.reach(target, length);
    if (here != nullptr && there != nullptr) {
        return GuardedCopy::copy(there, here, length);
    }
    if (here != nullptr) {
        return to.write(target, here, length) ? CopyOutcome::kCopied
                                              : CopyOutcome::kDestinationFault;
    }
    if (there != nullptr) {
        return from.read(source, there, length) ? CopyOutcome::kCopied : CopyOutcome::kSourceFault;
    }
    static std::array<std::byte, kBounceBytes> bounce;  // under the world lock
    while (length > 0) {
        const std::size_t part = std::min<std::uint64_t>(length, bounce.size());
        if (!from.read(source, bounce.data(), part)) {
            return CopyOutcome::kSourceFault;
        }
        if (!to.write(target, bounce.data(), part)) {
            return CopyOutcome::kDestinationFault;
        }
        source += part;
        target += part;
        length -= part;
    }
    return CopyOutcome::kCopied;
}

}  // namespace

AddressSpace& space_of(const MemorySpan& span, AddressSpace& process) {
    static OwnMemory device;
    static NullMemory null;
    switch (span.kind) {
        case MemoryKind::kDevice:
            return device;
        case MemoryKind::kNull:
            return null;
        case MemoryKind::kProcess:
            break;
    }
    return process;
}

CopyOutcome place_payload(const Payload& from, AddressSpace& space, std::span<const MemorySpan> to,
                          std::uint64_t offset) {
    if (from.length == 0) {
        return CopyOutcome::kCopied;  // of nothing, from anywhere
    }
    if (from.space == nullptr) {
        return CopyOutcome::kSourceFault;
    }
    SpanCursor source(from.spans, from.span_count, from.offset);
    SpanCursor target(to.data(), static_cast<std::uint32_t>(to.size()), offset);
    std::uint64_t left = from.length;
    while (left > 0) {
        if (source.done()) {
            return CopyOutcome::kSourceFault;
        }
        if (target.done()) {
            return CopyOutcome::kDestinationFault;
        }
        const std::uint64_t part = std::min({left, source.left(), target.left()});
        const CopyOutcome outcome =
            copy_across(space_of(source.span(), *from.space), source.address(),
                        space_of(target.span(), space), target.address(), part);
        if (outcome != CopyOutcome::kCopied) {
            return outcome;
        }
        source.advance(part);
        target.advance(part);
        left -= part;
    }
    return CopyOutcome::kCopied;
}

CopyOutcome gather_payload(const Payload& from, std::byte* bytes) {
    OwnMemory own;
    const MemorySpan whole{reinterpret_cast<std::uint64_t>(bytes), from.length};
    return place_payload(from, own, std::span(&whole, 1), 0);
}

}  // namespace simverbs
