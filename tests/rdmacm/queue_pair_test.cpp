// Queue pairs of ids: those that rdma_create_qp_ex makes, and those that programs make and modify
// themselves, with rdma_init_qp_attr, rdma_establish and rdma_notify.
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

ibv_qp_init_attr_ex extended() {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1};
    return init;
}

using QueuePairs = IdsOnBothLinkLayers;

// rdma_create_qp(3): "If a protection domain is not given [...] then the rdma_cm_id will be created
// using a default protection domain", and completion queues that are not given are made.
TEST_P(QueuePairs, HaveADomainAndQueuesOfTheirOwn) {
    rdma_cm_id* const id = make();
    ASSERT_NO_FATAL_FAILURE(resolve_address(id));
    ibv_pd* const domain = id->pd;
    ASSERT_NE(domain, nullptr);
    ibv_qp_init_attr_ex init = extended();
    ASSERT_EQ(rdma_create_qp_ex(id, &init), 0) << std::strerror(errno);
    EXPECT_EQ(id->qp->pd, domain);
    EXPECT_EQ(init.pd, domain);
    EXPECT_EQ(id->qp->send_cq, id->send_cq);
    EXPECT_EQ(id->qp->recv_cq, id->recv_cq);
    EXPECT_NE(id->send_cq, id->recv_cq);
    EXPECT_GE(id->send_cq->cqe, 4);
    EXPECT_GE(id->recv_cq->cqe, 8);
    EXPECT_EQ(id->send_cq->channel, id->send_cq_channel);
    EXPECT_EQ(id->recv_cq->channel, id->recv_cq_channel);
    EXPECT_EQ(id->send_cq->cq_context, id);
    EXPECT_EQ(id->qp->state, IBV_QPS_INIT);
    rdma_destroy_qp(id);
    EXPECT_EQ(id->qp, nullptr);
    EXPECT_EQ(id->recv_cq, nullptr);
    EXPECT_EQ(id->recv_cq_channel, nullptr);
}

