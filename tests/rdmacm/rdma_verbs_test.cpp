// The inline functions of <rdma/rdma_verbs.h>: registering, posting and waiting by an id. Each has
// a page of its own: rdma_reg_msgs(3) to rdma_get_recv_comp(3).
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

constexpr std::size_t kHalf = 32;
constexpr std::uint32_t kGrh = 40;

// Connected ids whose queue pairs have the completion queues and channels that librdmacm makes.
class RdmaVerbs : public IdsOnBothLinkLayers {
  protected:
    void SetUp() override {
        IdsOnBothLinkLayers::SetUp();
        listen();
        client = resolve();
        make_queue_pair(client);
        server = request(client).id;
        make_queue_pair(server);
        ASSERT_EQ(rdma_accept(server, nullptr), 0) << std::strerror(errno);
        next(RDMA_CM_EVENT_ESTABLISHED);
        next(RDMA_CM_EVENT_ESTABLISHED);
        for (std::size_t i = 0; i < here.size(); ++i) {
            here[i] = static_cast<std::uint8_t>(i + 1);
        }
    }
    static void make_queue_pair(rdma_cm_id* id) {
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2};
        init.cap.max_inline_data = 64;
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    }
    void expect_sent(void* context, ibv_wc_opcode opcode) const {
        ibv_wc wc{};
        ASSERT_EQ(rdma_get_send_comp(client, &wc), 1) << std::strerror(errno);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, opcode);
        EXPECT_EQ(wc.wr_id, reinterpret_cast<std::uintptr_t>(context));
    }
    void expect_received(void* context, std::size_t length) const {
        ibv_wc wc{};
        ASSERT_EQ(rdma_get_recv_comp(server, &wc), 1) << std::strerror(errno);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.byte_len, length);
        EXPECT_EQ(wc.wr_id, reinterpret_cast<std::uintptr_t>(context));
    }
    // Two pieces of memory, the second half first.
    static std::array<ibv_sge, 2> halves(std::array<std::uint8_t, 2 * kHalf>& bytes,
                                         const ibv_mr* mr) {
        const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
        return {{{address + kHalf, kHalf, mr->lkey}, {address, kHalf, mr->lkey}}};
    }
    static std::uint64_t address_of(const std::array<std::uint8_t, 2 * kHalf>& bytes) {
        return reinterpret_cast<std::uintptr_t>(bytes.data());
    }

    rdma_cm_id* client = nullptr;
    rdma_cm_id* server = nullptr;
    std::array<std::uint8_t, 2 * kHalf> here{};   // of the client
    std::array<std::uint8_t, 2 * kHalf> there{};  // of the server
    int tag = 0;                                  // its address is a context
};

