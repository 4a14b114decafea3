#include "simverbs/rdma_cm/ucma_abi.hpp"

#include <algorithm>

#include "fabric/core/assert.hpp"

namespace simverbs::rdma_cm {
namespace {

constexpr std::uint32_t kQpnMask = 0xFF'FFFF;

template <class Param>
void put_private_data(Param& param, const cm::PrivateData& private_data) {
    SIMVERBS_ASSERT(private_data.size() <= UINT8_MAX, "{} bytes of private data",
                    private_data.size());
    std::ranges::copy(private_data, std::begin(param.private_data));
    param.private_data_len = static_cast<std::uint8_t>(private_data.size());
}

}  // namespace

ConnectionParameters from_user(const rdma_ucm_conn_param& given, const RdmaId& id) {
    const bool is_ib = id.source().family() == AddressFamily::kInfiniband;
    return {.private_data = {given.private_data, given.private_data + given.private_data_len},
            .responder_resources = given.responder_resources,
            .initiator_depth = given.initiator_depth,
            .flow_control = given.flow_control,
            .retry_count = given.retry_count,
            .rnr_retry_count = given.rnr_retry_count,
            .srq = given.srq,
            .qp_num = given.qp_num & kQpnMask,
            .qkey = is_ib ? given.qkey : 0};
}

rdma_ucm_event_resp to_user(const RdmaEvent& event, bool is_datagram) {
    rdma_ucm_event_resp response{};
    response.event = static_cast<std::uint32_t>(event.type);
    response.status = static_cast<std::uint32_t>(event.status);
    response.ece = {.vendor_id = event.ece.vendor_id, .attr_mod = event.ece.options};
    if (is_datagram) {
        rdma_ucm_ud_param& ud = response.param.ud;
        put_private_data(ud, event.datagram.private_data);
        ud.ah_attr = event.datagram.address;
        ud.qp_num = event.datagram.qp_num;
        ud.qkey = event.datagram.qkey;
        return response;
    }
    rdma_ucm_conn_param& conn = response.param.conn;
    put_private_data(conn, event.connection.private_data);
    conn.responder_resources = event.connection.responder_resources;
    conn.initiator_depth = event.connection.initiator_depth;
    conn.flow_control = event.connection.flow_control;
    conn.retry_count = event.connection.retry_count;
    conn.rnr_retry_count = event.connection.rnr_retry_count;
    conn.srq = event.connection.srq;
    conn.qp_num = event.connection.qp_num;
    return response;
}

}  // namespace simverbs::rdma_cm
