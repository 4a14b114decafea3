#include "tests/conformance/every_service.hpp"

#include <string_view>

#include <fcntl.h>

namespace conformance {
namespace {

constexpr std::uint32_t kSharedReceives = 8;

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
    if (service == Service::kXrcTgt) {
        init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        init.xrcd = xrc->domain;
        return ibv_create_qp_ex(end.context, &init);
    }
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = end.pd;
    init.send_cq = end.cq;
    init.cap = Connection{}.cap;
    if (service == Service::kXrcIni) {
        init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    } else {
        init.recv_cq = end.cq;
    }
    if (operations != 0) {
        init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.send_ops_flags = operations;
    }
    return ibv_create_qp_ex(end.context, &init);
}

}  // namespace conformance
