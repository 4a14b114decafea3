#include "simverbs/driver/lent_memory.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "simverbs/model/access.hpp"

namespace simverbs::driver {
namespace {

template <class T>
T read_as(std::span<const std::byte> bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
}

bool lets_write(std::uint32_t access) {
    return (access & (static_cast<std::uint32_t>(Access::kLocalWrite) |
                      static_cast<std::uint32_t>(Access::kRemoteWrite) |
                      static_cast<std::uint32_t>(Access::kRemoteAtomic))) != 0;
}

}  // namespace

bool CountedRanges::cover(std::uint64_t begin, std::uint64_t end) const {
    auto at = counts_.upper_bound(begin);
    if (at == counts_.begin()) {
        return begin >= end;
    }
    for (at = std::prev(at); at != counts_.end() && at->first < end; ++at) {
        if (at->second == 0) {
            return false;
        }
    }
    return true;  // the last boundary has no range behind it: its count is 0
}

void CountedRanges::change(std::uint64_t begin, std::uint64_t end, bool adds) {
    if (begin >= end) {
        return;
    }
    for (const std::uint64_t boundary : {begin, end}) {
        const auto after = counts_.upper_bound(boundary);
        const std::uint32_t count = after == counts_.begin() ? 0 : std::prev(after)->second;
        counts_.try_emplace(boundary, count);
    }
    for (auto at = counts_.find(begin); at->first != end; ++at) {
        at->second = adds ? at->second + 1 : at->second - 1;
    }
    join_at(end);
    join_at(begin);
}

// A boundary between equal counts is none.
void CountedRanges::join_at(std::uint64_t boundary) {
    const auto at = counts_.find(boundary);
    const std::uint32_t before = at == counts_.begin() ? 0 : std::prev(at)->second;
    if (at->second == before) {
        counts_.erase(at);
    }
}

LentMemory::Range LentMemory::range_of(std::uint64_t address, std::uint64_t length,
                                       std::uint32_t access) {
    const std::uint64_t rest = std::numeric_limits<std::uint64_t>::max() - address;
    return {address, address + std::min(length, rest), lets_write(access)};
}

void LentMemory::lend(const Range& range) {
    readable_.add(range.begin, range.end);
    if (range.is_writable) {
        writable_.add(range.begin, range.end);
    }
}

void LentMemory::take_back(const Range& range) {
    readable_.remove(range.begin, range.end);
    if (range.is_writable) {
        writable_.remove(range.begin, range.end);
    }
}

void LentMemory::forget(const RegionName& name) {
    if (const auto found = regions_.find(name); found != regions_.end()) {
        take_back(found->second);
        regions_.erase(found);
    }
}

void LentMemory::forget_all_of(std::uint32_t context) {
    while (true) {
        const auto found = regions_.lower_bound({context, 0});
        if (found == regions_.end() || found->first.first != context) {
            return;
        }
        take_back(found->second);
        regions_.erase(found);
    }
}

LentMemory::Range LentMemory::range_after(const ReregisterMr& command) const {
    const auto found = regions_.find({command.context, command.handle});
    Range range = found == regions_.end() ? Range{} : found->second;
    const bool writable =
        (command.flags & kReregisterAccess) != 0 ? lets_write(command.access) : range.is_writable;
    if ((command.flags & kReregisterTranslation) != 0) {
        range = range_of(command.address, command.length, command.access);
    }
    range.is_writable = writable;
    return range;
}

void LentMemory::before(CommandCode code, std::span<const std::byte> command) {
    const std::lock_guard lock(mutex_);
    if (code == CommandCode::kRegisterMr) {
        const auto asked = read_as<RegisterMr>(command);
        lend(range_of(asked.address, asked.length, asked.access));
    } else if (code == CommandCode::kReregisterMr) {
        lend(range_after(read_as<ReregisterMr>(command)));
    } else if (code == CommandCode::kCreateIndirectionTable) {
        const auto asked = read_as<CreateIndirectionTable>(command);
        lend(range_of(asked.queues, sizeof(std::uint32_t) << (asked.log_size % 32), 0));
    }
}

void LentMemory::after(CommandCode code, std::span<const std::byte> command, int error,
                       std::span<const std::byte> reply) {
    const std::lock_guard lock(mutex_);
    if (code == CommandCode::kRegisterMr) {
        const auto asked = read_as<RegisterMr>(command);
        const Range range = range_of(asked.address, asked.length, asked.access);
        if (error != 0) {
            take_back(range);
            return;
        }
        const RegionName name{asked.context, read_as<RegisterMrReply>(reply).handle};
        forget(name);
        regions_.emplace(name, range);
    } else if (code == CommandCode::kReregisterMr) {
        const auto asked = read_as<ReregisterMr>(command);
        const Range range = range_after(asked);
        if (error != 0) {
            take_back(range);
            return;
        }
        const RegionName name{asked.context, asked.handle};
        forget(name);
        regions_.emplace(name, range);
    } else if (code == CommandCode::kCreateIndirectionTable) {
        const auto asked = read_as<CreateIndirectionTable>(command);
        take_back(range_of(asked.queues, sizeof(std::uint32_t) << (asked.log_size % 32), 0));
    } else if (code == CommandCode::kDeregisterMr && error == 0) {
        const auto asked = read_as<DeregisterMr>(command);
        forget({asked.context, asked.handle});
    } else if (code == CommandCode::kCloseContext && error == 0) {
        forget_all_of(read_as<CloseContext>(command).context);
    }
}

bool LentMemory::may_copy(std::uint64_t address, std::uint64_t length, bool writes) const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t end = address + length;
    return end >= address && (writes ? writable_ : readable_).cover(address, end);
}

}  // namespace simverbs::driver
