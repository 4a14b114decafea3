#include "simverbs/rdma_cm/port_table.hpp"

#include <algorithm>
#include <cerrno>

#include "fabric/core/assert.hpp"

namespace simverbs::rdma_cm {
namespace {

// Returns 0 if `owner` may have the port that `others` have.
int check_port(std::span<PortOwner* const> others, const PortOwner& owner, bool reuse) {
    for (const PortOwner* other : others) {
        if (other == &owner || (!other->is_listening && reuse && other->reuse) ||
            (owner.family_only && other->family_only &&
             owner.source.family() != other->source.family())) {
            continue;
        }
        if (owner.source.is_any() || other->source.is_any()) {
            return EADDRNOTAVAIL;
        }
        if (owner.source.has_same_address(other->source)) {
            return EADDRINUSE;
        }
    }
    return 0;
}

// Returns true if the addresses and ports of both sides tell this id from the others.
bool is_unique(std::span<PortOwner* const> others, const PortOwner& owner) {
    return std::ranges::all_of(others, [&owner](const PortOwner* other) {
        const SocketAddress& destination = other->destination;
        return (destination.port() != 0 && owner.destination.port() != destination.port()) ||
               (!owner.source.is_any() && !other->source.is_any() &&
                !owner.source.has_same_address(other->source)) ||
               (!destination.is_any() && !owner.destination.has_same_address(destination));
    });
}

}  // namespace

std::span<PortOwner* const> PortTable::owners(PortSpace space, std::uint16_t port) const {
    const auto found = ports_.find({space, port});
    return found == ports_.end() ? std::span<PortOwner* const>() : found->second;
}

void PortTable::insert(const Key& key, PortOwner& owner) {
    std::vector<PortOwner*>& owners = ports_[key];
    owners.insert(owners.begin(), &owner);
    owner.source.set_port(key.second);
}

int PortTable::bind(PortSpace space, PortOwner& owner) {
    const std::uint16_t port = owner.source.port();
    if (port == 0) {
        return bind_any(space, owner);
    }
    if (const int error = check_port(owners(space, port), owner, owner.reuse); error != 0) {
        return error;
    }
    insert({space, port}, owner);
    return 0;
}

int PortTable::bind_any(PortSpace space, PortOwner& owner) {
    for (int tries = kLastEphemeralPort - kFirstEphemeralPort + 1; tries > 0; --tries) {
        const std::uint16_t port = next_ephemeral_;
        next_ephemeral_ =
            port == kLastEphemeralPort ? kFirstEphemeralPort : static_cast<std::uint16_t>(port + 1);
        if (is_unique(owners(space, port), owner)) {
            insert({space, port}, owner);
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

int PortTable::check_listen(PortSpace space, const PortOwner& owner) const {
    return check_port(owners(space, owner.source.port()), owner, false);
}

void PortTable::release(PortSpace space, const PortOwner& owner) {
    const auto found = ports_.find({space, owner.source.port()});
    SIMVERBS_ASSERT(found != ports_.end(), "id {} has no port", owner.id);
    std::erase(found->second, &owner);
    if (found->second.empty()) {
        ports_.erase(found);
    }
}

}  // namespace simverbs::rdma_cm
