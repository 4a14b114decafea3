#include "simverbs/hca/borrowed_bytes.hpp"

#include <algorithm>
#include <utility>

#include "simverbs/hca/placement.hpp"

namespace simverbs {

void BorrowedBytes::borrow(const Payload& from) {
    frames_ = 1;
    source_ = from.space;
    begins_at_ = from.spans->address + from.offset;
    span_ = {0, from.length, MemoryKind::kProcess};
}

// Bytes that cannot be read any more are refused when they are placed.
void BorrowedBytes::take(SnapshotPool& snapshots) {
    Snapshot& copy = snapshots.take();
    if (gather_payload(payload(), copy.bytes()) == CopyOutcome::kCopied) {
        copy_ = &copy;
    } else {
        copy.release();
    }
    source_ = nullptr;
}

void BorrowedBytes::release() {
    if (--frames_ > 0) {
        return;
    }
    if (copy_ != nullptr) {
        std::exchange(copy_, nullptr)->release();
    }
    all_.give_back(*this);
    source_ = nullptr;
}

bool BorrowedBytes::read(std::uint64_t address, std::byte* bytes, std::size_t length) {
    return source_ != nullptr && source_->read(begins_at_ + address, bytes, length);
}

bool BorrowedBytes::write(std::uint64_t /*address*/, const std::byte* /*bytes*/,
                          std::size_t /*length*/) {
    return false;
}

std::byte* BorrowedBytes::reach(std::uint64_t address, std::uint64_t length) {
    if (copy_ != nullptr) {
        return copy_->bytes() + address;
    }
    return source_ == nullptr ? nullptr : source_->reach(begins_at_ + address, length);
}

BorrowedBytes* Borrowings::borrow(const Payload& from, fabric::DeferredArrivals& later) {
    if (borrowed_.size() == kMost || from.space == nullptr || from.space->is_own() ||
        from.span_count != 1 || from.spans->kind != MemoryKind::kProcess ||
        from.space->reach(from.spans->address + from.offset, from.length) == nullptr) {
        return nullptr;
    }
    if (free_.empty()) {
        free_.push_back(made_.emplace_back(std::make_unique<BorrowedBytes>(*this)).get());
    }
    BorrowedBytes& bytes = *free_.back();
    free_.pop_back();
    bytes.borrow(from);
    borrowed_.push_back(&bytes);
    later.add(*this);
    return &bytes;
}

bool Borrowings::has_some_of(const AddressSpace& space) const {
    return std::ranges::any_of(
        borrowed_, [&space](const BorrowedBytes* bytes) { return bytes->is_of(space); });
}

void Borrowings::settle() {
    for (BorrowedBytes* const bytes : borrowed_) {
        bytes->take(snapshots_);
    }
    borrowed_.clear();
}

void Borrowings::give_back(BorrowedBytes& bytes) {
    std::erase(borrowed_, &bytes);
    free_.push_back(&bytes);
}

}  // namespace simverbs
