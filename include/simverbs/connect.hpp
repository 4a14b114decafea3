// Two queue pairs, connected as a test wants it, on InfiniBand and on Ethernet:
//
//     simverbs::connect(*client, *server, {.timeout = 10, .retries = 1});
//
// Header only, over <infiniband/verbs.h>; it works on any verbs library.
#ifndef SIMVERBS_CONNECT_HPP
#define SIMVERBS_CONNECT_HPP

#if __cplusplus < 201703L
#error "<simverbs/connect.hpp> needs C++17, and {.name = value} in its options C++20: -std=c++20"
#endif

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.hpp>

// Weak, since queue pairs of other libraries are connected without it.
extern "C" __attribute__((weak)) const char* simverbs_last_error(void);

namespace simverbs {

// Attributes of both ends, as ibv_modify_qp(3) has them.
struct ConnectionOptions {
    std::uint8_t port = 1;
    std::optional<ibv_mtu> mtu{};             // else the smaller one of the two ports
    std::optional<std::uint8_t> gid_index{};  // else: Ethernet, the first of RoCE v2 and IPv4;
                                              // InfiniBand, none, by LID
    std::uint8_t timeout = 14;       // 4.096 us * 2^timeout for an answer: 67 ms; 0: for ever
    std::uint8_t retries = 7;        // 0 to 7
    std::uint8_t rnr_retries = 7;    // 0 to 6; 7: for ever
    std::uint8_t min_rnr_timer = 1;  // 10 us; 0 is 655.36 ms
    std::uint8_t reads = 4;          // and atomics at a time, in each direction
    std::uint8_t service_level = 0;
    std::uint32_t first_psn = 0;      // of both ends
    std::uint32_t qkey = 0x11111111;  // of UD
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC;
};

namespace detail {

// One end of a connection on its way to RTS.
class Connecting {
  public:
    Connecting(ibv_qp& qp, const ConnectionOptions& options) : qp_(qp), options_(options) {
        require(ibv_query_port(qp.context, options.port, &port_), "ibv_query_port");
        if (options.gid_index || port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
            gid_index_ = options.gid_index ? *options.gid_index : gid_by_ip();
            const int error = ibv_query_gid(qp.context, options.port, gid_index_, &gid_);
            const auto* const bytes = gid_.raw;
            if (error != 0 || std::all_of(bytes, bytes + 16, [](auto b) { return b == 0; })) {
                throw Error(EINVAL, "connect: no GID " + std::to_string(gid_index_));
            }
            has_gid_ = true;
        }
    }

