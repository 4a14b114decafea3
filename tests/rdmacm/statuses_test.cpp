// Statuses of events: a negative errno, the reason of a REJ, or the status of a SIDR_REP, as
// cma_ib_handler() and cma_sidr_rep_handler() of Linux' cma.c report them. Reasons and statuses are
// those of the IBA, 12.6.7.2 and 12.11.2.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using simverbs::host_address;

constexpr int kConsumerDefined = 28;    // IB_CM_REJ_CONSUMER_DEFINED
constexpr int kSidrUnsupported = 1;     // IB_SIDR_UNSUPPORTED: nobody listens
constexpr const char* kLink = "h1-s0";  // of the client

class Statuses : public IdsOnBothLinkLayers {
  protected:
    // Connects two ids without queue pairs; returns that of the server.
    rdma_cm_id* connect(rdma_cm_id* client) {
        const Event asked = request(client);
        rdma_conn_param given = parameters();
        EXPECT_EQ(rdma_accept(asked.id, &given), 0) << std::strerror(errno);
        EXPECT_EQ(next(RDMA_CM_EVENT_CONNECT_RESPONSE).id, client);
        EXPECT_EQ(rdma_establish(client), 0) << std::strerror(errno);
        EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, asked.id);
        return asked.id;
    }
};

TEST_P(Statuses, AreZeroWhereNothingFailed) {
    listen();
    rdma_cm_id* const client = resolve();
    rdma_cm_id* const server = connect(client);
    ASSERT_EQ(rdma_disconnect(client), 0) << std::strerror(errno);
    Event event = next(RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(event.id, server);
    EXPECT_EQ(event.status, 0);
    ASSERT_EQ(rdma_disconnect(server), 0) << std::strerror(errno);
    event = next(RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(event.id, client);
    EXPECT_EQ(event.status, 0);
    EXPECT_EQ(next(RDMA_CM_EVENT_TIMEWAIT_EXIT).status, 0);
    EXPECT_EQ(next(RDMA_CM_EVENT_TIMEWAIT_EXIT).status, 0);
}

TEST_P(Statuses, OfARejectionIsItsReason) {
    listen();
    rdma_cm_id* const client = resolve();
    const Event asked = request(client);
    ASSERT_EQ(rdma_reject(asked.id, nullptr, 0), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_REJECTED).status, kConsumerDefined);
}

// A request that its id ends with is rejected, too (ib_destroy_cm_id() of Linux' cm.c).
TEST_P(Statuses, OfARequestThatTheServerDestroyed) {
    listen();
    rdma_cm_id* const client = resolve();
    destroy(request(client).id);
    const Event event = next(RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(event.id, client);
    EXPECT_EQ(event.status, kConsumerDefined);
}

// Nobody hears of it before the server answers: "the accept will just fail later", as
// ucma_event_handler() of Linux' ucma.c says.
TEST_P(Statuses, OfARequestThatTheClientDestroyed) {
    listen();
    rdma_cm_id* const client = resolve();
    const Event asked = request(client);
    destroy(client);
    simverbs::advance(std::chrono::milliseconds(1));
    rdma_conn_param given = parameters();
    EXPECT_EQ(rdma_accept(asked.id, &given), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_P(Statuses, OfAPeerThatIsSilent) {
    rdma_cm_id* const client = resolve();
    ASSERT_EQ(simverbs_set_link(kLink, 0), 0) << simverbs_last_error();
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_connect(client, &given), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
}

// The connection is over all the same.
TEST_P(Statuses, OfADisconnectionThatNobodyAnswers) {
    listen();
    rdma_cm_id* const client = resolve();
    connect(client);
    ASSERT_EQ(simverbs_set_link(kLink, 0), 0) << simverbs_last_error();
    ASSERT_EQ(rdma_disconnect(client), 0) << std::strerror(errno);
    const Event event = next(RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(event.id, client);
    EXPECT_EQ(event.status, -ETIMEDOUT);
}

TEST_P(Statuses, OfADatagramServiceThatNobodyOffers) {
    rdma_cm_id* const client = resolve(RDMA_PS_UDP);
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_connect(client, &given), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_UNREACHABLE).status, kSidrUnsupported);
}

TEST_P(Statuses, OfADatagramServiceThatIsSilent) {
    rdma_cm_id* const client = resolve(RDMA_PS_UDP);
    ASSERT_EQ(simverbs_set_link(kLink, 0), 0) << simverbs_last_error();
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_connect(client, &given), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Statuses, testing::ValuesIn(kBothLinkLayers));

// Only InfiniBand asks anybody for a path.
class OnInfiniband : public Ids {
  protected:
    OnInfiniband() : Ids("star:2") {}
};

TEST_F(OnInfiniband, OfAPathQueryThatNobodyAnswers) {
    rdma_cm_id* const client = make();
    ASSERT_NO_FATAL_FAILURE(resolve_address(client));
    ASSERT_EQ(simverbs_set_link(kLink, 0), 0) << simverbs_last_error();
    const auto begun = simverbs::now();
    ASSERT_EQ(rdma_resolve_route(client, kTimeoutMs), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_ROUTE_ERROR).status, -ETIMEDOUT);
    EXPECT_GE(simverbs::now() - begun, std::chrono::milliseconds(kTimeoutMs));
}

}  // namespace
}  // namespace rdmacm_test
