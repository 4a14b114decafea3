// Memory windows through the C API: what a bound key opens and what it does not, who may bind, who
// may take back, and what the verbs answer.
#include <cerrno>
#include <cstring>
#include <string>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr unsigned kBindable = kAllAccess | IBV_ACCESS_MW_BIND;
constexpr unsigned kReadWrite = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
constexpr std::size_t kAt = 8192;
constexpr std::size_t kLength = 4096;

class Window : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        prepare();
    }
    void TearDown() override {
        if (mr_ != nullptr) {
            ibv_dereg_mr(mr_);
        }
        TwoHosts::TearDown();
    }
    void prepare() {
        connect();
        mr_ = ibv_reg_mr(b->pd, b->at(0), End::kBytes, kBindable);
        ASSERT_NE(mr_, nullptr);
        std::memset(a->at(0), 0x5A, kLength);
    }

    [[nodiscard]] ibv_mw_bind_info info(unsigned access = kReadWrite) {
        return {mr_, b->address(kAt), kLength, access};
    }
    // An errno.
    int post_bind(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& wanted,
                  unsigned flags = IBV_SEND_SIGNALED) {
        ibv_send_wr wr{};
        wr.wr_id = 50;
        wr.opcode = IBV_WR_BIND_MW;
        wr.send_flags = flags;
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = rkey;
        wr.bind_mw.bind_info = wanted;
        ibv_send_wr* bad = nullptr;
        const int error = ibv_post_send(b->qp, &wr, &bad);
        EXPECT_EQ(error != 0, bad == &wr);
        return error;
    }
    int bind_by_verb(ibv_mw* mw, const ibv_mw_bind_info& wanted) {
        ibv_mw_bind bind{};
        bind.wr_id = 50;
        bind.send_flags = IBV_SEND_SIGNALED;
        bind.bind_info = wanted;
        return ibv_bind_mw(b->qp, mw, &bind);
    }
    void expect_bound(ibv_wc_status status = IBV_WC_SUCCESS) {
        const ibv_wc wc = b->wait();
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
        EXPECT_EQ(wc.wr_id, 50U);
        EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
    }
    ibv_mw* bound(ibv_mw_type type) {
        ibv_mw* mw = ibv_alloc_mw(b->pd, type);
        EXPECT_NE(mw, nullptr);
        const int error = type == IBV_MW_TYPE_1 ? bind_by_verb(mw, info())
                                                : post_bind(mw, ibv_inc_rkey(mw->rkey), info());
        EXPECT_EQ(error, 0);
        expect_bound();
        return mw;
    }
    ibv_wc_status write(std::uint32_t rkey, std::uint64_t address, std::uint32_t length = 64) {
        EXPECT_EQ(Request(IBV_WR_RDMA_WRITE).from(a->range(0, length)).to(address, rkey).post(*a),
                  0);
        return a->wait().status;
    }
    bool landed(std::size_t at, std::size_t length = 64) {
        return std::memcmp(b->at(at), a->at(0), length) == 0;
    }

    ibv_mr* mr_ = nullptr;
};

