// Commands of a context that concern registered memory.
#include <algorithm>
#include <cerrno>
#include <limits>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {

int DeviceContext::execute(const RegisterMr& command, RegisterMrReply& reply) {
    const Personality& personality = hca_.personality();
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return ENOENT;
    }
    const auto access = AccessRights::from_bits(command.access);
    const bool wraps = command.length > std::numeric_limits<std::uint64_t>::max() - command.iova;
    const bool needs_local_write =
        access.intersects(kRightsThatNeedLocalWrite) && !access.contains(Access::kLocalWrite);
    const bool unknown_right = !(kKnownAccess | kOptionalAccess).contains(access);
    if ((command.length == 0 && !personality.zero_length_mr) || wraps || needs_local_write ||
        unknown_right || command.length > personality.limits.max_mr_bytes) {
        return EINVAL;
    }
    if (exceeds(regions_.size() + 1, personality.limits.max_mr)) {
        return ENOMEM;
    }
    auto region = std::make_unique<MemoryRegion>();
    region->pd = pd;
    region->space = &client_.memory();
    region->address = command.address;
    region->length = command.length;
    region->iova = command.iova;
    region->access = access;
    if (!hca_.keys().insert(block_, *region, personality.key_style)) {
        return ENOMEM;
    }
    ++pd->uses;
    reply = {region->handle, region->lkey, region->rkey};
    regions_.emplace(reply.handle, std::move(region));
    return 0;
}

// Packets that refer to the region keep what they carried; the next access by its keys fails.
int DeviceContext::execute(const DeregisterMr& command, EmptyReply& /*reply*/) {
    const MemoryRegion* region = find(regions_, command.handle);
    if (region == nullptr) {
        return ENOENT;
    }
    if (region->windows > 0) {
        return hca_.personality().dereg_of_bound_mr_errno;
    }
    hca_.keep_payloads([this, region](const fabric::Frame& frame) {
        const Payload& payload = frame.transport_as<Packet>().payload;
        return payload.space == region->space && frame.source == hca_.node() &&
               std::any_of(payload.spans, payload.spans + payload.span_count,
                           [region](const MemorySpan& span) {
                               return span.address < region->address + region->length &&
                                      region->address < span.address + span.length;
                           });
    });
    hca_.keys().erase(*region);
    --region->pd->uses;
    regions_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const AllocateMw& command, AllocateMwReply& reply) {
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return ENOENT;
    }
    const auto type = static_cast<WindowType>(command.type);
    if (type != WindowType::kType1 && type != WindowType::kType2) {
        return EINVAL;
    }
    if (exceeds(windows_.size() + 1, hca_.personality().limits.max_mw)) {
        return ENOMEM;
    }
    auto window = std::make_unique<MemoryWindow>();
    window->pd = pd;
    window->type = type;
    if (!hca_.keys().insert(block_, *window)) {
        return ENOMEM;
    }
    ++pd->uses;
    reply = {window->handle, window->key};
    windows_.emplace(reply.handle, std::move(window));
    return 0;
}

// Bound or not (ibv_alloc_mw(3)).
int DeviceContext::execute(const DeallocateMw& command, EmptyReply& /*reply*/) {
    MemoryWindow* window = find(windows_, command.handle);
    if (window == nullptr) {
        return ENOENT;
    }
    hca_.keys().erase(*window);
    --window->pd->uses;
    windows_.erase(command.handle);
    return 0;
}

// A type 2B window does not outlive the binding's queue pair; it may be bound to another one.
void DeviceContext::unbind_windows_of(std::uint32_t qpn) {
    for (const auto& [handle, window] : windows_) {
        if (window->qpn == qpn) {
            KeyTable::unbind(*window);
        }
    }
}

}  // namespace simverbs
