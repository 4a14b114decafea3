#include "simverbs/host_rdma_cm/rdma_cm_trace.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "simverbs/rdma_cm/ucma_commands.hpp"

namespace simverbs::rdma_cm {

bool trace_command(Simulation& simulation, fabric::NodeId node,
                   std::span<const std::uint8_t> written, const UcmaReply& reply) {
    rdma_ucm_cmd_hdr header{};
    if (written.size() >= sizeof header) {
        std::memcpy(&header, written.data(), sizeof header);
    }
    const UcmaCommandRow* const row = find_ucma_command(header.cmd);
    const bool gets_event = header.cmd == RDMA_USER_CM_CMD_GET_EVENT;
    if (row == nullptr || written.size() < sizeof header || (gets_event && reply.error == EAGAIN)) {
        return false;
    }
    const std::span<const std::uint8_t> payload = written.subspan(sizeof header);
    const bool answers_id = header.cmd == RDMA_USER_CM_CMD_CREATE_ID && reply.error == 0;
    const auto id = answers_id ? id_at(reply.bytes, 0) : id_at(payload, row->id_at);
    const fabric::SimTime now = simulation.loop().now();
    rdma_ucm_event_resp taken{};
    if (gets_event && reply.bytes.size() >= offsetof(rdma_ucm_event_resp, param)) {
        std::memcpy(&taken, reply.bytes.data(), offsetof(rdma_ucm_event_resp, param));
        simulation.bus().emit(now,
                              RdmaCmEventTaken{.node = node,
                                               .event = static_cast<RdmaEventType>(taken.event),
                                               .id = taken.id,
                                               .status = static_cast<int>(taken.status)});
        return true;
    }
    simulation.bus().emit(
        now, RdmaCmCommanded{
                 .node = node, .command = row->name, .id = id.value_or(0), .error = reply.error});
    return true;
}

}  // namespace simverbs::rdma_cm