TEST_F(Window, IsAllocatedUnbound) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    ASSERT_NE(mw, nullptr);
    EXPECT_EQ(mw->context, b->context);
    EXPECT_EQ(mw->pd, b->pd);
    EXPECT_EQ(mw->type, IBV_MW_TYPE_2);
    EXPECT_NE(mw->rkey, 0U);
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(kAt));
    EXPECT_EQ(b->events(), std::vector{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfAnUnknownTypeIsEinval) {
    errno = 0;
    EXPECT_EQ(ibv_alloc_mw(b->pd, static_cast<ibv_mw_type>(7)), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Window, KeepsItsPdBusy) {
    ibv_pd* pd = ibv_alloc_pd(b->context);
    ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    expect_reason("is used by 1 object: MW ");
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(Window, IsCountedAmongTheCapabilities) {
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(b->context, &attr), 0);
    EXPECT_GT(attr.max_mw, 0);
    constexpr unsigned kWanted =
        IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    EXPECT_EQ(attr.device_cap_flags & kWanted, kWanted);
    EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0U);
}

TEST_F(Window, OfType1GetsANewKeyFromTheVerb) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    const std::uint32_t before = mw->rkey;
    ASSERT_EQ(bind_by_verb(mw, info()), 0);
    EXPECT_EQ(mw->rkey, ibv_inc_rkey(before));
    expect_bound();
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(kAt));
    EXPECT_EQ(
        Request(IBV_WR_RDMA_READ).into(a->range(16384, 64)).to(b->address(kAt), mw->rkey).post(*a),
        0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(16384), a->at(0), 64), 0);
    EXPECT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into(a->range(16384, 8))
                  .fetch_and_add(b->address(kAt), mw->rkey, 1)
                  .post(*a),
              0);
    EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR) << "a right that was not bound";
    EXPECT_TRUE(landed(kAt));
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OpensNothingBeforeOrBehindIt) {
    ibv_mw* mw = bound(IBV_MW_TYPE_1);
    EXPECT_EQ(write(mw->rkey, b->address(kAt) - 1), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(kAt - 1));
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, IsUnboundByLengthZero) {
    ibv_mw* mw = bound(IBV_MW_TYPE_1);
    EXPECT_EQ(ibv_dereg_mr(mr_), EBUSY);
    expect_reason("is used by 1 object: bound MW ");
    const std::uint32_t old = mw->rkey;
    ASSERT_EQ(bind_by_verb(mw, {nullptr, 0, 0, 0}), 0);
    EXPECT_NE(mw->rkey, old);
    expect_bound();
    EXPECT_EQ(write(old, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    mr_ = nullptr;
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfType1MovesAndTheOldKeyIsStale) {
    ibv_mw* mw = bound(IBV_MW_TYPE_1);
    const std::uint32_t old = mw->rkey;
    ASSERT_EQ(bind_by_verb(mw, {mr_, b->address(0), 512, kReadWrite}), 0);
    expect_bound();
    EXPECT_EQ(write(mw->rkey, b->address(0)), IBV_WC_SUCCESS);
    EXPECT_EQ(write(old, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, VerbsThatDoNotFitAreRefusedBeforeAnythingIsPosted) {
    ibv_mw* type1 = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    ibv_mw* type2 = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    const std::uint32_t key = type1->rkey;
    EXPECT_EQ(post_bind(type1, ibv_inc_rkey(key), info()), EINVAL);
    EXPECT_EQ(bind_by_verb(type2, info()), EINVAL);
    EXPECT_EQ(bind_by_verb(type1, info(kReadWrite | IBV_ACCESS_ZERO_BASED)), EINVAL);
    EXPECT_EQ(bind_by_verb(type1, {nullptr, b->address(0), 64, kReadWrite}), EINVAL);
    ibv_pd* pd = ibv_alloc_pd(b->context);
    ibv_mw* other = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    EXPECT_EQ(bind_by_verb(other, info()), EPERM);
    EXPECT_EQ(type1->rkey, key);
    expect_silence();
    for (ibv_mw* mw : {type1, type2, other}) {
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    }
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST_F(Window, OfType2TakesTheLowByteOfTheKeyAndKeepsItsIndex) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    const std::uint32_t before = mw->rkey;
    const std::uint32_t wanted = ibv_inc_rkey(before);
    ASSERT_EQ(post_bind(mw, wanted ^ 0x5A5A00U, info()), 0);
    EXPECT_EQ(mw->rkey, wanted);
    expect_bound();
    EXPECT_EQ(write(wanted, b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(kAt));
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, MayTravelInASendBehindItsBinding) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    const std::uint32_t key = ibv_inc_rkey(mw->rkey);
    ASSERT_EQ(a->receive(1, {a->range(32768, 4)}), 0);
    std::memcpy(b->at(0), &key, sizeof key);
    ASSERT_EQ(post_bind(mw, key, info(), 0), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(51).from(b->range(0, 4)).post(*b), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    std::uint32_t told = 0;
    std::memcpy(&told, a->at(32768), sizeof told);
    EXPECT_EQ(write(told, b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_EQ(b->wait().wr_id, 51U) << "the binding was unsignaled";
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfType2IsInvalidatedLocally) {
    ibv_mw* mw = bound(IBV_MW_TYPE_2);
    ibv_send_wr wr{};
    wr.wr_id = 52;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = mw->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(b->qp, &wr, &bad), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
    EXPECT_EQ(wc.wr_id, 52U);
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(kAt));
    EXPECT_EQ(ibv_dereg_mr(mr_), 0) << "nothing is bound to it";
    mr_ = nullptr;
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfType2IsInvalidatedByThePeer) {
    ibv_mw* mw = bound(IBV_MW_TYPE_2);
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_SUCCESS);
    ASSERT_EQ(b->receive(100, {b->range(0, 64)}), 0);
    ibv_sge sge = a->range(0, 8);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.invalidate_rkey = mw->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
    const ibv_wc received = b->wait();
    EXPECT_EQ(received.status, IBV_WC_SUCCESS);
    EXPECT_EQ(received.opcode, IBV_WC_RECV);
    EXPECT_EQ(received.byte_len, 8U);
    EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(received.invalidated_rkey, mw->rkey);
    const ibv_wc sent = a->wait();
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.opcode, IBV_WC_SEND);
    std::memset(a->at(0), 0x77, 64);
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(kAt));
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, ASendThatInvalidatesARegionsKeyFailsTheReceive) {
    ASSERT_EQ(b->receive(100, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(101, {b->range(64, 64)}), 0);
    ibv_sge sge = a->range(0, 8);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.invalidate_rkey = mr_->rkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_RETRY_EXC_ERR);
    const ibv_wc failed = b->wait();
    EXPECT_EQ(failed.wr_id, 100U);
    EXPECT_EQ(failed.status, IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(b->wait().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_EQ(a->state(), IBV_QPS_ERR);
}

TEST_F(Window, OfType2ServesOneQueuePairOnly) {
    ibv_mw* mw = bound(IBV_MW_TYPE_2);
    ibv_qp_init_attr init{};
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = a->cq;
    ibv_qp* first_of_a = a->qp;
    ibv_qp* first_of_b = b->qp;
    a->qp = ibv_create_qp(a->pd, &init);
    init.send_cq = init.recv_cq = b->cq;
    b->qp = ibv_create_qp(b->pd, &init);
    bring_up({});
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_FALSE(landed(kAt));
    EXPECT_EQ(ibv_destroy_qp(a->qp), 0);
    EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
    a->qp = first_of_a;
    b->qp = first_of_b;
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfType1ServesEveryQueuePairOfItsPd) {
    ibv_mw* mw = bound(IBV_MW_TYPE_1);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, GoesWithTheQueuePairThatBoundIt) {
    ibv_mw* mw = bound(IBV_MW_TYPE_2);
    EXPECT_EQ(ibv_dereg_mr(mr_), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
    b->qp = nullptr;
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    mr_ = nullptr;
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, IsDeallocatedWhileBound) {
    ibv_mw* mw = bound(IBV_MW_TYPE_1);
    const std::uint32_t key = mw->rkey;
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    EXPECT_EQ(write(key, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    mr_ = nullptr;
}

TEST_F(Window, ARefusedBindingStopsTheQueuePairAndFlushesWhatFollows) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    ibv_mw_bind_info wanted = info();
    wanted.mr = b->mr;  // lacks MW_BIND
    ASSERT_EQ(post_bind(mw, ibv_inc_rkey(mw->rkey), wanted), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(51).from(b->range(0, 8)).post(*b), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(wc.wr_id, 50U);
    EXPECT_NE(wc.vendor_err, 0U);
    EXPECT_EQ(b->wait().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(b->state(), IBV_QPS_ERR);
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(write(mw->rkey, b->address(kAt)), IBV_WC_RETRY_EXC_ERR);
    EXPECT_FALSE(landed(kAt));
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, OfType2IsNotBoundTwice) {
    ibv_mw* mw = bound(IBV_MW_TYPE_2);
    ASSERT_EQ(post_bind(mw, ibv_inc_rkey(mw->rkey), info()), 0);
    expect_bound(IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, BindsOnFullQueuesAreEnomem) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    int posted = 0;
    std::uint32_t key = mw->rkey;
    while (bind_by_verb(mw, info()) == 0) {
        ++posted;
        EXPECT_EQ(mw->rkey, ibv_inc_rkey(key));
        key = mw->rkey;
    }
    EXPECT_EQ(posted, 16);
    EXPECT_EQ(bind_by_verb(mw, info()), ENOMEM);
    EXPECT_EQ(mw->rkey, key) << "a key that was not posted is not kept";
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(Window, BindsInResetAreEinval) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(bind_by_verb(mw, info()), EINVAL);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

class WindowOfRxe : public Window {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();  // NOLINT(bugprone-parent-virtual-call): not yet connected
        ASSERT_EQ(simverbs_set_personality("rxe"), 0);
        prepare();
    }
};

TEST_F(WindowOfRxe, OfType1IsBoundByAWorkRequestToo) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
    ASSERT_EQ(post_bind(mw, ibv_inc_rkey(mw->rkey), info()), 0);
    expect_bound();
    EXPECT_EQ(ibv_dereg_mr(mr_), EINVAL);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(WindowOfRxe, OfType2IsNotToldItsKey) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    const std::uint32_t key = mw->rkey;
    ASSERT_EQ(post_bind(mw, ibv_inc_rkey(key), info()), 0);
    EXPECT_EQ(mw->rkey, key);
    expect_bound();
    EXPECT_EQ(write(ibv_inc_rkey(key), b->address(kAt)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

class WindowOfEach : public Window, public testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();  // NOLINT(bugprone-parent-virtual-call): not yet connected
        ASSERT_EQ(simverbs_set_personality(GetParam()), 0);
        prepare();
    }
};
INSTANTIATE_TEST_SUITE_P(Personality, WindowOfEach, testing::Values("spec", "connectx6", "rxe"),
                         [](const auto& param) { return std::string(param.param); });

// libmlx5 passes the right on, and programs set it; a window has no local key.
TEST_P(WindowOfEach, MayBeBoundWithLocalWrite) {
    for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
        ibv_mw* mw = ibv_alloc_mw(b->pd, type);
        const ibv_mw_bind_info wanted = info(kReadWrite | IBV_ACCESS_LOCAL_WRITE);
        const std::uint32_t next = ibv_inc_rkey(mw->rkey);
        ASSERT_EQ(type == IBV_MW_TYPE_1 ? bind_by_verb(mw, wanted) : post_bind(mw, next, wanted),
                  0);
        expect_bound();
        EXPECT_EQ(write(next, b->address(kAt)), IBV_WC_SUCCESS) << type;
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    }
}

// The start address is 0 then (set_umr_mkey_seg of libmlx5).
TEST_P(WindowOfEach, OfType2ZeroBasedIsNamedByOffset) {
    ibv_mw* mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
    const std::uint32_t key = ibv_inc_rkey(mw->rkey);
    ASSERT_EQ(post_bind(mw, key, info(kReadWrite | IBV_ACCESS_ZERO_BASED)), 0);
    expect_bound();
    EXPECT_EQ(write(key, 128), IBV_WC_SUCCESS);
    EXPECT_TRUE(landed(kAt + 128));
    EXPECT_EQ(write(key, b->address(kAt)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

// Among failed unsignaled requests, connectx6 leaves out binds alone.
TEST_P(WindowOfEach, AFailedLocalInvalidationIsReportedThoughUnsignaled) {
    ibv_send_wr wr{};
    wr.wr_id = 52;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = 0x123400;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(b->qp, &wr, &bad), 0);
    const ibv_wc wc = b->wait();
    EXPECT_EQ(wc.wr_id, 52U);
    const bool is_rxe = std::string(GetParam()) == "rxe";
    EXPECT_EQ(wc.status, is_rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_MW_BIND_ERR)
        << ibv_wc_status_str(wc.status);
}

}  // namespace
}  // namespace verbs_test
