// The part of a walk that the extended verbs add: requests posted by function, groups of datagrams.
#include <cerrno>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

constexpr std::uint16_t kFirstGroupLid = 0xC000;

// Returns true if ibv_wr_*() of this queue pair has the operation.
bool has_function(const Pair& pair, ibv_wr_opcode opcode) {
    switch (opcode) {
        case IBV_WR_SEND:
        case IBV_WR_SEND_WITH_IMM:
            return true;
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
        case IBV_WR_SEND_WITH_INV:
        case IBV_WR_LOCAL_INV:
        case IBV_WR_BIND_MW:
            return pair.qp->qp_type != IBV_QPT_UD;
        case IBV_WR_RDMA_READ:
        case IBV_WR_ATOMIC_CMP_AND_SWP:
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return pair.qp->qp_type == IBV_QPT_RC || pair.qp->qp_type == IBV_QPT_XRC_SEND;
        default:
            return false;
    }
}

void begin(ibv_qp_ex* qp, const ibv_send_wr& wr) {
    const auto& rdma = wr.wr.rdma;
    const auto& atomic = wr.wr.atomic;
    switch (wr.opcode) {
        case IBV_WR_SEND:
            return ibv_wr_send(qp);
        case IBV_WR_SEND_WITH_IMM:
            return ibv_wr_send_imm(qp, wr.imm_data);
        case IBV_WR_SEND_WITH_INV:
            return ibv_wr_send_inv(qp, wr.invalidate_rkey);
        case IBV_WR_LOCAL_INV:
            return ibv_wr_local_inv(qp, wr.invalidate_rkey);
        case IBV_WR_BIND_MW:
            return ibv_wr_bind_mw(qp, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
        case IBV_WR_RDMA_WRITE:
            return ibv_wr_rdma_write(qp, rdma.rkey, rdma.remote_addr);
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return ibv_wr_rdma_write_imm(qp, rdma.rkey, rdma.remote_addr, wr.imm_data);
        case IBV_WR_RDMA_READ:
            return ibv_wr_rdma_read(qp, rdma.rkey, rdma.remote_addr);
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return ibv_wr_atomic_cmp_swp(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add,
                                         atomic.swap);
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return ibv_wr_atomic_fetch_add(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add);
        default:
            fail("no function posts opcode " + std::to_string(wr.opcode));
    }
}

void set_data(ibv_qp_ex* qp, const ibv_send_wr& wr) {
    const auto count = static_cast<std::size_t>(wr.num_sge);
    if ((wr.send_flags & IBV_SEND_INLINE) == 0) {
        return ibv_wr_set_sge_list(qp, count, wr.sg_list);
    }
    std::vector<ibv_data_buf> buffers;
    for (std::size_t i = 0; i < count; ++i) {
        const ibv_sge& segment = wr.sg_list[i];
        buffers.push_back({reinterpret_cast<void*>(segment.addr), segment.length});
    }
    ibv_wr_set_inline_data_list(qp, count, buffers.data());
}

}  // namespace

ibv_gid group(std::uint32_t number) {
    ibv_gid gid{};
    gid.raw[0] = 0xFF;
    gid.raw[1] = 0x12;
    gid.raw[15] = static_cast<std::uint8_t>(number + 1);
    return gid;
}

std::uint16_t group_lid(const Host& host, std::uint32_t number) {
    return host.port.link_layer == IBV_LINK_LAYER_ETHERNET
               ? 0
               : static_cast<std::uint16_t>(kFirstGroupLid + number);
}

// ECANCELED: nothing was asked for in the end.
int Walk::post_extended(Pair& pair, const std::vector<ibv_send_wr>& list) {
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair.qp);
    require(qp != nullptr, "ibv_qp_to_qp_ex");
    bool abandoned = random_.one_in(32);
    ibv_wr_start(qp);
    for (const ibv_send_wr& wr : list) {
        const bool datagram = pair.qp->qp_type == IBV_QPT_UD;
        if (!has_function(pair, wr.opcode) || (datagram && wr.wr.ud.ah == nullptr)) {
            abandoned = true;
            break;
        }
        qp->wr_id = wr.wr_id;
        qp->wr_flags = wr.send_flags;
        begin(qp, wr);
        if (datagram) {
            ibv_wr_set_ud_addr(qp, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
        } else if (pair.qp->qp_type == IBV_QPT_XRC_SEND) {
            ibv_wr_set_xrc_srqn(qp, wr.qp_type.xrc.remote_srqn);
        }
        const bool local = wr.opcode == IBV_WR_LOCAL_INV || wr.opcode == IBV_WR_BIND_MW;
        if (!local && wr.num_sge > 0) {
            set_data(qp, wr);
        }
    }
    if (abandoned) {
        ibv_wr_abort(qp);
        return ECANCELED;
    }
    const int error = ibv_wr_complete(qp);
    return error == ENOMEM ? E2BIG : error;  // it may be the list that is too long
}

// Into a group or out of it, where only datagrams may be.
void Walk::change_membership(Host& host) {
    Pair* pair = any(host.pairs);
    if (pair == nullptr) {
        return;
    }
    const std::uint32_t number = random_.below(kGroups);
    const ibv_gid gid = group(number);
    const std::uint16_t lid = group_lid(host, number);
    const bool allowed = pair->qp->qp_type == IBV_QPT_UD;
    const bool member = pair->groups.contains(number);
    if (random_.one_in(3)) {
        const int expected = allowed && member ? 0 : EINVAL;
        require(ibv_detach_mcast(pair->qp, &gid, lid) == expected, "ibv_detach_mcast");
        pair->groups.erase(number);
        return;
    }
    require(ibv_attach_mcast(pair->qp, &gid, lid) == (allowed ? 0 : EINVAL), "ibv_attach_mcast");
    if (allowed) {
        pair->groups.insert(number);
    }
}

}  // namespace walk
