// Shared receive queues of ids: rdma_create_srq(3), rdma_destroy_srq(3), and rdma_create_srq_ex,
// which has no page (librdmacm's cma.c).
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using simverbs::CompletesWith;

class SharedReceiveQueues : public IdsOnBothLinkLayers {
  protected:
    static ibv_qp_init_attr queue_pair() {
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        return init;
    }
    static ibv_srq_init_attr_ex extended(ibv_srq_type type) {
        ibv_srq_init_attr_ex init{};
        init.attr = {.max_wr = 10, .max_sge = 1, .srq_limit = 0};
        init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
        init.srq_type = type;
        return init;
    }
    rdma_cm_id* on_a_device() {
        rdma_cm_id* const id = make();
        resolve_address(id);
        return id;
    }
};

// "The actual capabilities [...] of the created SRQ will be returned", and receives that
// rdma_post_recv posts are the queue's from then on.
TEST_P(SharedReceiveQueues, ReceiveForTheQueuePair) {
    std::array<std::uint8_t, 128> bytes{};
    listen();
    rdma_cm_id* const client = resolve();
    ibv_qp_init_attr init = queue_pair();
    ASSERT_EQ(rdma_create_qp(client, nullptr, &init), 0) << std::strerror(errno);
    const Event asked = request(client);
    EXPECT_EQ(asked.connection.srq, 0);
    rdma_cm_id* const server = asked.id;
    ibv_pd* const domain = server->pd;
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = 10, .max_sge = 1, .srq_limit = 0};
    ASSERT_EQ(rdma_create_srq(server, nullptr, &attributes), 0) << std::strerror(errno);
    ASSERT_NE(server->srq, nullptr);
    EXPECT_EQ(server->srq->pd, domain);
    EXPECT_GE(attributes.attr.max_wr, 10U);
    ibv_mr* const heard = rdma_reg_msgs(server, bytes.data() + 64, 64);
    // Before there is a queue pair: "the SRQ will be ready to handle posting of receives".
    ASSERT_EQ(rdma_post_recv(server, server, bytes.data() + 64, 64, heard), 0);
    init = queue_pair();
    ASSERT_EQ(rdma_create_qp(server, nullptr, &init), 0) << std::strerror(errno);
    EXPECT_EQ(server->qp->srq, server->srq);
    ASSERT_EQ(rdma_accept(server, nullptr), 0) << std::strerror(errno);
    next(RDMA_CM_EVENT_ESTABLISHED);
    next(RDMA_CM_EVENT_ESTABLISHED);
    bytes[5] = 0x3C;
    ibv_mr* const said = rdma_reg_msgs(client, bytes.data(), 64);
    ASSERT_EQ(rdma_post_send(client, nullptr, bytes.data(), 64, said, 0), 0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(server, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, reinterpret_cast<std::uintptr_t>(server));
    EXPECT_EQ(bytes[64 + 5], 0x3C);
    EXPECT_THAT(client->send_cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(rdma_dereg_mr(said), 0);
    EXPECT_EQ(rdma_dereg_mr(heard), 0);
    rdma_destroy_qp(server);
    rdma_destroy_srq(server);
    EXPECT_EQ(server->srq, nullptr);
}

// rdma_connect(3) and rdma_accept(3): what `srq` says is the queue pair's own answer.
TEST_P(SharedReceiveQueues, AreNamedToThePeer) {
    listen();
    rdma_cm_id* const client = resolve();
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
    ASSERT_EQ(rdma_create_srq(client, nullptr, &attributes), 0) << std::strerror(errno);
    ibv_qp_init_attr init = queue_pair();
    ASSERT_EQ(rdma_create_qp(client, nullptr, &init), 0) << std::strerror(errno);
    const Event asked = request(client);
    EXPECT_EQ(asked.connection.srq, 1);
    destroy(client);
    destroy(asked.id);
    rdma_cm_id* const other = resolve();
    const Event next_asked = request(other);
    rdma_conn_param given = parameters();
    given.srq = 1;
    ASSERT_EQ(rdma_accept(next_asked.id, &given), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_CONNECT_RESPONSE).connection.srq, 1);
}

TEST_P(SharedReceiveQueues, TakeADomainOfTheProgram) {
    rdma_cm_id* const id = on_a_device();
    ibv_pd* const domain = ibv_alloc_pd(id->verbs);
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
    ASSERT_EQ(rdma_create_srq(id, domain, &attributes), 0) << std::strerror(errno);
    EXPECT_EQ(id->srq->pd, domain);
    rdma_destroy_srq(id);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST_P(SharedReceiveQueues, OfTheExtendedCallNeedAType) {
    rdma_cm_id* const id = on_a_device();
    ibv_srq_init_attr_ex init = extended(IBV_SRQT_BASIC);
    init.comp_mask = 0;
    EXPECT_EQ(rdma_create_srq_ex(id, &init), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(id->srq, nullptr);
    init = extended(IBV_SRQT_BASIC);
    ASSERT_EQ(rdma_create_srq_ex(id, &init), 0) << std::strerror(errno);
    EXPECT_EQ(id->srq->pd, id->pd);
    EXPECT_EQ(init.pd, id->pd);
    EXPECT_EQ(id->recv_cq, nullptr);  // only an XRC SRQ has a completion queue
    rdma_destroy_srq(id);
}

// "If a completion queue is not specified for an XRC SRQ, then a CQ will be allocated by the
// rdma_cm for the SRQ, along with corresponding completion channels".
TEST_P(SharedReceiveQueues, OfXrcHaveADomainAndACompletionQueue) {
    rdma_cm_id* const id = on_a_device();
    ibv_srq_init_attr_ex init = extended(IBV_SRQT_XRC);
    ASSERT_EQ(rdma_create_srq_ex(id, &init), 0) << std::strerror(errno);
    EXPECT_NE(init.xrcd, nullptr);
    EXPECT_EQ(init.cq, id->recv_cq);
    EXPECT_EQ(id->recv_cq->channel, id->recv_cq_channel);
    EXPECT_GE(id->recv_cq->cqe, 10);
    std::uint32_t number = 0;
    ASSERT_EQ(ibv_get_srq_num(id->srq, &number), 0);
    EXPECT_NE(number, 0U);
    rdma_destroy_srq(id);
    EXPECT_EQ(id->srq, nullptr);
    EXPECT_EQ(id->recv_cq, nullptr);
    EXPECT_EQ(id->recv_cq_channel, nullptr);
}

TEST_P(SharedReceiveQueues, HaveLimitsOfTheDevice) {
    rdma_cm_id* const id = on_a_device();
    ibv_device_attr device{};
    ASSERT_EQ(ibv_query_device(id->verbs, &device), 0);
    ibv_srq_init_attr attributes{};
    attributes.attr = {
        .max_wr = static_cast<std::uint32_t>(device.max_srq_wr) + 1, .max_sge = 1, .srq_limit = 0};
    EXPECT_EQ(rdma_create_srq(id, nullptr, &attributes), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(id->srq, nullptr);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, SharedReceiveQueues, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
