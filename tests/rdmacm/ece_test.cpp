// Options of enhanced connection establishment, which programs with queue pairs of their own
// exchange: rdma_set_local_ece(3), rdma_get_remote_ece(3). The numbers are the vendor's.
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "ids.hpp"

namespace rdmacm_test {
namespace {

constexpr std::uint32_t kVendor = 0x02C9;
constexpr int kVendorOptionNotSupported = 35;  // of a REJ: IBA 1.4, 12.6.7.2

class Ece : public IdsOnBothLinkLayers {
  protected:
    static void set_local(rdma_cm_id* id, std::uint32_t options) {
        ibv_ece ece{.vendor_id = kVendor, .options = options, .comp_mask = 0};
        EXPECT_EQ(rdma_set_local_ece(id, &ece), 0) << std::strerror(errno);
    }
    static ibv_ece remote(rdma_cm_id* id) {
        ibv_ece ece{.vendor_id = 1, .options = 1, .comp_mask = 1};
        EXPECT_EQ(rdma_get_remote_ece(id, &ece), 0) << std::strerror(errno);
        EXPECT_EQ(ece.comp_mask, 0U);
        return ece;
    }
};

// "Usual flow" of both man pages.
TEST_P(Ece, OptionsGoThereAndBack) {
    listen();
    rdma_cm_id* const client = resolve();
    set_local(client, 0x8000'00FF);
    rdma_cm_id* const server = request(client).id;
    EXPECT_EQ(remote(server).vendor_id, kVendor);
    EXPECT_EQ(remote(server).options, 0x8000'00FFU);
    set_local(server, 0x0000'000F);
    rdma_conn_param given = parameters();
    ASSERT_EQ(rdma_accept(server, &given), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_CONNECT_RESPONSE).id, client);
    EXPECT_EQ(remote(client).vendor_id, kVendor);
    EXPECT_EQ(remote(client).options, 0x0000'000FU);
    ASSERT_EQ(rdma_establish(client), 0) << std::strerror(errno);
    EXPECT_EQ(next(RDMA_CM_EVENT_ESTABLISHED).id, server);
}

TEST_P(Ece, AreZeroWhereNobodyHasAny) {
    listen();
    rdma_cm_id* const client = resolve();
    rdma_cm_id* const server = request(client).id;
    EXPECT_EQ(remote(server).vendor_id, 0U);
    EXPECT_EQ(remote(server).options, 0U);
}

TEST_P(Ece, AreRejectedWithAReasonOfTheirOwn) {
    listen();
    rdma_cm_id* const client = resolve();
    set_local(client, 1);
    rdma_cm_id* const server = request(client).id;
    const char reason[] = "not these";
    ASSERT_EQ(rdma_reject_ece(server, reason, sizeof reason), 0) << std::strerror(errno);
    const Event event = next(RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(event.id, client);
    EXPECT_EQ(event.status, kVendorOptionNotSupported);
    ASSERT_GE(event.private_data.size(), sizeof reason);
    EXPECT_EQ(std::memcmp(event.private_data.data(), reason, sizeof reason), 0);
}

// librdmacm itself sets the options of an id that has a queue pair.
TEST_P(Ece, AreOfQueuePairsOfTheProgram) {
    rdma_cm_id* const id = resolve();
    ibv_ece ece{.vendor_id = 0, .options = 1, .comp_mask = 0};
    EXPECT_EQ(rdma_set_local_ece(id, &ece), -1);
    EXPECT_EQ(errno, EINVAL);
    ece = {.vendor_id = kVendor, .options = 1, .comp_mask = 1};
    EXPECT_EQ(rdma_set_local_ece(id, &ece), -1);
    EXPECT_EQ(errno, EINVAL);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);
    ece.comp_mask = 0;
    EXPECT_EQ(rdma_set_local_ece(id, &ece), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_get_remote_ece(id, &ece), -1);
    EXPECT_EQ(errno, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, Ece, testing::ValuesIn(kBothLinkLayers));

}  // namespace
}  // namespace rdmacm_test
