// Thread domains and parent domains: what may be ended when, and that they are interchangeable with
// the protection domain that they extend.
#include <cerrno>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class Domains : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
        ibv_td_init_attr attr{};
        threads = ibv_alloc_td(a->context, &attr);
        ASSERT_NE(threads, nullptr);
        EXPECT_EQ(threads->context, a->context);
        parent = make_parent(threads);
        ASSERT_NE(parent, nullptr);
    }
    void TearDown() override {
        if (parent != nullptr) {
            EXPECT_EQ(ibv_dealloc_pd(parent), 0);
        }
        if (threads != nullptr) {
            EXPECT_EQ(ibv_dealloc_td(threads), 0);
        }
        TwoHosts::TearDown();
    }
    ibv_pd* make_parent(ibv_td* td) {
        ibv_parent_domain_init_attr attr{};
        attr.pd = a->pd;
        attr.td = td;
        return ibv_alloc_parent_domain(a->context, &attr);
    }

    ibv_td* threads = nullptr;
    ibv_pd* parent = nullptr;
};

TEST_F(Domains, WhatIsMadeInAParentDomainWorksWithWhatIsMadeInTheDomain) {
    // The region stays in the protection domain itself, the queue pair is in the parent domain.
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = ibv_create_qp(parent, &init);
    ASSERT_NE(a->qp, nullptr);
    EXPECT_EQ(a->qp->pd, parent);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    expect_works();
    ibv_mr* mr = ibv_reg_mr(parent, a->at(0), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->pd, parent);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
}

TEST_F(Domains, ACompletionQueueMadeInOneHoldsIt) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wanted.parent_domain = parent;
    ibv_cq_ex* cq = ibv_create_cq_ex(a->context, &wanted);
    ASSERT_NE(cq, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(Domains, ParentsAreBusyWhileTheirChildrenLive) {
    EXPECT_EQ(ibv_dealloc_td(threads), EBUSY);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    ASSERT_EQ(ibv_dereg_mr(a->mr), 0);
    a->mr = nullptr;
    EXPECT_EQ(ibv_dealloc_pd(a->pd), EBUSY);  // the parent domain is left
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    parent = nullptr;
    EXPECT_EQ(ibv_dealloc_td(threads), 0);
    threads = nullptr;
    EXPECT_EQ(ibv_dealloc_pd(a->pd), 0);
    a->pd = nullptr;
}

TEST_F(Domains, OneWithoutThreadsIsAParentDomainToo) {
    ibv_pd* second = make_parent(nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->handle, a->pd->handle);
    EXPECT_EQ(ibv_dealloc_pd(second), 0);
}

TEST_F(Domains, WhatMakesNoSenseIsEinval) {
    ibv_parent_domain_init_attr attr{};
    errno = 0;
    EXPECT_EQ(ibv_alloc_parent_domain(a->context, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
    attr.pd = a->pd;
    attr.comp_mask = 1U << 10;
    errno = 0;
    EXPECT_EQ(ibv_alloc_parent_domain(a->context, &attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
    ibv_td_init_attr thread_attr{1};
    errno = 0;
    EXPECT_EQ(ibv_alloc_td(a->context, &thread_attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

// Accepted, and never asked: rings are the device's.
TEST_F(Domains, AllocatorsAreNotUsed) {
    static int calls = 0;
    calls = 0;
    ibv_parent_domain_init_attr attr{};
    attr.pd = a->pd;
    attr.comp_mask =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    attr.alloc = [](ibv_pd*, void*, std::size_t, std::size_t, std::uint64_t) -> void* {
        ++calls;
        return IBV_ALLOCATOR_USE_DEFAULT;
    };
    attr.free = [](ibv_pd*, void*, void*, std::uint64_t) { ++calls; };
    ibv_pd* domain = ibv_alloc_parent_domain(a->context, &attr);
    ASSERT_NE(domain, nullptr);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = a->cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(domain, &init);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
    EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace verbs_test
