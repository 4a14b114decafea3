#include "tests/conformance/every_service.hpp"

#include <cstring>
#include <string_view>

#include <fcntl.h>

namespace conformance {
namespace {

constexpr std::uint32_t kSharedReceives = 8;

// Newer than Debian 12's header: struct ibv_qp_ex ends before wr_flush.
constexpr std::uint8_t kFlushGlobal = 1;
constexpr std::uint8_t kFlushRange = 0;
constexpr std::size_t kFlushBytes = 64;
using FlushFunction = void (*)(ibv_qp_ex*, std::uint32_t, std::uint64_t, std::size_t, std::uint8_t,
                               std::uint8_t);
FlushFunction flush_function(ibv_qp_ex* qp) {
    FlushFunction function = nullptr;
    std::memcpy(&function, reinterpret_cast<const std::byte*>(qp) + sizeof *qp, sizeof function);
    return function;
}

void mac_of(const End& end, std::uint8_t* mac) {
    ibv_gid gid{};
    EXPECT_EQ(ibv_query_gid(end.context, 1, 0, &gid), 0);
    mac[0] = gid.raw[8] ^ 0x02U;
    std::copy_n(gid.raw + 9, 2, mac + 1);
    std::copy_n(gid.raw + 13, 3, mac + 3);
}

bool is(const char* word, std::string_view other) {
    return word == other;
}

}  // namespace

std::vector<Subject> every_subject() {
    std::vector<Subject> all;
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        for (const Service service : {Service::kRc, Service::kUc, Service::kUd, Service::kXrcIni,
                                      Service::kXrcTgt, Service::kRawPacket}) {
            const bool of_rxe =
                service == Service::kRc || service == Service::kUc || service == Service::kUd;
            const bool is_rxe = is(personality, "rxe");
            if (!is_rxe && service != Service::kRawPacket) {
                all.push_back({personality, service, false});
            }
            if (!is_rxe || of_rxe) {
                all.push_back({personality, service, true});
            }
        }
    }
    return all;
}

std::string name_of(const Subject& subject) {
    return std::string(subject.personality) + (subject.ethernet ? "_ethernet_" : "_") +
           std::string(to_string(subject.service));
}

void PrintTo(const Subject& subject, std::ostream* out) {
    *out << name_of(subject);
}

ibv_qp_type type_of(Service service) {
    switch (service) {
        case Service::kRc:
            return IBV_QPT_RC;
        case Service::kUc:
            return IBV_QPT_UC;
        case Service::kUd:
            return IBV_QPT_UD;
        case Service::kXrcIni:
            return IBV_QPT_XRC_SEND;
        case Service::kXrcTgt:
            return IBV_QPT_XRC_RECV;
        case Service::kRawPacket:
            break;
    }
    return IBV_QPT_RAW_PACKET;
}

XrcDomain::XrcDomain(End& end) {
    ibv_xrcd_init_attr attr{};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    attr.oflags = O_CREAT;
    domain = ibv_open_xrcd(end.context, &attr);
    EXPECT_NE(domain, nullptr);
    ibv_srq_init_attr_ex shared{};
    shared.attr.max_wr = kSharedReceives;
    shared.attr.max_sge = 1;
    shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                       IBV_SRQ_INIT_ATTR_PD;
    shared.srq_type = IBV_SRQT_XRC;
    shared.xrcd = domain;
    shared.cq = end.cq;
    shared.pd = end.pd;
    srq = ibv_create_srq_ex(end.context, &shared);
    EXPECT_NE(srq, nullptr);
    EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
}

XrcDomain::~XrcDomain() {
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_close_xrcd(domain), 0);
}

ibv_qp* make_qp(End& end, Service service, const XrcDomain* xrc, std::uint64_t operations) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = type_of(service);
    if (operations != 0) {
        init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.send_ops_flags = operations;
    }
    if (service == Service::kXrcTgt && xrc != nullptr) {
        init.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        init.xrcd = xrc->domain;
        return ibv_create_qp_ex(end.context, &init);
    }
    init.comp_mask |= IBV_QP_INIT_ATTR_PD;
    init.pd = end.pd;
    init.send_cq = end.cq;
    init.cap = Connection{}.cap;
    if (service == Service::kXrcIni) {
        init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    } else {
        init.recv_cq = end.cq;
    }
    return ibv_create_qp_ex(end.context, &init);
}

