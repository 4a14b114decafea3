// QUERY_ROUTE and QUERY: what an id knows of addresses and paths.
#include <algorithm>
#include <cerrno>

#include "fabric/mad/field.hpp"

#include "simverbs/rdma_cm/path_record.hpp"
#include "simverbs/rdma_cm/ucma_abi.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {
namespace {

// Programs of older headers have no room for the device's index at the end.
template <class T>
constexpr std::size_t kBytesWithoutIndex = offsetof(T, ibdev_index);

// Returns a number whose bytes in memory are those of the wire.
template <class T>
T to_wire(T value) {
    std::array<std::uint8_t, sizeof(T)> bytes{};
    fabric::mad::set(bytes, {0, 8 * sizeof(T)}, value);
    T wire = 0;
    std::memcpy(&wire, bytes.data(), sizeof wire);
    return wire;
}

// As the kernel's, it takes the bytes of an IPv6 address of any other family than IPv4.
void put_ip(sockaddr_in6& to, const SocketAddress& address) {
    std::memcpy(&to, address.bytes().data(),
                address.family() == AddressFamily::kInet ? address.size() : sizeof to);
}

// Returns the AF_IB address that stands for an IP address of the id.
SocketAddress as_infiniband(const RdmaId& id, const SocketAddress& address,
                            const fabric::Gid& gid) {
    if (address.family() == AddressFamily::kInfiniband) {
        return address;
    }
    const std::uint16_t pkey = id.local() ? id.local()->pkey : std::uint16_t{0};
    return SocketAddress::infiniband(id.local() ? gid : fabric::Gid{}, pkey, id.service_id(address),
                                     0);
}

UcmaReply query_path(const RdmaId& id, std::size_t out) {
    constexpr std::size_t kHeader = sizeof(rdma_ucm_query_path_resp);
    constexpr std::size_t kEach = sizeof(ib_path_rec_data);
    if (out < kHeader) {
        return failure(ENOSPC);
    }
    const std::array<std::uint32_t, 2> header{static_cast<std::uint32_t>(id.paths().size()), 0};
    static_assert(sizeof header == kHeader);
    UcmaReply reply = respond(0, header);
    out -= kHeader;
    // The kernel wants room for more than the record.
    for (const PathRecord& path : id.paths()) {
        if (out <= kEach) {
            break;
        }
        ib_path_rec_data data{};
        data.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
        const std::array<std::uint8_t, kPathRecordBytes> packed = pack(path);
        std::memcpy(data.path_rec, packed.data(), packed.size());
        const std::span<const std::uint8_t> bytes = bytes_of(data);
        reply.bytes.insert(reply.bytes.end(), bytes.begin(), bytes.end());
        out -= kEach;
    }
    return reply;
}

}  // namespace

UcmaReply UcmaFile::query_route(const Command& command) {
    if (command.out < kBytesWithoutIndex<rdma_ucm_query_route_resp>) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_query>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_id(given->id);
    if (id == nullptr) {
        return failure(error);
    }
    rdma_ucm_query_route_resp response{};
    put_ip(response.src_addr, id->source());
    put_ip(response.dst_addr, id->destination());
    if (id->local()) {
        rdma_ucm_query_addr_resp device{};
        put_device(*id, device);
        response.node_guid = device.node_guid;
        response.ibdev_index = device.ibdev_index;
        response.port_num = device.port_num;
        response.num_paths = static_cast<std::uint32_t>(id->paths().size());
        if (id->paths().empty()) {
            response.ib_route[0] = to_user(PathRecord{
                .dgid = id->dgid(), .sgid = id->local()->gid, .pkey = id->local()->pkey});
        }
        std::ranges::transform(id->paths(), std::begin(response.ib_route),
                               [](const PathRecord& path) { return to_user(path); });
    }
    return respond(given->response, response, command.out);
}

UcmaReply UcmaFile::query(const Command& command) {
    const auto given = read_command<rdma_ucm_query>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_id(given->id);
    if (id == nullptr) {
        return failure(error);
    }
    UcmaReply reply = failure(ENOSYS);
    if (given->option == RDMA_USER_CM_QUERY_ADDR) {
        reply = query_addr(*id, command.out);
    } else if (given->option == RDMA_USER_CM_QUERY_PATH) {
        reply = query_path(*id, command.out);
    } else if (given->option == RDMA_USER_CM_QUERY_GID) {
        reply = query_gid(*id, command.out);
    }
    reply.address = given->response;
    return reply;
}

void UcmaFile::put_device(const RdmaId& id, rdma_ucm_query_addr_resp& response) const {
    const std::optional<LocalPort>& local = id.local();
    const DeviceInfo* const device =
        local ? ucma_.rdma_cm_.environment().find_device(local->device) : nullptr;
    if (device == nullptr) {
        return;
    }
    response.node_guid = to_wire(device->node_guid.value());
    response.ibdev_index = device->number;
    response.port_num = static_cast<std::uint8_t>(local->port.value());
    response.pkey = to_wire(local->pkey);
}

UcmaReply UcmaFile::query_addr(const RdmaId& id, std::size_t out) const {
    if (out < kBytesWithoutIndex<rdma_ucm_query_addr_resp>) {
        return failure(ENOSPC);
    }
    rdma_ucm_query_addr_resp response{};
    response.src_size = static_cast<std::uint16_t>(id.source().size());
    response.dst_size = static_cast<std::uint16_t>(id.destination().size());
    std::memcpy(&response.src_addr, id.source().bytes().data(), response.src_size);
    std::memcpy(&response.dst_addr, id.destination().bytes().data(), response.dst_size);
    put_device(id, response);
    return respond(0, response, out);
}

UcmaReply UcmaFile::query_gid(const RdmaId& id, std::size_t out) const {
    if (out < kBytesWithoutIndex<rdma_ucm_query_addr_resp>) {
        return failure(ENOSPC);
    }
    const fabric::Gid sgid = id.local() ? id.local()->gid : fabric::Gid{};
    const SocketAddress source = as_infiniband(id, id.source(), sgid);
    const SocketAddress destination = as_infiniband(id, id.destination(), id.dgid());
    rdma_ucm_query_addr_resp response{};
    put_device(id, response);
    response.src_size = static_cast<std::uint16_t>(source.size());
    response.dst_size = static_cast<std::uint16_t>(destination.size());
    std::memcpy(&response.src_addr, source.bytes().data(), response.src_size);
    std::memcpy(&response.dst_addr, destination.bytes().data(), response.dst_size);
    return respond(0, response, out);
}

}  // namespace simverbs::rdma_cm
