// Events of rdma_cm ids and the parameters of connections, in the terms of the kernel's
// struct rdma_cm_event and struct rdma_conn_param.
#pragma once

#include <cstdint>

#include <rdma/ib_user_verbs.h>

#include "simverbs/cm/messages.hpp"
#include "simverbs/model/rdma_cm_events.hpp"

namespace simverbs::rdma_cm {

struct ConnectionParameters {
    cm::PrivateData private_data;
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    std::uint8_t flow_control = 0;
    std::uint8_t retry_count = 0;      // above 7: 7
    std::uint8_t rnr_retry_count = 0;  // above 7: 7
    std::uint8_t srq = 0;
    std::uint32_t qp_num = 0;
    std::uint32_t qkey = 0;  // of datagrams, by AF_IB ids only
};

struct DatagramParameters {
    cm::PrivateData private_data;
    ib_uverbs_ah_attr address{};
    std::uint32_t qp_num = 0;
    std::uint32_t qkey = 0;
};

struct RdmaEvent {
    RdmaEventType type{};
    int status = 0;  // 0; -errno; the reason of a REJ; the status of a SIDR_REP
    ConnectionParameters connection;
    DatagramParameters datagram;  // instead, of a datagram id
    cm::Ece ece;
    std::uint64_t membership = 0;  // the user's token, of MULTICAST_JOIN and MULTICAST_ERROR
};

}  // namespace simverbs::rdma_cm