TEST_P(QueuePairs, TakeADomainAndQueuesOfTheProgram) {
    rdma_cm_id* const id = make();
    ASSERT_NO_FATAL_FAILURE(resolve_address(id));
    ibv_pd* const domain = ibv_alloc_pd(id->verbs);
    ibv_cq* const cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    ibv_qp_init_attr_ex init = extended();
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = domain;
    init.send_cq = init.recv_cq = cq;
    ASSERT_EQ(rdma_create_qp_ex(id, &init), 0) << std::strerror(errno);
    EXPECT_EQ(id->qp->pd, domain);
    EXPECT_EQ(id->pd, domain);
    EXPECT_EQ(id->qp->recv_cq, cq);
    EXPECT_EQ(id->recv_cq, nullptr);
    rdma_destroy_qp(id);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST_P(QueuePairs, AreOnePerIdAndOfItsDevice) {
    rdma_cm_id* const id = make();
    rdma_cm_id* const other = make();
    ASSERT_NO_FATAL_FAILURE(resolve_address(id));
    sockaddr_in at = simverbs::host_address(0, 0);
    ASSERT_EQ(rdma_bind_addr(other, generic(at)), 0);
    ASSERT_NE(id->verbs, other->verbs);
    ibv_qp_init_attr_ex init = extended();
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = other->pd;
    EXPECT_EQ(rdma_create_qp_ex(id, &init), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(id->qp, nullptr);
    init = extended();
    ASSERT_EQ(rdma_create_qp_ex(id, &init), 0) << std::strerror(errno);
    init = extended();
    EXPECT_EQ(rdma_create_qp_ex(id, &init), -1);
    EXPECT_EQ(errno, EINVAL);
}

// Sends by ibv_wr_*, which needs a queue pair of the extended call.
TEST_P(QueuePairs, SendByTheExtendedInterface) {
    std::array<std::uint8_t, 128> bytes{};
    listen();
    rdma_cm_id* const client = resolve();
    ibv_qp_init_attr_ex init = extended();
    init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_SEND;
    ASSERT_EQ(rdma_create_qp_ex(client, &init), 0) << std::strerror(errno);
    rdma_cm_id* const server = request(client).id;
    init = extended();
    ASSERT_EQ(rdma_create_qp_ex(server, &init), 0) << std::strerror(errno);
    ibv_mr* const heard = rdma_reg_msgs(server, bytes.data() + 64, 64);
    ASSERT_EQ(rdma_post_recv(server, nullptr, bytes.data() + 64, 64, heard), 0);
    ASSERT_EQ(rdma_accept(server, nullptr), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, client);
    EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, server);
    ibv_mr* const said = rdma_reg_msgs(client, bytes.data(), 64);
    bytes[3] = 0x77;
    ibv_qp_ex* const sender = ibv_qp_to_qp_ex(client->qp);
    ASSERT_NE(sender, nullptr);
    ibv_wr_start(sender);
    sender->wr_flags = 0;
    ibv_wr_send(sender);
    ibv_wr_set_sge(sender, said->lkey, reinterpret_cast<std::uintptr_t>(bytes.data()), 64);
    ASSERT_EQ(ibv_wr_complete(sender), 0) << simverbs_last_error();
    EXPECT_THAT(server->recv_cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client->send_cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(bytes[64 + 3], 0x77);
    EXPECT_EQ(rdma_dereg_mr(said), 0);
    EXPECT_EQ(rdma_dereg_mr(heard), 0);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, QueuePairs, testing::ValuesIn(kBothLinkLayers));

// A queue pair that the id knows by its number only.
struct ExternalQueuePair {
    rdma_cm_id* id = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_mr* mr = nullptr;
    std::array<std::uint8_t, 64> bytes{};

    void create(rdma_cm_id* of) {
        id = of;
        cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
        mr = ibv_reg_mr(id->pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = cq;
        init.sq_sig_all = 1;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        qp = ibv_create_qp(id->pd, &init);
        ASSERT_NE(qp, nullptr) << std::strerror(errno);
    }
    // Asks for the attributes of a state and modifies the queue pair with them.
    ibv_qp_attr move(ibv_qp_state to, int* mask) {
        ibv_qp_attr attributes{};
        attributes.qp_state = to;
        EXPECT_EQ(rdma_init_qp_attr(id, &attributes, mask), 0) << std::strerror(errno);
        EXPECT_EQ(ibv_modify_qp(qp, &attributes, *mask), 0) << simverbs_last_error();
        return attributes;
    }
    // To RTR, with a receive posted.
    void begin_receiving() {
        int mask = 0;
        move(IBV_QPS_INIT, &mask);
        receive();
        move(IBV_QPS_RTR, &mask);
    }
    void begin_sending() {
        int mask = 0;
        move(IBV_QPS_RTS, &mask);
    }
    void receive() {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), 64, mr->lkey};
        ibv_recv_wr work{};
        work.sg_list = &piece;
        work.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &work, &bad), 0) << simverbs_last_error();
    }
    void send() {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), 64, mr->lkey};
        ibv_send_wr work{};
        work.opcode = IBV_WR_SEND;
        work.sg_list = &piece;
        work.num_sge = 1;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(qp, &work, &bad), 0) << simverbs_last_error();
    }
    ~ExternalQueuePair() {
        EXPECT_EQ(qp == nullptr ? 0 : ibv_destroy_qp(qp), 0);
        EXPECT_EQ(mr == nullptr ? 0 : ibv_dereg_mr(mr), 0);
        EXPECT_EQ(cq == nullptr ? 0 : ibv_destroy_cq(cq), 0);
    }
};

class ExternalQueuePairs : public IdsOnBothLinkLayers {
  protected:
    // Until the client has heard the answer; the server's queue pair is in RTR then.
    void begin(ExternalQueuePair& client, ExternalQueuePair& server) {
        listen();
        ASSERT_NO_FATAL_FAILURE(client.create(resolve()));
        rdma_conn_param given = parameters();
        given.qp_num = client.qp->qp_num;
        const Event asked = request(client.id, given);
        EXPECT_EQ(asked.connection.qp_num, client.qp->qp_num);
        ASSERT_NO_FATAL_FAILURE(server.create(asked.id));
        server.begin_receiving();
        given.qp_num = server.qp->qp_num;
        ASSERT_EQ(rdma_accept(asked.id, &given), 0) << std::strerror(errno);
        const Event answer = next(RDMA_CM_EVENT_CONNECT_RESPONSE);
        EXPECT_EQ(answer.connection.qp_num, server.qp->qp_num);
    }
};

