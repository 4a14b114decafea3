// Imports: another handle of the same process for a context, a domain, a region.
#include <cerrno>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Import : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
        imported = ibv_import_device(dup(a->context->cmd_fd));
        ASSERT_NE(imported, nullptr);
    }
    void TearDown() override {
        EXPECT_EQ(ibv_close_device(imported), 0);
        TwoHosts::TearDown();
    }
    ibv_context* imported = nullptr;
};

TEST_F(Import, AnImportedDeviceIsTheSameDevice) {
    EXPECT_EQ(imported->device, a->context->device);
    EXPECT_NE(imported, a->context);
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(imported, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
}

TEST_F(Import, ADomainAndARegionMayBeUsedLikeTheOriginals) {
    ibv_pd* pd = ibv_import_pd(imported, a->pd->handle);
    ASSERT_NE(pd, nullptr);
    EXPECT_EQ(pd->context, imported);
    ibv_mr* mr = ibv_import_mr(pd, a->mr->handle);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->addr, nullptr);
    EXPECT_EQ(mr->length, End::kBytes);
    EXPECT_EQ(mr->lkey, a->mr->lkey);
    EXPECT_EQ(mr->rkey, a->mr->rkey);
    ibv_mr* other = ibv_reg_mr(pd, a->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(other, nullptr);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).from({a->address(0), 8, other->lkey}).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(other), 0);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    expect_works();  // the originals are untouched
}

TEST_F(Import, DeallocatingAnImportEndsTheOriginal) {
    ibv_pd* own = ibv_alloc_pd(a->context);
    ibv_pd* pd = ibv_import_pd(imported, own->handle);
    ASSERT_NE(pd, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_dealloc_pd(own), ENOENT);
    ibv_unimport_pd(own);
}

TEST_F(Import, HandlesThatNameNothingAreEnoent) {
    errno = 0;
    EXPECT_EQ(ibv_import_pd(imported, 99'999), nullptr);
    EXPECT_EQ(errno, ENOENT);
    errno = 0;
    EXPECT_EQ(ibv_import_mr(a->pd, 99'999), nullptr);
    EXPECT_EQ(errno, ENOENT);
    ibv_pd* other = ibv_alloc_pd(a->context);
    errno = 0;
    EXPECT_EQ(ibv_import_mr(other, a->mr->handle), nullptr);  // a region of another domain
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Import, DescriptorsThatAreNoneAreEinval) {
    errno = 0;
    EXPECT_EQ(ibv_import_device(-1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_import_device(STDIN_FILENO), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Import, TheContextLivesUntilItsLastHandleIsClosed) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* first = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    ibv_pd* pd = ibv_alloc_pd(first);
    const std::uint32_t handle = pd->handle;
    ibv_context* second = ibv_import_device(dup(first->cmd_fd));
    ASSERT_NE(second, nullptr);
    ibv_unimport_pd(pd);
    EXPECT_EQ(ibv_close_device(first), 0);
    pd = ibv_import_pd(second, handle);
    ASSERT_NE(pd, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(second), 0);
}

TEST_F(Import, EventsComeToWhoeverReadsThem) {
    ASSERT_EQ(a->to_state(IBV_QPS_SQD), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    ASSERT_EQ(ibv_modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(imported, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(event.element.qp, a->qp);
    ibv_ack_async_event(&event);
    EXPECT_TRUE(a->events().empty());
}

TEST_F(Import, WhatAnotherProcessHasOpenedIsEopnotsupp) {
    const pid_t child = fork();
    if (child == 0) {
        errno = 0;
        const bool refused = ibv_import_device(dup(a->context->cmd_fd)) == nullptr;
        _exit(refused && errno == EOPNOTSUPP ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    repeats = false;  // how long waitpid() sleeps is the kernel's affair
}

using ImportOfMemory = TwoHosts;

TEST_F(ImportOfMemory, OnTheDeviceIsTheSameMemory) {
    connect();
    ibv_alloc_dm_attr attr{};
    attr.length = 4096;
    ibv_dm* dm = ibv_alloc_dm(a->context, &attr);
    ASSERT_NE(dm, nullptr);
    EXPECT_EQ(ibv_import_dm(a->context, dm->handle + 1), nullptr);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(ibv_import_dm(b->context, dm->handle), nullptr) << "another device's";
    ibv_dm* same = ibv_import_dm(a->context, dm->handle);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->handle, dm->handle);
    const std::uint64_t written = 0x1122334455667788;
    std::uint64_t read = 0;
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, &written, sizeof written), 0);
    EXPECT_EQ(ibv_memcpy_from_dm(&read, same, 8, sizeof read), 0);
    EXPECT_EQ(read, written);
    ibv_mr* mr =
        ibv_reg_dm_mr(a->pd, same, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
    EXPECT_NE(mr, nullptr);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    ibv_unimport_dm(same);
    EXPECT_EQ(ibv_memcpy_from_dm(&read, dm, 8, sizeof read), 0) << "the original stays";
    same = ibv_import_dm(a->context, dm->handle);
    ASSERT_EQ(ibv_free_dm(dm), 0);
    EXPECT_EQ(ibv_memcpy_from_dm(&read, same, 8, sizeof read), EINVAL) << "it is gone";
    ibv_unimport_dm(same);
}

using ImportOfRxe = TwoHosts;

TEST_F(ImportOfRxe, IsEopnotsupp) {
    ASSERT_EQ(simverbs_set_personality("rxe"), 0);
    connect();
    errno = 0;
    EXPECT_EQ(ibv_import_pd(a->context, a->pd->handle), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_import_mr(a->pd, a->mr->handle), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_import_dm(a->context, 1), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    errno = 0;
    EXPECT_EQ(ibv_import_device(a->context->cmd_fd), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace verbs_test
