// Numbers that wrap early, and keys in a random order.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kLowBits = 0xFFFF;
constexpr std::uint32_t kPsns = 1U << 24;
constexpr std::uint32_t kNinePackets = 9 * 1024;

class Numbering : public TwoHosts {
  protected:
    // The PSNs of all packets from now on.
    void watch_psns() {
        const auto note = [](const simverbs_record* record, void* argument) {
            for (std::size_t i = 0; i < record->field_count; ++i) {
                if (std::strcmp(record->fields[i].name, "psn") == 0) {
                    static_cast<std::set<std::uint64_t>*>(argument)->insert(
                        record->fields[i].number);
                }
            }
        };
        ASSERT_EQ(simverbs_trace_callback(note, &psns), 0);
    }
    void TearDown() override {
        EXPECT_EQ(simverbs_trace_callback(nullptr, nullptr), 0);
        TwoHosts::TearDown();
    }
    ibv_qp* make_qp() {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = a->cq;
        init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
        init.qp_type = IBV_QPT_RC;
        return ibv_create_qp(a->pd, &init);
    }
    // Keys of eight regions of a fresh world.
    std::vector<std::uint32_t> keys(simverbs_keys order, std::uint64_t seed) {
        a.reset();
        b.reset();
        EXPECT_EQ(simverbs_restart(), 0);
        EXPECT_EQ(simverbs_set_keys(order), 0);
        EXPECT_EQ(simverbs_set_seed(seed), 0);
        connect();
        std::vector<std::uint32_t> all;
        std::vector<ibv_mr*> regions;
        for (int i = 0; i < 8; ++i) {
            regions.push_back(ibv_reg_mr(a->pd, a->at(0), 4096, kAllAccess));
            all.push_back(regions.back()->lkey);
            EXPECT_NE(regions.back()->lkey, regions.back()->rkey);
        }
        for (ibv_mr* mr : regions) {
            EXPECT_EQ(ibv_dereg_mr(mr), 0);
        }
        return all;
    }

    std::set<std::uint64_t> psns;
};

TEST_F(Numbering, AWriteAndAReadCrossTheWrapOfThePsn) {
    // The tests begin at kPsn, which is the last but three in packets.
    ASSERT_EQ(simverbs_set_first_psn(kPsns - 3 - kPsn), 0);
    connect();
    watch_psns();
    std::fill_n(a->at(0), kNinePackets, std::uint8_t{0x3C});
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                  .from(a->range(0, kNinePackets))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(0), b->at(0), kNinePackets), 0);
    EXPECT_TRUE(psns.contains(kPsns - 3));
    EXPECT_TRUE(psns.contains(kPsns - 1));
    EXPECT_TRUE(psns.contains(0));
    EXPECT_TRUE(psns.contains(5));
    EXPECT_EQ(a->query().sq_psn, kPsn + 9) << "the program's own numbers";
    EXPECT_EQ(b->query().rq_psn, kPsn + 9);
    expect_works();
}

TEST_F(Numbering, WhatIsLostAtTheWrapIsSentAgain) {
    ASSERT_EQ(simverbs_set_first_psn(kPsns - 3 - kPsn), 0);
    connect();
    std::fill_n(b->at(0), kNinePackets, std::uint8_t{0x3C});
    ASSERT_EQ(simverbs_drop_nth("h1-s0", "h1", 4, nullptr), 0);  // PSN 0 of the response
    ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                  .into(a->range(0, kNinePackets))
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(0), b->at(0), kNinePackets), 0);
    expect_works();
}

TEST_F(Numbering, APsnIsTheProgramsOwnFromTheBeginning) {
    ASSERT_EQ(simverbs_set_first_psn(0xFFFFF0), 0);
    connect();
    EXPECT_EQ(a->query().sq_psn, kPsn);
    EXPECT_EQ(a->query().rq_psn, kPsn);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(a->query().sq_psn, 0U);
    EXPECT_EQ(a->query().rq_psn, 0U);
}

TEST_F(Numbering, QueuePairNumbersWrapAndWorkOnTheOtherSide) {
    ASSERT_EQ(simverbs_set_first_qpn(kLowBits), 0);
    connect();
    EXPECT_EQ(a->qp->qp_num & kLowBits, kLowBits);
    const std::uint32_t block = a->qp->qp_num & ~kLowBits;
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = make_qp();
    ASSERT_NE(a->qp, nullptr);
    EXPECT_EQ(a->qp->qp_num, block) << "behind the last comes 0";
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    expect_works();
}

TEST_F(Numbering, DevicesBeginWithDifferentNumbersAndKeys) {
    connect();
    EXPECT_EQ(b->qp->qp_num, a->qp->qp_num + 0x100);
    EXPECT_NE(a->mr->lkey, b->mr->lkey);
    ASSERT_NE(a->mr->rkey, b->mr->rkey);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(b->address(0), a->mr->rkey).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR) << "its own key names nothing at its peer";
}

TEST_F(Numbering, QueuePairNumbersInUseAreSkipped) {
    ASSERT_EQ(simverbs_set_first_qpn(kLowBits - 1), 0);
    connect();
    const std::uint32_t in_use = a->qp->qp_num;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < kLowBits; ++i) {  // all the others
        ibv_qp* qp = make_qp();
        ASSERT_NE(qp, nullptr);
        last = qp->qp_num;
        ASSERT_NE(last, in_use);
        ASSERT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(last, in_use - 1);
    ibv_qp* next = make_qp();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->qp_num, in_use + 1);
    EXPECT_EQ(ibv_destroy_qp(next), 0);
    expect_works();
}

TEST_F(Numbering, KeysRise) {
    const std::vector<std::uint32_t> some = keys(SIMVERBS_KEYS_SEQUENTIAL, 1);
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
    EXPECT_EQ(keys(SIMVERBS_KEYS_SEQUENTIAL, 2), some) << "whatever the seed";
}

TEST_F(Numbering, KeysAreRandomByTheSeed) {
    const std::vector<std::uint32_t> some = keys(SIMVERBS_KEYS_RANDOM, 1);
    EXPECT_EQ(keys(SIMVERBS_KEYS_RANDOM, 1), some);
    EXPECT_NE(keys(SIMVERBS_KEYS_RANDOM, 2), some);
    EXPECT_FALSE(std::is_sorted(some.begin(), some.end()));
    EXPECT_EQ(std::set<std::uint32_t>(some.begin(), some.end()).size(), some.size());
    EXPECT_NE(a->mr->lkey, b->mr->lkey) << "each host draws its own";
    expect_works();
}

TEST_F(Numbering, WhatMakesNoSenseIsRefused) {
    EXPECT_EQ(simverbs_set_first_psn(kPsns), EINVAL);
    EXPECT_NE(std::strstr(simverbs_last_error(), "0 to 16777215"), nullptr);
    EXPECT_EQ(simverbs_set_first_qpn(kLowBits + 1), EINVAL);
    EXPECT_NE(std::strstr(simverbs_last_error(), "0 to 65535"), nullptr);
    EXPECT_EQ(simverbs_set_keys(static_cast<simverbs_keys>(2)), EINVAL);
    EXPECT_NE(std::strstr(simverbs_last_error(), "SIMVERBS_KEYS_RANDOM"), nullptr);
    connect();
    EXPECT_EQ(simverbs_set_first_psn(1), EBUSY);
    EXPECT_EQ(simverbs_set_first_qpn(1), EBUSY);
    EXPECT_EQ(simverbs_set_keys(SIMVERBS_KEYS_RANDOM), EBUSY);
}

}  // namespace
}  // namespace verbs_test