Work::Work(unsigned opcode, std::uint64_t id) {
    std::memcpy(&wr.opcode, &opcode, sizeof opcode);  // no value of the enumeration, perhaps
    wr.wr_id = id;
    wr.send_flags = IBV_SEND_SIGNALED;
}
Work& Work::with(unsigned flags) {
    wr.send_flags |= flags;
    return *this;
}
Work& Work::unsignaled() {
    wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    return *this;
}
Work& Work::from(const ibv_sge& segment) {
    segments.push_back(segment);
    return *this;
}
Work& Work::to(std::uint64_t address, std::uint32_t rkey) {
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    return *this;
}
Work& Work::atomic(std::uint64_t address, std::uint32_t rkey, std::uint64_t compare_add,
                   std::uint64_t swap) {
    wr.wr.atomic.remote_addr = address;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    return *this;
}
Work& Work::key(std::uint32_t rkey) {
    wr.invalidate_rkey = rkey;
    return *this;
}
Work& Work::bind(ibv_mw* mw, const ibv_mw_bind_info& info) {
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = info;
    return *this;
}

int post_to(ibv_qp* qp, Work work) {
    work.wr.sg_list = work.segments.data();
    work.wr.num_sge = static_cast<int>(work.segments.size());
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp, &work.wr, &bad);
    EXPECT_EQ(error != 0, bad == &work.wr);
    return error;
}

std::uint64_t function_flag(unsigned opcode) {
    switch (opcode) {
        case IBV_WR_RDMA_WRITE:
            return IBV_QP_EX_WITH_RDMA_WRITE;
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
        case IBV_WR_SEND:
            return IBV_QP_EX_WITH_SEND;
        case IBV_WR_SEND_WITH_IMM:
            return IBV_QP_EX_WITH_SEND_WITH_IMM;
        case IBV_WR_RDMA_READ:
            return IBV_QP_EX_WITH_RDMA_READ;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
        case IBV_WR_LOCAL_INV:
            return IBV_QP_EX_WITH_LOCAL_INV;
        case IBV_WR_BIND_MW:
            return IBV_QP_EX_WITH_BIND_MW;
        case IBV_WR_SEND_WITH_INV:
            return IBV_QP_EX_WITH_SEND_WITH_INV;
        case IBV_WR_TSO:
            return IBV_QP_EX_WITH_TSO;
        case IBV_WR_ATOMIC_WRITE:
            return IBV_QP_EX_WITH_ATOMIC_WRITE;
        case kFlush:
            return std::uint64_t{1} << 11U;  // newer than Debian 12's header, like the opcode
        default:
            return 0;
    }
}

