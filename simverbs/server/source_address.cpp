#include "simverbs/server/source_address.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "fabric/net/ethernet.hpp"

#include "simverbs/host_rdma_cm/ip_addresses.hpp"

namespace simverbs {
namespace {

// 127.77.0.0/16, or that of a VLAN.
constexpr std::uint32_t kPrefixBits = 16;

std::vector<fabric::NodeId> nodes_of(Simulation& simulation, const DeviceRequest& request) {
    const std::string_view host(request.host, strnlen(request.host, sizeof request.host));
    std::vector<fabric::NodeId> nodes;
    for (const std::size_t hca : simulation.hcas_of(host)) {
        nodes.push_back(simulation.hca(hca).node());
    }
    return nodes;
}

std::uint32_t ipv4_in(const fabric::Gid& gid) {
    std::uint32_t address = 0;
    for (std::size_t i = gid.bytes.size() - sizeof address; i < gid.bytes.size(); ++i) {
        address = address << 8 | gid.bytes[i];
    }
    return address;
}

}  // namespace

SourceAddressReply source_address(Simulation& simulation, const DeviceRequest& request) {
    const std::vector<fabric::NodeId> nodes = nodes_of(simulation, request);
    const rdma_cm::IpAddresses addresses(simulation.network());
    const fabric::Gid remote = fabric::ipv4_mapped(request.address);
    // A host reaches its own addresses from the same address, as in Linux.
    if (addresses.find_own(nodes, remote)) {
        return {.error = 0, .address = request.address};
    }
    const std::optional<fabric::Gid> source = addresses.source_for(nodes, remote);
    if (!source || !fabric::is_ipv4_mapped(*source)) {
        return {.error = ENETUNREACH, .address = 0};
    }
    return {.error = 0, .address = ipv4_in(*source)};
}

HostAddressesReply host_addresses(Simulation& simulation, const DeviceRequest& request) {
    const rdma_cm::IpAddresses addresses(simulation.network());
    HostAddressesReply reply;
    for (const fabric::Gid& own : addresses.ipv4_of(nodes_of(simulation, request))) {
        if (reply.count < HostAddressesReply::kMost) {
            reply.addresses[reply.count++] = {ipv4_in(own), kPrefixBits};
        }
    }
    return reply;
}

}  // namespace simverbs
