// Commands of a context that concern registered memory.
#include <algorithm>
#include <cerrno>
#include <limits>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"

namespace simverbs {

namespace {

constexpr std::uint64_t kAllOfMemory = std::numeric_limits<std::uint64_t>::max();
// Access rights of a region in device memory (as mlx5 has it).
constexpr AccessRights kDeviceMemoryAccess =
    AccessRights(Access::kLocalWrite) | kRemoteRights | Access::kZeroBased;
// Rings are that well aligned.
constexpr std::uint32_t kMostLogAlignment = 6;

// The rights that a device knows; bits that it may ignore are among them.
AccessRights known_access(const DeviceLimits& limits) {
    AccessRights known = kKnownAccess | kOptionalAccess;
    if (!limits.odp.explicit_regions) {
        known = known.without(Access::kOnDemand);
    }
    if (!limits.caps.contains(DeviceCap::kFlushGlobal)) {
        known = known.without(Access::kFlushGlobal);
    }
    if (!limits.caps.contains(DeviceCap::kFlushPersistent)) {
        known = known.without(Access::kFlushPersistent);
    }
    return known;
}

// Why a region cannot have these rights; "" where it can.
std::string access_reason(AccessRights access, const DeviceLimits& limits) {
    const AccessRights unknown = access.without(known_access(limits));
    if (!unknown.empty()) {
        return fmt::format("access {:#x} has bits that the device does not take: {:#x}",
                           access.bits, unknown.bits);
    }
    if (access.intersects(kRightsThatNeedLocalWrite) && !access.contains(Access::kLocalWrite)) {
        return fmt::format(
            "access {:#x} has REMOTE_WRITE or REMOTE_ATOMIC and lacks IBV_ACCESS_LOCAL_WRITE",
            access.bits);
    }
    return "";
}

// All of the process's memory, whatever is mapped when (ibv_reg_mr(3)).
bool is_implicit(AccessRights access, std::uint64_t address, std::uint64_t length) {
    return access.contains(Access::kOnDemand) && address == 0 && length == kAllOfMemory;
}

// Why a region cannot have this range; "" where it can.
std::string range_reason(const Personality& personality, AccessRights access, std::uint64_t address,
                         std::uint64_t length, std::uint64_t iova) {
    if (is_implicit(access, address, length)) {
        return personality.limits.odp.implicit_regions && iova == 0
                   ? ""
                   : "the device has no implicit on-demand regions, or iova is not 0";
    }
    if (length == 0 && !personality.zero_length_mr) {
        return "length is 0: the device takes 1 byte or more";
    }
    if (length > personality.limits.max_mr_bytes) {
        return fmt::format("length {} is more than max_mr_size {}", length,
                           personality.limits.max_mr_bytes);
    }
    if (length > kAllOfMemory - iova || length > kAllOfMemory - address) {
        return fmt::format("length {} goes beyond the end of memory", length);
    }
    return "";
}

std::uint64_t effective_iova(const Personality& personality, AccessRights access,
                             std::uint64_t iova) {
    return access.contains(Access::kZeroBased) && personality.zero_based_regions ? 0 : iova;
}

}  // namespace

int DeviceContext::execute(const RegisterMr& command, RegisterMrReply& reply) {
    const Personality& personality = hca_.personality();
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    const auto access = AccessRights::from_bits(command.access);
    const std::uint64_t iova = effective_iova(personality, access, command.iova);
    if (const std::string why = access_reason(access, personality.limits); !why.empty()) {
        return refuse(EINVAL, "{}", why);
    }
    if (const std::string why =
            range_reason(personality, access, command.address, command.length, iova);
        !why.empty()) {
        return refuse(EINVAL, "{}", why);
    }
    auto region = std::make_unique<MemoryRegion>();
    region->pd = pd;
    region->address = command.address;
    region->length = command.length;
    region->iova = iova;
    region->access = access;
    return add_region(std::move(region), reply);
}

int DeviceContext::add_region(std::unique_ptr<MemoryRegion> region, RegisterMrReply& reply) {
    const Personality& personality = hca_.personality();
    if (exceeds(regions_.size() + 1, personality.limits.max_mr)) {
        return refuse(ENOMEM, "the context has max_mr {} MRs", personality.limits.max_mr);
    }
    region->space = &client_.memory();
    if (!hca_.keys().insert(handle_, *region, personality.key_style)) {
        return refuse(ENOMEM, "the context has no key left");
    }
    ++region->pd->uses;
    reply = {region->handle, region->lkey, region->rkey};
    hca_.trace(MemoryRegionDescribed{hca_.node(), region->handle, region->length, region->access});
    regions_.emplace(reply.handle, std::move(region));
    return 0;
}

// Packets that refer to the region keep what they carried.
void DeviceContext::keep_payloads_of(const MemoryRegion& region) {
    hca_.keep_payloads([this, &region](const fabric::Frame& frame) {
        const Payload& payload = frame.transport_as<Packet>().payload;
        return payload.space == region.space && frame.source == hca_.node() &&
               std::any_of(payload.spans, payload.spans + payload.span_count,
                           [&region](const MemorySpan& span) {
                               return span.kind == region.kind &&
                                      span.address < region.address + region.length &&
                                      region.address < span.address + span.length;
                           });
    });
}

// The next access by the region's keys fails.
int DeviceContext::execute(const DeregisterMr& command, EmptyReply& /*reply*/) {
    const MemoryRegion* region = find(regions_, command.handle);
    if (region == nullptr) {
        return refuse_handle(ENOENT, "MR", command.handle);
    }
    if (region->windows > 0) {
        return refuse_use(*region);
    }
    keep_payloads_of(*region);
    hca_.late_landings().finish();
    hca_.keys().erase(*region);
    --region->pd->uses;
    if (region->device_memory != nullptr) {
        --region->device_memory->regions;
    }
    regions_.erase(command.handle);
    return 0;
}

// An errno; `after` is a copy of the region, with what the command changes.
int DeviceContext::check_reregister(const ReregisterMr& command, MemoryRegion& after) const {
    const Personality& personality = hca_.personality();
    const AccessRights before = after.access;
    if ((command.flags & kReregisterPd) != 0) {
        after.pd = find(pds_, command.pd);
    }
    if ((command.flags & kReregisterAccess) != 0) {
        after.access = AccessRights::from_bits(command.access);
    }
    // A region that is on demand, or based on zero, is so from its registration on.
    const AccessRights lasting = Access::kOnDemand | Access::kZeroBased;
    if (command.flags == 0 || (command.flags & ~kReregisterAll) != 0) {
        return refuse(EINVAL, "flags {:#x} is none of 1 to {:#x}", command.flags, kReregisterAll);
    }
    if (after.pd == nullptr) {
        return refuse_handle(EINVAL, "PD", command.pd);
    }
    if (after.kind != MemoryKind::kProcess) {
        return refuse(EINVAL, "the region is not in memory of the process");
    }
    if (const std::string why = access_reason(after.access, personality.limits); !why.empty()) {
        return refuse(EINVAL, "{}", why);
    }
    if ((after.access & lasting) != (before & lasting)) {
        return refuse(EINVAL, "ON_DEMAND and ZERO_BASED stay as they were at the registration");
    }
    if ((command.flags & kReregisterTranslation) != 0) {
        after.address = command.address;
        after.length = command.length;
        after.iova = effective_iova(personality, after.access, command.iova);
        const std::string why =
            range_reason(personality, after.access, after.address, after.length, after.iova);
        return why.empty() ? 0 : refuse(EINVAL, "{}", why);
    }
    return 0;
}

int DeviceContext::execute(const ReregisterMr& command, RegisterMrReply& reply) {
    const Personality& personality = hca_.personality();
    if (!personality.rereg_mr) {
        return refuse(EOPNOTSUPP, "the device changes no regions");
    }
    MemoryRegion* region = find(regions_, command.handle);
    if (region == nullptr) {
        return refuse_handle(ENOENT, "MR", command.handle);
    }
    MemoryRegion after = *region;
    if (const int error = check_reregister(command, after); error != 0) {
        return error;
    }
    if (region->windows > 0) {
        return refuse_use(*region);
    }
    keep_payloads_of(*region);
    --region->pd->uses;
    ++after.pd->uses;
    *region = after;
    if (personality.rereg_keeps_keys) {
        hca_.keys().changed();
    } else {
        hca_.keys().renew(*region, personality.key_style);
    }
    hca_.trace(MemoryRegionDescribed{hca_.node(), region->handle, region->length, region->access});
    reply = {region->handle, region->lkey, region->rkey};
    return 0;
}

int DeviceContext::execute(const AllocateNullMr& command, RegisterMrReply& reply) {
    if (!hca_.personality().null_mr) {
        return refuse(EOPNOTSUPP, "the device has no null regions");
    }
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    auto region = std::make_unique<MemoryRegion>();
    region->pd = pd;
    region->kind = MemoryKind::kNull;
    region->length = kAllOfMemory;
    region->access = Access::kLocalWrite;
    MemoryRegion& made = *region;
    const int error = add_region(std::move(region), reply);
    if (error == 0) {
        reply.rkey = made.rkey = 0;
    }
    return error;
}

// Pages are always resident here. Errors in the order in which mlx5 finds them.
int DeviceContext::execute(const AdviseMr& command, AdviseMrReply& reply) {
    const ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    const MemoryRegion* region = hca_.keys().find_region(command.lkey);
    if (region == nullptr || !region->access.contains(Access::kOnDemand)) {
        return refuse(ENOENT, "lkey {:#x} is of no on-demand region", command.lkey);
    }
    if (region->pd != pd) {
        return refuse(EPERM, "the region of lkey {:#x} is of another PD", command.lkey);
    }
    if (command.for_writing != 0 && !region->access.contains(Access::kLocalWrite)) {
        return refuse(EPERM, "the region of lkey {:#x} lacks IBV_ACCESS_LOCAL_WRITE", command.lkey);
    }
    const std::uint64_t offset = command.address - region->iova;
    const bool inside = command.address >= region->iova && offset <= region->length &&
                        command.length <= region->length - offset;
    reply.address = region->address + offset;
    return inside ? 0
                  : refuse(EFAULT, "{} bytes from {:#x} on are not within the region of lkey {:#x}",
                           command.length, command.address, command.lkey);
}

int DeviceContext::execute(const AllocateDm& command, AllocateDmReply& reply) {
    const std::uint64_t most = hca_.personality().limits.max_device_memory_bytes;
    if (command.length == 0) {
        return refuse(EINVAL, "length 0: at least 1 byte is wanted");
    }
    if (command.log_alignment > kMostLogAlignment) {
        return refuse(EINVAL, "log_align_req {} is more than {}", command.log_alignment,
                      kMostLogAlignment);
    }
    if (command.length > most - device_memory_bytes_) {
        return refuse(ENOMEM, "length {} is more than what is left of max_dm_size {}: {}",
                      command.length, most, most - device_memory_bytes_);
    }
    const RingMemory ring = client_.make_ring(command.length, command.length);
    if (ring.base == nullptr) {
        return refuse_ring();
    }
    auto memory = std::make_unique<DeviceMemory>(client_, ring);
    reply.handle = ++last_device_memory_;
    reply.memory = client_.ring_reply(ring);
    device_memory_bytes_ += ring.bytes;
    device_memories_.emplace(reply.handle, std::move(memory));
    return 0;
}

int DeviceContext::execute(const FreeDm& command, EmptyReply& /*reply*/) {
    const DeviceMemory* memory = find(device_memories_, command.handle);
    if (memory == nullptr) {
        return refuse_handle(ENOENT, "device memory", command.handle);
    }
    if (memory->regions > 0) {
        return refuse_use(command.handle, *memory);
    }
    device_memory_bytes_ -= memory->ring.bytes;
    device_memories_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const RegisterDmMr& command, RegisterMrReply& reply) {
    ProtectionDomain* pd = find(pds_, command.pd);
    DeviceMemory* memory = find(device_memories_, command.dm);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    if (memory == nullptr) {
        return refuse_handle(ENOENT, "device memory", command.dm);
    }
    const auto access = AccessRights::from_bits(command.access);
    const bool inside = command.offset <= memory->ring.bytes &&
                        command.length <= memory->ring.bytes - command.offset;
    const bool empty = command.length == 0 && !hca_.personality().zero_length_mr;
    if (empty || !inside) {
        return refuse(EINVAL, "{} bytes at offset {} are not within the {} bytes of device memory",
                      command.length, command.offset, memory->ring.bytes);
    }
    if (!access.contains(Access::kZeroBased)) {
        return refuse(EINVAL, "access {:#x} lacks IBV_ACCESS_ZERO_BASED", access.bits);
    }
    if (const auto taken = kDeviceMemoryAccess | kOptionalAccess; !taken.contains(access)) {
        return refuse(EINVAL,
                      "access {:#x} has bits that a region in device memory does not take: "
                      "{:#x} are possible",
                      access.bits, taken.bits);
    }
    if (const std::string why = access_reason(access, hca_.personality().limits); !why.empty()) {
        return refuse(EINVAL, "{}", why);
    }
    auto region = std::make_unique<MemoryRegion>();
    region->pd = pd;
    region->kind = MemoryKind::kDevice;
    region->device_memory = memory;
    region->address = reinterpret_cast<std::uint64_t>(memory->ring.base) + command.offset;
    region->length = command.length;
    region->access = access;
    const int error = add_region(std::move(region), reply);
    if (error == 0) {
        ++memory->regions;
    }
    return error;
}

int DeviceContext::execute(const AllocateMw& command, AllocateMwReply& reply) {
    ProtectionDomain* pd = find(pds_, command.pd);
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    const auto type = static_cast<WindowType>(command.type);
    if (type != WindowType::kType1 && type != WindowType::kType2) {
        return refuse(EINVAL, "type {} is neither IBV_MW_TYPE_1 (1) nor IBV_MW_TYPE_2 (2)",
                      command.type);
    }
    if (exceeds(windows_.size() + 1, hca_.personality().limits.max_mw)) {
        return refuse(ENOMEM, "the context has max_mw {} MWs", hca_.personality().limits.max_mw);
    }
    auto window = std::make_unique<MemoryWindow>();
    window->pd = pd;
    window->type = type;
    if (!hca_.keys().insert(handle_, *window)) {
        return refuse(ENOMEM, "the context has no key left");
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
        return refuse_handle(ENOENT, "MW", command.handle);
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
