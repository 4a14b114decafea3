// A path as the subnet administration describes it (IBA 15.2.5.16), and its three formats: 64 bytes
// of a management datagram, a path of the communication manager, an address vector of verbs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "fabric/core/strong_id.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link_layer.hpp"

#include "simverbs/cm/connection.hpp"

namespace simverbs::rdma_cm {

inline constexpr std::uint8_t kSelectExactly = 2;  // a selector: equal to the value

struct PathRecord {
    std::uint64_t service_id = 0;
    fabric::Gid dgid;
    fabric::Gid sgid;
    fabric::Lid dlid;
    fabric::Lid slid;
    bool raw_traffic = false;
    std::uint32_t flow_label = 0;  // 20 bits
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
    bool reversible = false;
    std::uint8_t numb_path = 0;  // 7 bits
    std::uint16_t pkey = 0;
    std::uint16_t qos_class = 0;    // 12 bits
    std::uint8_t sl = 0;            // 4 bits
    std::uint8_t mtu_selector = 0;  // selectors: 2 bits
    std::uint8_t mtu = 0;           // 6 bits, as of enum ibv_mtu
    std::uint8_t rate_selector = 0;
    std::uint8_t rate = 0;  // 6 bits, as of enum ibv_rate
    std::uint8_t life_time_selector = 0;
    std::uint8_t life_time = 0;  // 6 bits, 4.096 us x 2^n
    std::uint8_t preference = 0;

    friend bool operator==(const PathRecord&, const PathRecord&) = default;
};

inline constexpr std::size_t kPathRecordBytes = 64;
std::array<std::uint8_t, kPathRecordBytes> pack(const PathRecord& record);
// `bytes` holds kPathRecordBytes (asserted). Every bit pattern parses.
PathRecord unpack_path_record(std::span<const std::uint8_t> bytes);

ib_user_path_rec to_user(const PathRecord& record);

// Returns the path of a REQ. Beyond a router its LIDs are unknown, hence permissive (Linux).
cm::Path to_cm_path(const PathRecord& record);
// Returns the path as the accepting side of a connection sees it.
PathRecord from_cm_path(const cm::Path& path, const cm::QpParameters& qp, std::uint64_t service_id);

ib_uverbs_ah_attr to_address_vector(const PathRecord& record, fabric::LinkLayer layer,
                                    fabric::PortNumber port, std::uint8_t sgid_index);

}  // namespace simverbs::rdma_cm