// rdma_establish(3).
TEST_P(ExternalQueuePairs, AreEstablishedByTheClient) {
    ExternalQueuePair client;
    ExternalQueuePair server;
    ASSERT_NO_FATAL_FAILURE(begin(client, server));
    client.begin_receiving();
    client.begin_sending();
    ASSERT_EQ(rdma_establish(client.id), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, server.id);
    client.bytes.fill(0x29);
    client.send();
    EXPECT_THAT(server.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(server.bytes[63], 0x29);
}

// Only a queue pair in RTR says that a message has come (IBA 1.4, 11.6.3.1). rdma_notify(3): "it's
// possible to receive data on a QP that is not yet considered connected. This routine forces the
// connection into an established state".
TEST_P(ExternalQueuePairs, AreEstablishedByAMessage) {
    ExternalQueuePair client;
    ExternalQueuePair server;
    ASSERT_NO_FATAL_FAILURE(begin(client, server));
    client.begin_receiving();
    client.begin_sending();
    client.send();
    EXPECT_THAT(server.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(client.cq, CompletesWith(IBV_WC_SUCCESS));
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(server.id->verbs, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
    EXPECT_EQ(event.element.qp, server.qp);
    ASSERT_EQ(rdma_notify(server.id, event.event_type), 0) << std::strerror(errno);
    ibv_ack_async_event(&event);
    EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, server.id);
    EXPECT_EQ(rdma_notify(server.id, IBV_EVENT_COMM_EST), -1);
    EXPECT_EQ(errno, EISCONN);
    // The answer of the client, which comes now, tells nobody anything.
    ASSERT_EQ(rdma_establish(client.id), 0) << std::strerror(errno);
    ASSERT_EQ(rdma_disconnect(client.id), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_DISCONNECTED).id, server.id);
}

TEST_P(ExternalQueuePairs, AreNotifiedOfFewEvents) {
    rdma_cm_id* const client = resolve();
    EXPECT_EQ(rdma_notify(client, IBV_EVENT_COMM_EST), -1);  // it has no connection
    EXPECT_EQ(errno, EINVAL);
    listen();
    const Event asked = request(client);
    EXPECT_EQ(rdma_notify(asked.id, IBV_EVENT_QP_LAST_WQE_REACHED), -1);
    EXPECT_EQ(errno, EINVAL);
}

// cm_init_qp_init_attr(), cm_init_qp_rtr_attr() and cm_init_qp_rts_attr() of Linux' cm.c.
TEST_P(ExternalQueuePairs, HaveTheAttributesOfTheConnection) {
    ExternalQueuePair client;
    ExternalQueuePair server;
    ASSERT_NO_FATAL_FAILURE(begin(client, server));
    int mask = 0;
    ibv_qp_attr attributes = client.move(IBV_QPS_INIT, &mask);
    EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    EXPECT_EQ(attributes.port_num, client.id->port_num);
    EXPECT_EQ(attributes.qp_access_flags,
              static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC));
    attributes = client.move(IBV_QPS_RTR, &mask);
    EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    EXPECT_EQ(attributes.dest_qp_num, server.qp->qp_num);
    EXPECT_EQ(attributes.path_mtu, client.id->route.path_rec->mtu);
    EXPECT_EQ(attributes.max_dest_rd_atomic, 1);
    EXPECT_EQ(attributes.min_rnr_timer, 0);  // 655.36 ms
    EXPECT_EQ(attributes.ah_attr.is_global, is_ethernet() ? 1 : 0);
    EXPECT_EQ(attributes.ah_attr.dlid,
              is_ethernet() ? 0 : be16toh(client.id->route.path_rec->dlid));
    attributes = client.move(IBV_QPS_RTS, &mask);
    EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    EXPECT_EQ(attributes.retry_cnt, 7);
    EXPECT_EQ(attributes.rnr_retry, 7);
    EXPECT_EQ(attributes.max_rd_atomic, 1);
    // The client sends first what the server expects.
    ibv_qp_attr own{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(server.qp, &own, IBV_QP_RQ_PSN, &init), 0);
    EXPECT_EQ(own.rq_psn, attributes.sq_psn);
}

TEST_P(ExternalQueuePairs, HaveNoAttributesOfAStateThatIsNone) {
    rdma_cm_id* const client = resolve();
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = static_cast<ibv_qp_state>(IBV_QPS_ERR + 1);
    EXPECT_EQ(rdma_init_qp_attr(client, &attributes, &mask), -1);
    EXPECT_EQ(errno, EINVAL);
    attributes.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(rdma_init_qp_attr(make(), &attributes, &mask), -1);  // on no device
    EXPECT_EQ(errno, EINVAL);
}

// rdma_establish(3): not "on an rdma_cm_id on which a QP has been created".
TEST_P(ExternalQueuePairs, AreNotThoseOfTheId) {
    rdma_cm_id* const client = resolve();
    EXPECT_EQ(rdma_establish(client), -1);  // nothing has been answered
    EXPECT_EQ(errno, EINVAL);
    ibv_qp_init_attr_ex init = extended();
    ASSERT_EQ(rdma_create_qp_ex(client, &init), 0) << std::strerror(errno);
    EXPECT_EQ(rdma_establish(client), -1);
    EXPECT_EQ(errno, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, ExternalQueuePairs, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
