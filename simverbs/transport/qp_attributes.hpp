// The attributes that modify_qp has set: the part of a queue pair that its engines read.
//
// Engines see it as const: only the queue pair writes it, through the transition table.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/net/ethernet.hpp"

#include "simverbs/model/access.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs {

inline constexpr std::uint8_t kNoPort = 0;

// Where a path leads (struct ibv_ah_attr without its padding).
struct AddressVector {
    std::array<std::uint8_t, 16> dgid{};
    std::uint32_t flow_label = 0;
    std::uint16_t dlid = 0;
    std::uint8_t sgid_index = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t sl = 0;
    std::uint8_t src_path_bits = 0;
    std::uint8_t static_rate = 0;
    bool is_global = false;
    std::uint8_t port = 1;
    fabric::MacAddress destination_mac;  // on Ethernet: found by the device, never believed
};

// The most that a queue pair sends (ibv_modify_qp_rate_limit(3)).
struct PacingRule {
    std::uint32_t rate_kbps = 0;    // 0: as much as the port does
    std::uint32_t burst_bytes = 0;  // that may go at once; a packet always may
};

struct QpAttributes {
    Service service = Service::kRc;
    QpState state = QpState::kReset;
    std::uint16_t pkey_index = 0;
    std::uint32_t qpn = 0;
    std::uint32_t dest_qpn = 0;
    Psn sq_psn{0};
    Psn rq_psn{0};
    std::uint32_t path_mtu = 256;  // bytes
    std::uint32_t qkey = 0;
    AccessRights access;
    std::uint8_t port = 1;
    std::uint8_t timeout = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
    std::uint8_t min_rnr_timer = 0;
    std::uint8_t max_rd_atomic = 0;
    std::uint8_t max_dest_rd_atomic = 0;
    AddressVector path{.port = kNoPort};  // until modify_qp gives one
    PacingRule pacing;
};

}  // namespace simverbs
