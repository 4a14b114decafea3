// <simverbs/connect.hpp>: any two queue pairs, on either link layer, as the options say.
#include "simverbs/connect.hpp"

#include "simverbs/gtest.hpp"

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

using simverbs::CompletesWith;
using simverbs::ConnectionOptions;

struct Fabric {
    const char* topology;
    const char* personality;
};

class ConnectOn : public simverbs::TwoHosts, public testing::WithParamInterface<Fabric> {
  protected:
    ConnectOn() : TwoHosts({GetParam().topology, GetParam().personality}) {}
};

TEST_P(ConnectOn, DataPasses) {
    h0.bytes[9] = 42;
    h0.write(h1, 16);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[9], 42);
}

INSTANTIATE_TEST_SUITE_P(Every, ConnectOn,
                         testing::Values(Fabric{"star:2", "spec"}, Fabric{"eth-star:2", "spec"},
                                         Fabric{"star:2", "connectx6"},
                                         Fabric{"eth-star:2,vlans=7", "connectx6"},
                                         Fabric{"eth-star:2", "rxe"}),
                         [](const auto& info) {
                             std::string name = info.param.topology;
                             std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                             return name + "_" + info.param.personality;
                         });

class Connect : public simverbs::TwoHosts {
  protected:
    Connect()
        : TwoHosts({}, {.mtu = IBV_MTU_256,
                        .timeout = 8,
                        .retries = 2,
                        .rnr_retries = 3,
                        .min_rnr_timer = 5,
                        .reads = 2,
                        .service_level = 0,
                        .first_psn = 77}) {}

    static ibv_qp* make(simverbs::TwoHostsEnd& end, ibv_qp_type type) {
        ibv_qp_init_attr init{};
        init.qp_type = type;
        init.send_cq = init.recv_cq = end.cq;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        return ibv_create_qp(end.pd, &init);
    }
};

TEST_F(Connect, AttributesAreThoseOfTheOptions) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(h0.qp, &attr, 0xFFFFFF, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_256);
    EXPECT_EQ(attr.timeout, 8);
    EXPECT_EQ(attr.retry_cnt, 2);
    EXPECT_EQ(attr.rnr_retry, 3);
    EXPECT_EQ(attr.min_rnr_timer, 5);
    EXPECT_EQ(attr.max_rd_atomic, 2);
    EXPECT_EQ(attr.max_dest_rd_atomic, 2);
    EXPECT_EQ(attr.sq_psn, 77U);
    EXPECT_EQ(attr.rq_psn, 77U);
    EXPECT_EQ(attr.dest_qp_num, h1.qp->qp_num);
}

TEST_F(Connect, OneThatFailedIsConnectedAgain) {
    simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.write(h1, 1);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_LT(simverbs::now(), std::chrono::milliseconds(13));  // three times 1 to 4 ms
    lost.take_back();
    simverbs::connect(*h0.qp, *h1.qp);
    h0.bytes[0] = 7;
    h0.write(h1, 1);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[0], 7);
}

TEST_F(Connect, UcAndUd) {
    for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
        ibv_qp* const one = make(h0, type);
        ibv_qp* const other = make(h1, type);
        ASSERT_NE(one, nullptr);
        ASSERT_NE(other, nullptr);
        simverbs::connect(*one, *other);
        EXPECT_EQ(one->state, IBV_QPS_RTS);
        EXPECT_EQ(other->state, IBV_QPS_RTS);
        simverbs::connect(*other, *one);  // from RTS, too
        EXPECT_EQ(ibv_destroy_qp(one), 0);
        EXPECT_EQ(ibv_destroy_qp(other), 0);
    }
}

// On InfiniBand a GID makes packets carry a global route header.
TEST_F(Connect, ByGid) {
    simverbs::connect(*h0.qp, *h1.qp, {.gid_index = 0});
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(h0.qp, &attr, IBV_QP_AV, &init), 0);
    EXPECT_EQ(attr.ah_attr.is_global, 1);
    h0.write(h1, 1);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
}

TEST_F(Connect, WhatIsRefusedIsThrown) {
    const auto wrong = [this](const ConnectionOptions& options) -> std::string {
        try {
            simverbs::connect(*h0.qp, *h1.qp, options);
        } catch (const simverbs::Error& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_THAT(wrong({.port = 9}), testing::HasSubstr("connect: ibv_query_port"));
    EXPECT_THAT(wrong({.gid_index = 200}), testing::HasSubstr("connect: no GID 200"));
    EXPECT_THAT(wrong({.retries = 8}),
                testing::ContainsRegex("to RTS: .*retry_cnt 8 is more than 7"));
    EXPECT_THAT(wrong({.timeout = 77}),
                testing::ContainsRegex("to RTS: .*timeout 77 is more than 31"));
    EXPECT_EQ(wrong({}), "nothing");
}

TEST_F(Connect, TypesThatDoNotFitAreRefused) {
    ibv_qp* const unreliable = make(h1, IBV_QPT_UC);
    ASSERT_NE(unreliable, nullptr);
    EXPECT_THROW(simverbs::connect(*h0.qp, *unreliable), simverbs::Error);
    EXPECT_EQ(ibv_destroy_qp(unreliable), 0);
}

}  // namespace
}  // namespace verbs_test