int post_by_function(ibv_qp_ex* qp, const Work& work) {
    const ibv_send_wr& wr = work.wr;
    const auto& rdma = wr.wr.rdma;
    const auto& atomic = wr.wr.atomic;
    ibv_wr_start(qp);
    qp->wr_id = wr.wr_id;
    qp->wr_flags = wr.send_flags;
    switch (static_cast<unsigned>(wr.opcode)) {
        case IBV_WR_RDMA_WRITE:
            ibv_wr_rdma_write(qp, rdma.rkey, rdma.remote_addr);
            break;
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            ibv_wr_rdma_write_imm(qp, rdma.rkey, rdma.remote_addr, wr.imm_data);
            break;
        case IBV_WR_SEND:
            ibv_wr_send(qp);
            break;
        case IBV_WR_SEND_WITH_IMM:
            ibv_wr_send_imm(qp, wr.imm_data);
            break;
        case IBV_WR_RDMA_READ:
            ibv_wr_rdma_read(qp, rdma.rkey, rdma.remote_addr);
            break;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            ibv_wr_atomic_cmp_swp(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add,
                                  atomic.swap);
            break;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            ibv_wr_atomic_fetch_add(qp, atomic.rkey, atomic.remote_addr, atomic.compare_add);
            break;
        case IBV_WR_LOCAL_INV:
            ibv_wr_local_inv(qp, wr.invalidate_rkey);
            break;
        case IBV_WR_BIND_MW:
            ibv_wr_bind_mw(qp, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
            break;
        case IBV_WR_SEND_WITH_INV:
            ibv_wr_send_inv(qp, wr.invalidate_rkey);
            break;
        case IBV_WR_ATOMIC_WRITE:
            ibv_wr_atomic_write(qp, rdma.rkey, rdma.remote_addr,
                                reinterpret_cast<const void*>(work.segments.at(0).addr));
            break;
        case kFlush:
            flush_function(qp)(qp, rdma.rkey, rdma.remote_addr, kFlushBytes, kFlushGlobal,
                               kFlushRange);
            break;
        default:
            ibv_wr_abort(qp);
            ADD_FAILURE() << "no function for opcode " << wr.opcode;
            return EINVAL;
    }
    if (qp->qp_base.qp_type == IBV_QPT_UD) {
        ibv_wr_set_ud_addr(qp, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    }
    if (qp->qp_base.qp_type == IBV_QPT_XRC_SEND) {
        ibv_wr_set_xrc_srqn(qp, wr.qp_type.xrc.remote_srqn);
    }
    if (!work.segments.empty() && wr.opcode != IBV_WR_ATOMIC_WRITE) {
        ibv_wr_set_sge_list(qp, work.segments.size(), work.segments.data());
    }
    return ibv_wr_complete(qp);
}

void ConnectedAs::TearDown() {
    if (flow_ != nullptr) {
        EXPECT_EQ(ibv_destroy_flow(flow_), 0);
    }
    if (there_ != nullptr) {
        b->srq = nullptr;
        EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
        b->qp = nullptr;
        there_.reset();
    }
    TwoHosts::TearDown();
}

void ConnectedAs::replace(End& end, ibv_qp* qp) {
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
    end.qp = qp;
}

void ConnectedAs::connect_as(const Subject& subject, const Connection& with,
                             std::uint64_t operations) {
    service_ = subject.service;
    ASSERT_EQ(simverbs_set_personality(subject.personality), 0);
    ASSERT_EQ(simverbs_set_topology(subject.ethernet ? "eth-star:2" : "star:2"), 0);
    Connection ends = with;
    const bool plain = service_ != Service::kXrcIni && service_ != Service::kRawPacket;
    ends.type = plain ? type_of(service_) : IBV_QPT_RC;
    a = std::make_unique<End>(0, ends);
    b = std::make_unique<End>(1, ends);
    ASSERT_NE(a->qp, nullptr);
    if (operations != 0 || !plain) {
        replace(*a, make_qp(*a, service_, nullptr, operations));
    }
    if (plain) {
        bring_up(ends);
    } else if (service_ == Service::kXrcIni) {
        bring_up_xrc(with);
    } else {
        bring_up_raw();
    }
}

void ConnectedAs::bring_up_xrc(const Connection& with) {
    there_ = std::make_unique<XrcDomain>(*b);
    shared_queue = there_->number;
    replace(*b, make_qp(*b, Service::kXrcTgt, there_.get()));
    b->srq = there_->srq;
    bring_up(with);  // each end ignores what is for the other (Linux uverbs modify_qp_mask)
}

void ConnectedAs::bring_up_raw() {
    replace(*b, make_qp(*b, service_));
    for (const End* end : {a.get(), b.get()}) {
        ibv_qp_attr attr{};
        attr.port_num = 1;
        attr.qp_state = IBV_QPS_INIT;
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
        for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
            attr.qp_state = state;
            ASSERT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
        }
    }
    struct {
        ibv_flow_attr attr{};
        ibv_flow_spec_eth ethernet{};
    } rule;
    rule.attr.type = IBV_FLOW_ATTR_NORMAL;
    rule.attr.port = 1;
    rule.attr.size = sizeof rule;
    rule.attr.num_of_specs = 1;
    rule.ethernet.type = IBV_FLOW_SPEC_ETH;
    rule.ethernet.size = sizeof rule.ethernet;
    std::memset(rule.ethernet.mask.dst_mac, 0xFF, sizeof rule.ethernet.mask.dst_mac);
    mac_of(*b, rule.ethernet.val.dst_mac);
    flow_ = ibv_create_flow(b->qp, &rule.attr);
    ASSERT_NE(flow_, nullptr);
    // An Ethernet header of a type that is for experiments (IEEE 802).
    mac_of(*b, a->at(0));
    mac_of(*a, a->at(6));
    *a->at(12) = 0x88;
    *a->at(13) = 0xB5;
}

void ConnectedAs::address(Work& work) {
    if (service_ == Service::kUd) {
        work.wr.wr.ud = {a->ah, b->qp->qp_num, Connection{}.qkey};
    } else if (service_ == Service::kXrcIni) {
        work.wr.qp_type.xrc.remote_srqn = shared_queue;
    }
}

int ConnectedAs::post(Work work) {
    address(work);
    return post_as_it_is(work);
}

int ConnectedAs::post_as_it_is(const Work& work) {
    ibv_qp_ex* functions = ibv_qp_to_qp_ex(a->qp);
    return functions != nullptr ? post_by_function(functions, work) : post_to(a->qp, work);
}

}  // namespace conformance
