// Two connected queue pairs of two hosts in plain verbs, as a program would make them that knows
// nothing of simverbs.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

namespace promises {

inline void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::abort();
    }
}

class End {
  public:
    // On the device of that index; with the completion queue and channel of `shares`, if given.
    explicit End(int device, const End* shares = nullptr, bool by_events = false) {
        ibv_device** devices = ibv_get_device_list(nullptr);
        require(devices != nullptr, "ibv_get_device_list");
        context = shares != nullptr ? shares->context : ibv_open_device(devices[device]);
        ibv_free_device_list(devices);
        require(context != nullptr, "ibv_open_device");
        pd = shares != nullptr ? shares->pd : ibv_alloc_pd(context);
        channel = by_events ? ibv_create_comp_channel(context) : nullptr;
        cq = shares != nullptr ? shares->cq : ibv_create_cq(context, 256, nullptr, channel, 0);
        require(cq != nullptr, "ibv_create_cq");
        mr = ibv_reg_mr(pd, memory.data(), memory.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        require(mr != nullptr, "ibv_reg_mr");
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1};
        init.qp_type = IBV_QPT_RC;
        qp = ibv_create_qp(pd, &init);
        require(qp != nullptr, "ibv_create_qp");
        ibv_port_attr port{};
        require(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
        lid = port.lid;
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    void connect(const End& peer) { connect(peer.qp->qp_num, peer.lid); }
    void connect(std::uint32_t peer_qpn, std::uint16_t peer_lid) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        attr = {};
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_1024;
        attr.dest_qp_num = peer_qpn;
        attr.rq_psn = 100;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = 12;
        attr.ah_attr.dlid = peer_lid;
        attr.ah_attr.port_num = 1;
        modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        attr = {};
        attr.qp_state = IBV_QPS_RTS;
        attr.timeout = 14;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        attr.sq_psn = 100;
        attr.max_rd_atomic = 1;
        modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    }

    void receive() {
        ibv_sge segment{address(), 4096, mr->lkey};
        ibv_recv_wr wr{};
        wr.sg_list = &segment;
        wr.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        require(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
    }
    void write(const End& peer, std::uint32_t length) {
        ibv_sge segment{address(), length, mr->lkey};
        ibv_send_wr wr{};
        wr.wr_id = length;
        wr.sg_list = &segment;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = peer.address();
        wr.wr.rdma.rkey = peer.mr->rkey;
        ibv_send_wr* bad = nullptr;
        require(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    }
    void send(std::uint32_t length) {
        ibv_sge segment{address(), length, mr->lkey};
        ibv_send_wr wr{};
        wr.sg_list = &segment;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        ibv_send_wr* bad = nullptr;
        require(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    }
    [[nodiscard]] int poll() const {
        ibv_wc wc{};
        const int found = ibv_poll_cq(cq, 1, &wc);
        require(found >= 0 && (found == 0 || wc.status == IBV_WC_SUCCESS), "a completion");
        return found;
    }
    void wait() const {
        while (poll() == 0) {
        }
    }
    [[nodiscard]] std::uint64_t address() const {
        return reinterpret_cast<std::uint64_t>(memory.data());
    }

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_cq* cq = nullptr;
    ibv_mr* mr = nullptr;
    ibv_qp* qp = nullptr;
    std::uint16_t lid = 0;
    mutable std::array<std::uint8_t, 65536> memory{};

  private:
    void modify(ibv_qp_attr& attr, int mask) {
        require(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp");
    }
};

// A queue pair on device 0 and its peer on device 1.
struct Pair {
    explicit Pair(const Pair* shares = nullptr, bool by_events = false)
        : near(0, shares == nullptr ? nullptr : &shares->near, by_events),
          far(1, shares == nullptr ? nullptr : &shares->far) {
        near.connect(far);
        far.connect(near);
    }
    End near;
    End far;
};

using Programs = std::map<std::string, void (*)()>;

// Runs the program that the command line names; the exit status.
inline int run_named(const Programs& programs, int count, char** words) {
    const auto found = programs.find(count == 2 ? words[1] : "");
    if (found == programs.end()) {
        std::fprintf(stderr, "usage: %s NAME\n", words[0]);
        for (const auto& [name, program] : programs) {
            std::fprintf(stderr, "  %s\n", name.c_str());
        }
        return 2;
    }
    found->second();
    return 0;
}

}  // namespace promises
