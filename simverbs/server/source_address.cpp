#include "simverbs/server/source_address.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "fabric/net/ethernet.hpp"

#include "simverbs/host_rdma_cm/ip_addresses.hpp"

namespace simverbs {

SourceAddressReply source_address(Simulation& simulation, const DeviceRequest& request) {
    const std::string_view host(request.host, strnlen(request.host, sizeof request.host));
    std::vector<fabric::NodeId> nodes;
    for (const std::size_t hca : simulation.hcas_of(host)) {
        nodes.push_back(simulation.hca(hca).node());
    }
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
    SourceAddressReply reply;
    for (std::size_t i = source->bytes.size() - sizeof reply.address; i < source->bytes.size();
         ++i) {
        reply.address = reply.address << 8 | source->bytes[i];
    }
    return reply;
}

}  // namespace simverbs