TEST_P(RdmaVerbs, SendAndReceive) {
    ibv_mr* const from = rdma_reg_msgs(client, here.data(), here.size());
    ibv_mr* const to = rdma_reg_msgs(server, there.data(), there.size());
    ASSERT_EQ(rdma_post_recv(server, &tag, there.data(), there.size(), to), 0);
    ASSERT_EQ(rdma_post_send(client, &tag, here.data(), here.size(), from, IBV_SEND_SIGNALED), 0);
    expect_sent(&tag, IBV_WC_SEND);
    expect_received(&tag, here.size());
    EXPECT_EQ(there, here);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

TEST_P(RdmaVerbs, SendAndReceivePieces) {
    ibv_mr* const from = rdma_reg_msgs(client, here.data(), here.size());
    ibv_mr* const to = rdma_reg_msgs(server, there.data(), there.size());
    std::array<ibv_sge, 2> received = halves(there, to);
    std::array<ibv_sge, 2> sent = halves(here, from);
    ASSERT_EQ(rdma_post_recvv(server, &tag, received.data(), 2), 0);
    ASSERT_EQ(rdma_post_sendv(client, &tag, sent.data(), 2, IBV_SEND_SIGNALED), 0);
    expect_sent(&tag, IBV_WC_SEND);
    expect_received(&tag, here.size());
    EXPECT_EQ(there, here);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

// rdma_post_send(3): "mr [...] optional" for data that goes inline.
TEST_P(RdmaVerbs, SendInlineWithoutARegion) {
    ibv_mr* const to = rdma_reg_msgs(server, there.data(), there.size());
    ASSERT_EQ(rdma_post_recv(server, &tag, there.data(), there.size(), to), 0);
    ASSERT_EQ(rdma_post_send(client, &tag, here.data(), here.size(), nullptr,
                             IBV_SEND_SIGNALED | IBV_SEND_INLINE),
              0);
    expect_sent(&tag, IBV_WC_SEND);
    expect_received(&tag, here.size());
    EXPECT_EQ(there, here);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

TEST_P(RdmaVerbs, Write) {
    ibv_mr* const from = rdma_reg_msgs(client, here.data(), here.size());
    ibv_mr* const to = rdma_reg_write(server, there.data(), there.size());
    ASSERT_EQ(rdma_post_write(client, &tag, here.data(), here.size(), from, IBV_SEND_SIGNALED,
                              address_of(there), to->rkey),
              0);
    expect_sent(&tag, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(there, here);
    there.fill(0);
    std::array<ibv_sge, 2> sent = halves(here, from);
    ASSERT_EQ(rdma_post_writev(client, &tag, sent.data(), 2, IBV_SEND_SIGNALED, address_of(there),
                               to->rkey),
              0);
    expect_sent(&tag, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(there.front(), here[kHalf]);
    EXPECT_EQ(there.back(), here[kHalf - 1]);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

TEST_P(RdmaVerbs, Read) {
    ibv_mr* const to = rdma_reg_msgs(client, here.data(), here.size());
    ibv_mr* const from = rdma_reg_read(server, there.data(), there.size());
    there.fill(0x91);
    ASSERT_EQ(rdma_post_read(client, &tag, here.data(), here.size(), to, IBV_SEND_SIGNALED,
                             address_of(there), from->rkey),
              0);
    expect_sent(&tag, IBV_WC_RDMA_READ);
    EXPECT_EQ(here, there);
    there.front() = 0x92;
    std::array<ibv_sge, 2> received = halves(here, to);
    ASSERT_EQ(rdma_post_readv(client, &tag, received.data(), 2, IBV_SEND_SIGNALED,
                              address_of(there), from->rkey),
              0);
    expect_sent(&tag, IBV_WC_RDMA_READ);
    EXPECT_EQ(here[kHalf], 0x92);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

// rdma_reg_msgs(3), rdma_reg_read(3), rdma_reg_write(3): each gives the right of its name alone.
TEST_P(RdmaVerbs, RegisterForOneUse) {
    ibv_mr* const from = rdma_reg_msgs(client, here.data(), here.size());
    ibv_mr* const to = rdma_reg_read(server, there.data(), there.size());
    ASSERT_EQ(rdma_post_write(client, &tag, here.data(), here.size(), from, IBV_SEND_SIGNALED,
                              address_of(there), to->rkey),
              0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_send_comp(client, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(there.front(), 0);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

// "Returns 0 on success, or -1 on error. If an error occurs, errno will be set".
TEST_P(RdmaVerbs, SayWhatIsWrongByErrno) {
    ibv_mr* const region = rdma_reg_msgs(client, here.data(), here.size());
    std::array<ibv_sge, 3> pieces{};
    errno = 0;
    EXPECT_EQ(rdma_post_sendv(client, nullptr, pieces.data(), 3, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(rdma_post_recv(client, nullptr, here.data(), 1, region), 0);
    }
    EXPECT_EQ(rdma_post_recv(client, nullptr, here.data(), 1, region), -1);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(rdma_dereg_mr(region), 0);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, RdmaVerbs, testing::ValuesIn(kBothLinkLayers));

// rdma_post_ud_send(3).
class RdmaVerbsOfDatagrams : public IdsOnBothLinkLayers {};

TEST_P(RdmaVerbsOfDatagrams, SendToAnAddressHandle) {
    std::array<std::uint8_t, 2 * kHalf> here{};
    std::array<std::uint8_t, 3 * kHalf> there{};
    here.fill(0x18);
    listen(RDMA_PS_UDP);
    rdma_cm_id* const client = resolve(RDMA_PS_UDP);
    rdma_cm_id* const server = request(client).id;
    for (rdma_cm_id* const id : {client, server}) {
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_UD;
        init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
        ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    }
    ibv_mr* const to = rdma_reg_msgs(server, there.data(), there.size());
    ASSERT_EQ(rdma_post_recv(server, nullptr, there.data(), there.size(), to), 0);
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_accept(server, &given), 0) << std::strerror(errno);
    Event event = next(RDMA_CM_EVENT_ESTABLISHED);
    ibv_ah* const peer = ibv_create_ah(client->pd, &event.datagram.ah_attr);
    ASSERT_NE(peer, nullptr) << simverbs_last_error();
    ibv_mr* const from = rdma_reg_msgs(client, here.data(), here.size());
    ASSERT_EQ(rdma_post_ud_send(client, &here, here.data(), kHalf, from, IBV_SEND_SIGNALED, peer,
                                event.datagram.qp_num),
              0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_send_comp(client, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, reinterpret_cast<std::uintptr_t>(&here));
    ASSERT_EQ(rdma_get_recv_comp(server, &wc), 1);
    EXPECT_EQ(wc.byte_len, kGrh + kHalf);
    EXPECT_EQ(there[kGrh], 0x18);
    EXPECT_EQ(ibv_destroy_ah(peer), 0);
    EXPECT_EQ(rdma_dereg_mr(from), 0);
    EXPECT_EQ(rdma_dereg_mr(to), 0);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, RdmaVerbsOfDatagrams,
                         testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
