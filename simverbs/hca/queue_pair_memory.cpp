// Keys and bytes, as the engines of a queue pair see them.
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/placement.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

AddressSpace& QueuePair::memory(SrqNumber named) const {
    const SharedReceiveQueue* const queue = receives_.named_queue(named);
    return queue != nullptr ? queue->context().client().memory() : context_->client().memory();
}

const ProtectionDomain& QueuePair::protection_domain(SrqNumber named) const {
    const SharedReceiveQueue* const queue = receives_.named_queue(named);
    return queue != nullptr ? queue->pd() : *pd_;
}

// With a shared queue by the domain that it was made in (IBA 10.2.9).
Grant QueuePair::open_receive(SrqNumber srq, const Segment& segment) {
    const SharedReceiveQueue* const queue = receives_.queue_for(srq);
    const bool by_queue = queue != nullptr && hca_.personality().shared_receives_by_their_own_pd;
    return hca_.keys().open_local(by_queue ? queue->pd() : protection_domain(srq), segment,
                                  Access::kLocalWrite);
}

Grant QueuePair::open_local(const Segment& segment, AccessRights needed) {
    return hca_.keys().open_local(*pd_, segment, needed);
}

Grant QueuePair::open_remote(SrqNumber srq, std::uint32_t rkey, std::uint64_t address,
                             std::uint64_t length, AccessRights needed) {
    return hca_.keys().open_remote(protection_domain(srq), attributes_.qpn, rkey, address, length,
                                   needed);
}

KeyVerdict QueuePair::check_remote(SrqNumber srq, std::uint32_t rkey, AccessRights needed) {
    return hca_.keys().check_remote(protection_domain(srq), attributes_.qpn, rkey, needed);
}

bool QueuePair::bind_window(const WindowBinding& binding) {
    return hca_.keys().bind(*pd_, attributes_.qpn, binding, hca_.personality());
}

InvalidateVerdict QueuePair::invalidate(SrqNumber srq, std::uint32_t rkey) {
    return hca_.keys().invalidate(protection_domain(srq), attributes_.qpn, rkey);
}

std::uint64_t QueuePair::key_generation() const {
    return hca_.keys().generation();
}

CopyOutcome QueuePair::place(SrqNumber srq, const Payload& from, std::span<const MemorySpan> spans,
                             std::uint64_t offset) {
    if (const auto delay = hca_.landing_delay(); delay > fabric::SimDuration::zero()) [[unlikely]] {
        return hca_.late_landings().add(from, memory(srq), spans, offset, delay);
    }
    return place_payload(from, memory(srq), spans, offset);
}

bool QueuePair::load(SrqNumber srq, const MemorySpan& from, std::uint64_t& value) {
    return space_of(from, memory(srq))
        .read(from.address, reinterpret_cast<std::byte*>(&value), sizeof value);
}

bool QueuePair::store(SrqNumber srq, const MemorySpan& to, std::uint64_t value) {
    return space_of(to, memory(srq))
        .write(to.address, reinterpret_cast<const std::byte*>(&value), sizeof value);
}

CopyOutcome QueuePair::read_head(const Payload& from, std::span<std::byte> into) {
    Payload head = from;
    head.length = static_cast<std::uint32_t>(into.size());
    return gather_payload(head, into.data());
}

}  // namespace simverbs