    void to_init() {
        modify(attributes(IBV_QPS_RESET), IBV_QP_STATE, "RESET");
        ibv_qp_attr attr = attributes(IBV_QPS_INIT);
        attr.port_num = options_.port;
        attr.qkey = options_.qkey;
        attr.qp_access_flags = options_.access;
        modify(attr,
               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                   (is_datagram() ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
               "INIT");
    }
    void to_rtr(const Connecting& peer) {
        ibv_qp_attr attr = attributes(IBV_QPS_RTR);
        if (is_datagram()) {
            modify(attr, IBV_QP_STATE, "RTR");
            return;
        }
        attr.path_mtu = options_.mtu.value_or(std::min(port_.active_mtu, peer.port_.active_mtu));
        attr.dest_qp_num = peer.qp_.qp_num;
        attr.rq_psn = options_.first_psn;
        attr.max_dest_rd_atomic = options_.reads;
        attr.min_rnr_timer = options_.min_rnr_timer;
        attr.ah_attr.dlid = peer.port_.lid;
        attr.ah_attr.sl = options_.service_level;
        attr.ah_attr.port_num = options_.port;
        attr.ah_attr.is_global = has_gid_ ? 1 : 0;
        attr.ah_attr.grh.dgid = peer.gid_;
        attr.ah_attr.grh.sgid_index = gid_index_;
        attr.ah_attr.grh.hop_limit = 64;
        const bool answers = is(IBV_QPT_RC) || is(IBV_QPT_XRC_RECV);
        modify(attr,
               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
               "RTR");
    }
    void to_rts() {
        ibv_qp_attr attr = attributes(IBV_QPS_RTS);
        attr.timeout = options_.timeout;
        attr.retry_cnt = options_.retries;
        attr.rnr_retry = options_.rnr_retries;
        attr.sq_psn = options_.first_psn;
        attr.max_rd_atomic = options_.reads;
        const bool asks = is(IBV_QPT_RC) || is(IBV_QPT_XRC_SEND);
        const bool times = asks || is(IBV_QPT_XRC_RECV);
        modify(attr,
               IBV_QP_STATE | IBV_QP_SQ_PSN | (times ? IBV_QP_TIMEOUT : 0) |
                   (asks ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0),
               "RTS");
    }

  private:
    static void require(int error, const std::string& what) {
        if (error != 0) {
            throw Error(error, "connect: " + what);
        }
    }
    [[nodiscard]] bool is(ibv_qp_type type) const { return qp_.qp_type == type; }
    [[nodiscard]] bool is_datagram() const { return is(IBV_QPT_UD); }

    static ibv_qp_attr attributes(ibv_qp_state state) {
        ibv_qp_attr attr{};
        attr.qp_state = state;
        return attr;
    }

    void modify(ibv_qp_attr attr, int mask, const char* state) {
        if (const int error = ibv_modify_qp(&qp_, &attr, mask); error != 0) {
            const bool knows_why = &simverbs_last_error != nullptr;
            throw Error(error, "connect: queue pair " + std::to_string(qp_.qp_num) + " to " +
                                   state + (knows_why ? ": " : "") +
                                   (knows_why ? simverbs_last_error() : ""));
        }
    }

    [[nodiscard]] std::uint8_t gid_by_ip() const {
        for (int i = 0; i < port_.gid_tbl_len; ++i) {
            ibv_gid_entry entry{};
            if (ibv_query_gid_ex(qp_.context, options_.port, static_cast<std::uint32_t>(i), &entry,
                                 0) != 0 ||
                entry.gid_type != IBV_GID_TYPE_ROCE_V2) {
                continue;
            }
            const auto* const bytes = entry.gid.raw;
            const bool is_mapped = std::all_of(bytes, bytes + 10, [](auto b) { return b == 0; }) &&
                                   bytes[10] == 0xff && bytes[11] == 0xff;
            if (is_mapped) {
                return static_cast<std::uint8_t>(i);
            }
        }
        throw Error(ENOENT, "connect: no GID of RoCE v2 and IPv4");
    }

    ibv_qp& qp_;
    const ConnectionOptions& options_;
    ibv_port_attr port_{};
    ibv_gid gid_{};
    std::uint8_t gid_index_ = 0;
    bool has_gid_ = false;
};

// Two of one type, or an initiator and a target of XRC.
inline bool fit_together(ibv_qp_type a, ibv_qp_type b) {
    return a == IBV_QPT_XRC_SEND   ? b == IBV_QPT_XRC_RECV
           : a == IBV_QPT_XRC_RECV ? b == IBV_QPT_XRC_SEND
                                   : a == b;
}

}  // namespace detail

// Brings two queue pairs of one type from any state to RTS, each the other's peer: RC, UC, and
// XRC_SEND with XRC_RECV. Two of UD are brought to RTS, without a peer. Throws Error.
inline void connect(ibv_qp& a, ibv_qp& b, const ConnectionOptions& options = {}) {
    if (!detail::fit_together(a.qp_type, b.qp_type)) {
        throw Error(EINVAL, "connect: the queue pairs are of two types, " +
                                std::to_string(a.qp_type) + " and " + std::to_string(b.qp_type) +
                                " (enum ibv_qp_type)");
    }
    detail::Connecting first(a, options);
    detail::Connecting second(b, options);
    first.to_init();
    second.to_init();
    first.to_rtr(second);
    second.to_rtr(first);
    first.to_rts();
    second.to_rts();
}

}  // namespace simverbs

#endif
