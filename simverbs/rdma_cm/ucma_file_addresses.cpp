// Commands about addresses, routes, listeners and multicast groups.
#include <cerrno>

#include "simverbs/rdma_cm/ucma_abi.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {

UcmaReply UcmaFile::bind_ip(const Command& command) {
    const auto given = read_command<rdma_ucm_bind_ip>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto address = read_address(given->addr);
    if (!address) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_id(given->id);
    return failure(id == nullptr ? error : id->bind(*address));
}

UcmaReply UcmaFile::bind_address(const Command& command) {
    const auto given = read_command<rdma_ucm_bind>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto address = read_address(given->addr);
    if (given->reserved != 0 || !address || given->addr_size != address->size()) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_id(given->id);
    return failure(id == nullptr ? error : id->bind(*address));
}

UcmaReply UcmaFile::resolve_ip(const Command& command) {
    const auto given = read_command<rdma_ucm_resolve_ip>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto source = read_address(given->src_addr);
    const auto destination = read_address(given->dst_addr);
    if ((given->src_addr.sin6_family != 0 && !source) || !destination) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_id(given->id);
    return failure(id == nullptr ? error
                                 : id->resolve_addr(source.value_or(SocketAddress()), *destination,
                                                    given->timeout_ms));
}

UcmaReply UcmaFile::resolve_addr(const Command& command) {
    const auto given = read_command<rdma_ucm_resolve_addr>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const SocketAddress source(bytes_of(given->src_addr));
    const auto destination = read_address(given->dst_addr);
    if (given->reserved != 0 || (given->src_size != 0 && given->src_size != source.size()) ||
        !destination || given->dst_size != destination->size()) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_id(given->id);
    return failure(id == nullptr ? error
                                 : id->resolve_addr(source, *destination, given->timeout_ms));
}

UcmaReply UcmaFile::resolve_route(const Command& command) {
    const auto given = read_command<rdma_ucm_resolve_route>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_bound_id(given->id);
    return failure(id == nullptr ? error : id->resolve_route(given->timeout_ms));
}

UcmaReply UcmaFile::listen(const Command& command) {
    const auto given = read_command<rdma_ucm_listen>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_id(given->id);
    if (id == nullptr) {
        return failure(error);
    }
    const bool is_given = given->backlog > 0 && given->backlog <= kMaxBacklog;
    ucma_.contexts_.at(given->id).backlog = is_given ? given->backlog : kMaxBacklog;
    return failure(id->listen());
}

UcmaReply UcmaFile::join_ip_multicast(const Command& command) {
    const auto given = read_command<rdma_ucm_join_ip_mcast>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto address = read_address(given->addr);
    if (!address) {
        return failure(EINVAL);
    }
    rdma_ucm_join_mcast wanted{};
    wanted.response = given->response;
    wanted.uid = given->uid;
    wanted.id = given->id;
    wanted.addr_size = static_cast<std::uint16_t>(address->size());
    wanted.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
    std::memcpy(&wanted.addr, address->bytes().data(), sizeof wanted.addr);
    return join(wanted, command.out);
}

UcmaReply UcmaFile::join_multicast(const Command& command) {
    const auto given = read_command<rdma_ucm_join_mcast>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    return read_address(given->addr) ? join(*given, command.out) : failure(EINVAL);
}

// The membership is there before the id joins, since an event may come at once.
UcmaReply UcmaFile::join(const rdma_ucm_join_mcast& command, std::size_t out) {
    if (out < sizeof(rdma_ucm_create_id_resp)) {
        return failure(ENOSPC);
    }
    const SocketAddress group(bytes_of(command.addr));
    const bool is_full = command.join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
    if (command.addr_size != group.size() ||
        (!is_full && command.join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_bound_id(command.id);
    if (id == nullptr) {
        return failure(error);
    }
    const std::uint32_t number = ucma_.membership_numbers_.take();
    ucma_.memberships_[number] = {.number = number, .context = command.id, .uid = command.uid};
    const int refused =
        id->join(group, is_full ? JoinState::kFullMember : JoinState::kSendOnlyFullMember, number);
    if (refused != 0) {
        ucma_.memberships_.erase(number);
        ucma_.membership_numbers_.give_back(number);
        return failure(refused);
    }
    ucma_.contexts_.at(command.id).memberships.insert(number);
    return respond(command.response, rdma_ucm_create_id_resp{.id = number});
}

UcmaReply UcmaFile::leave_multicast(const Command& command) {
    if (command.out < sizeof(rdma_ucm_destroy_id_resp)) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_destroy_id>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto found = ucma_.memberships_.find(given->id);
    if (found == ucma_.memberships_.end()) {
        return failure(ENOENT);
    }
    UcmaContext& context = ucma_.contexts_.at(found->second.context);
    if (context.file != this) {
        return failure(EINVAL);
    }
    if (!context.id) {
        return failure(ENXIO);
    }
    ucma_.rdma_cm_.find(*context.id)->leave(given->id);
    const std::uint32_t reported = found->second.events_reported;
    std::erase_if(context.events, [this, given](std::uint64_t event) {
        const bool is_its = events_.at(event).membership == given->id;
        if (is_its) {
            events_.erase(event);
        }
        return is_its;
    });
    context.memberships.erase(given->id);
    ucma_.memberships_.erase(found);
    ucma_.membership_numbers_.give_back(given->id);
    return respond(given->response, rdma_ucm_destroy_id_resp{.events_reported = reported});
}

}  // namespace simverbs::rdma_cm
