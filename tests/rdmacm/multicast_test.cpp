// How ids join multicast groups: rdma_join_multicast_ex(3), rdma_leave_multicast(3).
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using simverbs::CompletesWith;
using simverbs::host_address;

constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

// An id with a UD queue pair and memory.
struct Member {
    rdma_cm_id* id = nullptr;
    ibv_mr* mr = nullptr;
    std::array<std::uint8_t, 256> bytes{};

    void make_queue_pair() {
        mr = rdma_reg_msgs(id, bytes.data(), bytes.size());
        ASSERT_NE(mr, nullptr) << std::strerror(errno);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_UD;
        init.sq_sig_all = 1;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
        ASSERT_EQ(rdma_post_recv(id, nullptr, bytes.data(), 128, mr), 0);
    }
    ~Member() { EXPECT_EQ(mr == nullptr ? 0 : rdma_dereg_mr(mr), 0); }
};

class Groups : public IdsOnBothLinkLayers {
  protected:
    Groups() {
        group.sin_family = AF_INET;
        inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
    }
    void make_member(Member& member, unsigned host) {
        member.id = make(RDMA_PS_UDP);
        sockaddr_in at = host_address(host, 0);
        ASSERT_EQ(rdma_bind_addr(member.id, generic(at)), 0) << std::strerror(errno);
        ASSERT_NO_FATAL_FAILURE(member.make_queue_pair());
    }
    rdma_cm_join_mc_attr_ex wish(std::uint32_t flags) {
        return {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                .join_flags = flags,
                .addr = generic(group)};
    }
    // "The join context is returned to the user through the private_data field".
    rdma_ud_param join(const Member& member, std::uint32_t flags) {
        rdma_cm_join_mc_attr_ex wanted = wish(flags);
        int context = 0;
        EXPECT_EQ(rdma_join_multicast_ex(member.id, &wanted, &context), 0) << std::strerror(errno);
        const Event event = next(RDMA_CM_EVENT_MULTICAST_JOIN);
        EXPECT_EQ(event.id, member.id);
        EXPECT_EQ(event.datagram.private_data, &context);
        EXPECT_EQ(event.datagram.qp_num, kMulticastQpn);
        return event.datagram;
    }
    // The queue key of the group is RDMA_UDP_QKEY, as rdma_post_ud_send has it.
    static void send(Member& member, rdma_ud_param& joined) {
        EXPECT_EQ(joined.qkey, static_cast<std::uint32_t>(RDMA_UDP_QKEY));
        ibv_ah* const to = ibv_create_ah(member.id->pd, &joined.ah_attr);
        ASSERT_NE(to, nullptr) << simverbs_last_error();
        ASSERT_EQ(rdma_post_ud_send(member.id, nullptr, member.bytes.data() + 128, 32, member.mr, 0,
                                    to, kMulticastQpn),
                  0);
        EXPECT_THAT(member.id->send_cq, CompletesWith(IBV_WC_SUCCESS));
        EXPECT_EQ(ibv_destroy_ah(to), 0);
    }

    sockaddr_in group{};
};

TEST_P(Groups, AreHeardByFullMembers) {
    std::array<Member, 2> members;
    for (unsigned host = 0; host < members.size(); ++host) {
        ASSERT_NO_FATAL_FAILURE(make_member(members.at(host), host));
    }
    join(members[0], RDMA_MC_JOIN_FLAG_FULLMEMBER);
    rdma_ud_param joined = join(members[1], RDMA_MC_JOIN_FLAG_FULLMEMBER);
    members[1].bytes[128] = 0x61;
    ASSERT_NO_FATAL_FAILURE(send(members[1], joined));
    EXPECT_THAT(members[0].id->recv_cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(members[0].bytes[kGrh], 0x61);
    for (Member& member : members) {
        EXPECT_EQ(rdma_leave_multicast(member.id, generic(group)), 0) << std::strerror(errno);
    }
}

// "When Send Only Full Member is used the QP will not be attached to the MCG."
TEST_P(Groups, AreOnlySentToBySendOnlyMembers) {
    std::array<Member, 2> members;
    for (unsigned host = 0; host < members.size(); ++host) {
        ASSERT_NO_FATAL_FAILURE(make_member(members.at(host), host));
    }
    rdma_ud_param heard = join(members[0], RDMA_MC_JOIN_FLAG_FULLMEMBER);
    rdma_ud_param joined = join(members[1], RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
    members[1].bytes[128] = 0x62;
    ASSERT_NO_FATAL_FAILURE(send(members[1], joined));
    EXPECT_THAT(members[0].id->recv_cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(members[0].bytes[kGrh], 0x62);
    ASSERT_NO_FATAL_FAILURE(send(members[0], heard));
    simverbs::advance(std::chrono::milliseconds(1));
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(members[1].id->recv_cq, 1, &wc), 0);
    for (Member& member : members) {
        EXPECT_EQ(rdma_leave_multicast(member.id, generic(group)), 0) << std::strerror(errno);
    }
}

// The errors of librdmacm's cma.c.
TEST_P(Groups, NeedAnAddressAndAFlag) {
    Member member;
    ASSERT_NO_FATAL_FAILURE(make_member(member, 0));
    const auto refusal = [&member](rdma_cm_join_mc_attr_ex wanted) {
        errno = 0;
        EXPECT_EQ(rdma_join_multicast_ex(member.id, &wanted, nullptr), -1);
        return errno;
    };
    rdma_cm_join_mc_attr_ex wanted = wish(RDMA_MC_JOIN_FLAG_FULLMEMBER);
    wanted.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
    EXPECT_EQ(refusal(wanted), ENOTSUP);
    wanted = wish(RDMA_MC_JOIN_FLAG_FULLMEMBER);
    wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
    EXPECT_EQ(refusal(wanted), EINVAL);
    wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    EXPECT_EQ(refusal(wanted), EINVAL);
    EXPECT_EQ(refusal(wish(RDMA_MC_JOIN_FLAG_RESERVED)), EINVAL);
    group.sin_family = AF_UNIX;
    EXPECT_EQ(refusal(wish(RDMA_MC_JOIN_FLAG_FULLMEMBER)), EINVAL);
}

TEST_P(Groups, AreLeftByWhoIsInThem) {
    Member member;
    ASSERT_NO_FATAL_FAILURE(make_member(member, 0));
    EXPECT_EQ(rdma_leave_multicast(member.id, generic(group)), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
    join(member, RDMA_MC_JOIN_FLAG_FULLMEMBER);
    EXPECT_EQ(rdma_leave_multicast(member.id, generic(group)), 0) << std::strerror(errno);
    EXPECT_EQ(rdma_leave_multicast(member.id, generic(group)), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
}

// Groups are for datagrams (rdma_join_multicast() of Linux' cma.c).
TEST_P(Groups, AreNotForConnections) {
    rdma_cm_id* const id = make();
    sockaddr_in at = host_address(0, 0);
    ASSERT_EQ(rdma_bind_addr(id, generic(at)), 0);
    rdma_cm_join_mc_attr_ex wanted = wish(RDMA_MC_JOIN_FLAG_FULLMEMBER);
    EXPECT_EQ(rdma_join_multicast_ex(id, &wanted, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Groups, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
