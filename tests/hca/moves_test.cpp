// Moves that nothing in the model brings about: a datagram and a raw packet are read as they are
// posted, so none can fail later, while their queue pair drains. The row is there for devices that
// take their time; what it says is what happens.
#include <gtest/gtest.h>

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

void expect_send_error_in_sqd(Pair& pair, Service service, QpAttrs init, QpAttrs rts) {
    QueuePairHandle qp(pair.a.host,
                       pair.a.host.must(CreateQp{.pd = pair.a.pd,
                                                 .send_cq = pair.a.send_cq.handle(),
                                                 .receive_cq = pair.a.receive_cq.handle(),
                                                 .service = service,
                                                 .capacity = {.send_requests = 4}}));
    const QpValues values = init_values(pair.options());
    ASSERT_EQ(qp.modify_to(QpState::kInit, init, values), 0);
    ASSERT_EQ(qp.modify_to(QpState::kRtr), 0);
    ASSERT_EQ(qp.modify_to(QpState::kRts, rts, values), 0);
    ASSERT_EQ(qp.modify_to(QpState::kSqd), 0);
    pair.a.host.hca().find_qp(qp.qpn())->fail(QpTrigger::kSendError, FaultCause::kGatherRange);
    EXPECT_EQ(qp.state(), QpState::kSqe);
}

TEST(Moves, ASendErrorWhileADatagramQueueDrainsLeadsToSqe) {
    Pair pair;
    expect_send_error_in_sqd(pair, Service::kUd,
                             QpAttrs(QpAttr::kPkeyIndex) | QpAttr::kPort | QpAttr::kQkey,
                             QpAttr::kSqPsn);
}

TEST(Moves, ASendErrorWhileARawPacketQueueDrainsLeadsToSqe) {
    Pair pair({.topology = "eth-pair"});
    expect_send_error_in_sqd(pair, Service::kRawPacket, QpAttr::kPort, {});
}

}  // namespace
}  // namespace simverbs::test
