// How much private data each message takes, and how it arrives. rdma_connect(3) and rdma_accept(3)
// give the limits of requests and replies; those of rejections are IB_CM_REJ_PRIVATE_DATA_SIZE and
// IB_CM_SIDR_REP_PRIVATE_DATA_SIZE of Linux (include/rdma/ib_cm.h). "The actual amount of data
// transferred to the remote side [...] may be larger than that requested": it fills its field.
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

using testing::ElementsAreArray;
using Bytes = std::vector<std::uint8_t>;

constexpr int kConsumerDefined = 28;  // IB_CM_REJ_CONSUMER_DEFINED
constexpr int kSidrReject = 2;        // IB_SIDR_REJECT

Bytes counting(std::size_t size) {
    Bytes bytes(size);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    return bytes;
}

Bytes padded(Bytes bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
}

class PrivateData : public IdsOnBothLinkLayers {
  protected:
    // A request with data of this size arrives with `limit` bytes.
    void check_request(rdma_port_space space, std::size_t size, std::size_t limit) {
        rdma_cm_id* const client = resolve(space);
        const Bytes data = counting(size);
        const Event asked = request(client, with_data(data));
        EXPECT_THAT(asked.private_data, ElementsAreArray(padded(data, limit)));
        destroy(asked.id);
        destroy(client);
    }
    // The id is where it was after a request that is too long, and connects.
    void check_long_request(rdma_port_space space, std::size_t limit) {
        rdma_cm_id* const client = resolve(space);
        const Bytes data = counting(limit + 1);
        rdma_conn_param given = with_data(data);
        EXPECT_EQ(rdma_connect(client, &given), -1);
        EXPECT_EQ(errno, EINVAL);
        EXPECT_EQ(request(client).private_data.size(), limit);
    }
    void check_reply(rdma_port_space space, std::size_t size, std::size_t limit,
                     rdma_cm_event_type answer) {
        rdma_cm_id* const client = resolve(space);
        const Event asked = request(client);
        const Bytes data = counting(size);
        rdma_conn_param given = with_data(data);
        ASSERT_EQ(rdma_accept(asked.id, &given), 0) << std::strerror(errno);
        const Event answered = next(answer);
        EXPECT_EQ(answered.id, client);
        EXPECT_THAT(answered.private_data, ElementsAreArray(padded(data, limit)));
        destroy(client);
        destroy(asked.id);
    }
    // Linux rejects a request itself that it cannot accept (rdma_accept() of cma.c).
    void check_long_reply(rdma_port_space space, std::size_t limit, rdma_cm_event_type answer,
                          int status) {
        rdma_cm_id* const client = resolve(space);
        const Event asked = request(client);
        const Bytes data = counting(limit + 1);
        rdma_conn_param given = with_data(data);
        EXPECT_EQ(rdma_accept(asked.id, &given), -1);
        EXPECT_EQ(errno, EINVAL);
        const Event answered = next(answer);
        EXPECT_EQ(answered.id, client);
        EXPECT_EQ(answered.status, status);
    }
    void check_rejection(rdma_port_space space, std::size_t size, std::size_t limit,
                         rdma_cm_event_type answer, int status) {
        rdma_cm_id* const client = resolve(space);
        const Event asked = request(client);
        const Bytes data = counting(size);
        ASSERT_EQ(rdma_reject(asked.id, data.data(), static_cast<std::uint8_t>(size)), 0)
            << std::strerror(errno);
        const Event answered = next(answer);
        EXPECT_EQ(answered.id, client);
        EXPECT_EQ(answered.status, status);
        EXPECT_THAT(answered.private_data, ElementsAreArray(padded(data, limit)));
        destroy(client);
        destroy(asked.id);
    }
    void check_long_rejection(rdma_port_space space, std::size_t limit) {
        rdma_cm_id* const client = resolve(space);
        const Event asked = request(client);
        const Bytes data = counting(limit + 1);
        EXPECT_EQ(rdma_reject(asked.id, data.data(), static_cast<std::uint8_t>(data.size())), -1);
        EXPECT_EQ(errno, EINVAL);
    }
};

// 92 bytes of a REQ, of which rdma_cm takes 36 for the IP addresses.
TEST_P(PrivateData, OfARequestIs56Bytes) {
    listen();
    for (const std::size_t size : {0, 5, 56}) {
        check_request(RDMA_PS_TCP, size, 56);
    }
    check_long_request(RDMA_PS_TCP, 56);
}

TEST_P(PrivateData, OfAReplyIs196Bytes) {
    listen();
    for (const std::size_t size : {0, 5, 196}) {
        check_reply(RDMA_PS_TCP, size, 196, RDMA_CM_EVENT_CONNECT_RESPONSE);
    }
    check_long_reply(RDMA_PS_TCP, 196, RDMA_CM_EVENT_REJECTED, kConsumerDefined);
}

TEST_P(PrivateData, OfARejectionIs148Bytes) {
    listen();
    for (const std::size_t size : {0, 5, 148}) {
        check_rejection(RDMA_PS_TCP, size, 148, RDMA_CM_EVENT_REJECTED, kConsumerDefined);
    }
    check_long_rejection(RDMA_PS_TCP, 148);
}

TEST_P(PrivateData, OfADatagramRequestIs180Bytes) {
    listen(RDMA_PS_UDP);
    for (const std::size_t size : {0, 5, 180}) {
        check_request(RDMA_PS_UDP, size, 180);
    }
    check_long_request(RDMA_PS_UDP, 180);
}

TEST_P(PrivateData, OfADatagramReplyIs136Bytes) {
    listen(RDMA_PS_UDP);
    for (const std::size_t size : {0, 5, 136}) {
        check_reply(RDMA_PS_UDP, size, 136, RDMA_CM_EVENT_ESTABLISHED);
    }
    check_long_reply(RDMA_PS_UDP, 136, RDMA_CM_EVENT_UNREACHABLE, kSidrReject);
}

TEST_P(PrivateData, OfADatagramRejectionIs136Bytes) {
    listen(RDMA_PS_UDP);
    for (const std::size_t size : {0, 5, 136}) {
        check_rejection(RDMA_PS_UDP, size, 136, RDMA_CM_EVENT_UNREACHABLE, kSidrReject);
    }
    check_long_rejection(RDMA_PS_UDP, 136);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, PrivateData, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
