// Each completion status that the reliable-connected service has, reached by its causes, and what
// follows on both sides: completions, queue pair states, async events, flushed requests.
#include <sys/mman.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint64_t kFailing = 10;
constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;

class RcFault : public TwoHosts {
  protected:
    static constexpr std::size_t kFar = 65536;

    // Something to be flushed, on either side, behind the request that fails.
    void post_more() {
        ASSERT_EQ(Request(IBV_WR_SEND).id(11).unsignaled().from(a->range(0, 8)).post(*a), 0);
        ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                      .id(12)
                      .from(a->range(0, 8))
                      .to(b->address(kFar), b->mr->rkey)
                      .post(*a),
                  0);
        ASSERT_EQ(a->receive(21, {a->range(0, 8)}), 0);
        ASSERT_EQ(a->receive(22, {a->range(0, 8)}), 0);
    }
    // The failing request completes first; all behind it, and all receives, are flushed in order.
    void expect_requester_failed(ibv_wc_status status) {
        ibv_wc wc = a->wait();
        EXPECT_EQ(wc.wr_id, kFailing);
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
        EXPECT_EQ(wc.qp_num, a->qp->qp_num);
        EXPECT_NE(wc.vendor_err, 0U);
        std::vector<std::uint64_t> sends;
        std::vector<std::uint64_t> receives;
        for (int i = 0; i < 4; ++i) {
            wc = a->wait();
            EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
            (wc.wr_id > 20 ? receives : sends).push_back(wc.wr_id);
        }
        EXPECT_EQ(sends, (std::vector<std::uint64_t>{11, 12}));
        EXPECT_EQ(receives, (std::vector<std::uint64_t>{21, 22}));
        EXPECT_EQ(a->state(), IBV_QPS_ERR);
        EXPECT_TRUE(a->events().empty());
    }
    // The responder stopped without a completion of its own, and said why.
    void expect_responder_stopped(ibv_event_type event, const std::vector<std::uint64_t>& flushed) {
        for (const std::uint64_t id : flushed) {
            const ibv_wc wc = b->wait();
            EXPECT_EQ(wc.wr_id, id);
            EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        }
        EXPECT_EQ(b->state(), IBV_QPS_ERR);
        EXPECT_EQ(b->events(), std::vector{event});
        expect_silence();
    }
    // The first receive of the responder completes with `status`, the others are flushed.
    void expect_receive_failed(ibv_wc_status status) {
        ibv_wc wc = b->wait();
        EXPECT_EQ(wc.wr_id, 1U);
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
        wc = b->wait();
        EXPECT_EQ(wc.wr_id, 2U);
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(b->state(), IBV_QPS_ERR);
        EXPECT_TRUE(b->events().empty());
        expect_silence();
    }
    void expect_responder_untouched() {
        EXPECT_EQ(b->state(), IBV_QPS_RTS);
        EXPECT_TRUE(b->events().empty());
        expect_silence();
    }
    Request failing(ibv_wr_opcode opcode) { return Request(opcode).id(kFailing); }
    void write_fails(std::uint64_t address, std::uint32_t rkey) {
        ASSERT_EQ(failing(IBV_WR_RDMA_WRITE).from(a->range(0, 4096)).to(address, rkey).post(*a), 0);
        post_more();
    }
};

// ---- found by the requester itself
// ---------------------------------------------------------------

struct LocalCase {
    const char* name;
    ibv_wc_status status;
    void (*post)(End& a, End& b, Request& request);
};
std::ostream& operator<<(std::ostream& out, const LocalCase& row) {
    return out << row.name;
}

// A region of its own, with the rights given; deregistered by whoever made it.
ibv_mr* region(End& end, unsigned access) {
    return ibv_reg_mr(end.pd, end.at(0), End::kBytes, static_cast<int>(access));
}

class LocalFault : public RcFault, public testing::WithParamInterface<LocalCase> {};

TEST_P(LocalFault, StopsTheRequesterAlone) {
    connect();
    Request request = failing(IBV_WR_SEND);
    GetParam().post(*a, *b, request);
    post_more();
    expect_requester_failed(GetParam().status);
    expect_responder_untouched();
}

void post_with_segment(End& a, Request& request, ibv_sge segment) {
    EXPECT_EQ(request.from(segment).post(a), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Rc, LocalFault,
    testing::Values(
        LocalCase{"unknown_lkey", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      post_with_segment(a, request, {a.address(0), 8, a.mr->lkey ^ 0xFF00});
                  }},
        LocalCase{"rkey_for_lkey", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& b, Request& request) {
                      post_with_segment(a, request, {a.address(0), 8, b.mr->rkey + 7});
                  }},
        LocalCase{"past_the_end", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      post_with_segment(a, request, {a.address(End::kBytes - 8), 16, a.mr->lkey});
                  }},
        LocalCase{"before_the_start", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      post_with_segment(a, request, {a.address(0) - 8, 16, a.mr->lkey});
                  }},
        LocalCase{"deregistered", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      ibv_mr* gone = region(a, kAllAccess);
                      const ibv_sge segment{a.address(0), 8, gone->lkey};
                      EXPECT_EQ(ibv_dereg_mr(gone), 0);
                      post_with_segment(a, request, segment);
                  }},
        LocalCase{"another_pd", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      ibv_pd* other = ibv_alloc_pd(a.context);
                      ibv_mr* mr = ibv_reg_mr(other, a.at(0), 64, kLocal);
                      post_with_segment(a, request, {a.address(0), 8, mr->lkey});
                      EXPECT_EQ(simverbs_advance_ps(1'000'000), 0);
                      EXPECT_EQ(ibv_dereg_mr(mr), 0);
                      EXPECT_EQ(ibv_dealloc_pd(other), 0);
                  }},
        LocalCase{"second_segment_bad", IBV_WC_LOC_PROT_ERR,
                  [](End& a, End& /*b*/, Request& request) {
                      request.from(a.range(0, 8));
                      post_with_segment(a, request, {a.address(8), 8, 0});
                  }}),
    [](const auto& row) { return row.param.name; });

TEST_F(RcFault, ReadLandingWhereItMayNotWriteIsLocProt) {
    connect();
    ibv_mr* read_only = region(*a, 0);
    ASSERT_EQ(failing(IBV_WR_RDMA_READ)
                  .into({a->address(0), 64, read_only->lkey})
                  .to(b->address(0), b->mr->rkey)
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(read_only), 0);
    expect_responder_untouched();
}

TEST_F(RcFault, AtomicLandingWithAnUnknownKeyIsLocProt) {
    connect();
    ASSERT_EQ(failing(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .into({a->address(0), 8, 0xDEAD})
                  .fetch_and_add(b->address(0), b->mr->rkey, 1)
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b->word(0), 1U) << "carried out before the answer finds no place";
    expect_responder_untouched();
}

// The local key is looked at when the response lands, and none comes.
TEST_F(RcFault, AReadWithTwoBadKeysFailsByTheRemoteOne) {
    for (const char* personality : {"spec", "connectx6", "rxe"}) {
        SCOPED_TRACE(personality);
        TearDown();
        SetUp();
        ASSERT_EQ(simverbs_set_personality(personality), 0);
        connect();
        ASSERT_EQ(Request(IBV_WR_RDMA_READ)
                      .into({a->address(0), 64, 0xDEAD})
                      .to(b->address(0), b->mr->rkey ^ 0xFF00U)
                      .post(*a),
                  0);
        EXPECT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
    }
}

TEST_F(RcFault, MessageAboveThePortsMaximumIsLocLen) {
    connect();
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(a->context, 1, &port), 0);
    const std::size_t bytes = std::size_t{port.max_msg_sz} + 1;
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ibv_mr* mr = ibv_reg_mr(a->pd, pages, bytes, kLocal);
    ASSERT_NE(mr, nullptr);
    const auto start = reinterpret_cast<std::uint64_t>(pages);
    ASSERT_EQ(failing(IBV_WR_SEND)
                  .from({start, port.max_msg_sz, mr->lkey})
                  .from({start, 1, mr->lkey})
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    munmap(pages, bytes);
    expect_responder_untouched();
}

TEST_F(RcFault, AtomicOfOtherThanEightBytesIsLocLen) {
    for (const std::uint32_t length : {0U, 4U, 16U}) {
        SCOPED_TRACE(length);
        connect();
        ASSERT_EQ(failing(IBV_WR_ATOMIC_CMP_AND_SWP)
                      .into(a->range(0, length))
                      .compare_and_swap(b->address(0), b->mr->rkey, 0, 1)
                      .post(*a),
                  0);
        post_more();
        expect_requester_failed(IBV_WC_LOC_LEN_ERR);
        expect_responder_untouched();
        a.reset();
        b.reset();
    }
}

TEST_F(RcFault, ReadAndAtomicWithInitiatorDepthZeroAreLocQpOp) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP}) {
        connect({.reads = 0});
        Request request = failing(opcode);
        request.into(a->range(0, 8));
        if (opcode == IBV_WR_RDMA_READ) {
            request.to(b->address(0), b->mr->rkey);
        } else {
            request.compare_and_swap(b->address(0), b->mr->rkey, 0, 0);
        }
        ASSERT_EQ(request.post(*a), 0);
        post_more();
        expect_requester_failed(IBV_WC_LOC_QP_OP_ERR);
        expect_responder_untouched();
        a.reset();
        b.reset();
    }
}

TEST_F(RcFault, OpcodeThatTheServiceLacksIsLocQpOp) {
    connect();
    ASSERT_EQ(failing(IBV_WR_TSO).from(a->range(0, 64)).post(*a), 0);
    post_more();
    expect_requester_failed(IBV_WC_LOC_QP_OP_ERR);
    expect_responder_untouched();
}

// ---- found by the responder
// ----------------------------------------------------------------------

struct RemoteCase {
    const char* name;
    ibv_wc_status status;
    ibv_event_type event;
    unsigned qp_access;
    void (*post)(End& a, End& b, Request (*request)(ibv_wr_opcode));
};
std::ostream& operator<<(std::ostream& out, const RemoteCase& row) {
    return out << row.name;
}

Request make_failing(ibv_wr_opcode opcode) {
    Request request(opcode);
    return request.id(kFailing);
}

class RemoteFault : public RcFault, public testing::WithParamInterface<RemoteCase> {};

TEST_P(RemoteFault, StopsBothAndRaisesAnEvent) {
    connect({.access = GetParam().qp_access});
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    GetParam().post(*a, *b, make_failing);
    post_more();
    expect_requester_failed(GetParam().status);
    expect_responder_stopped(GetParam().event, {1, 2});
}

template <ibv_wr_opcode Opcode>
void post_remote(End& a, std::uint64_t address, std::uint32_t rkey, std::uint32_t length,
                 Request (*request)(ibv_wr_opcode)) {
    Request made = request(Opcode);
    made.from(a.range(4096, length));
    if (Opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        made.compare_and_swap(address, rkey, 0, 0);
    } else if (Opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        made.fetch_and_add(address, rkey, 1);
    } else {
        made.to(address, rkey);
    }
    EXPECT_EQ(made.post(a), 0);
}

template <ibv_wr_opcode Opcode, std::uint32_t Length>
void to_good_memory(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    post_remote<Opcode>(a, b.address(0), b.mr->rkey, Length, request);
}
template <ibv_wr_opcode Opcode, std::uint32_t Length>
void to_unknown_key(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    post_remote<Opcode>(a, b.address(0), b.mr->rkey ^ 0xABCD00, Length, request);
}
template <ibv_wr_opcode Opcode, std::uint32_t Length>
void past_the_end(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    post_remote<Opcode>(a, b.address(End::kBytes), b.mr->rkey, Length, request);
}
template <ibv_wr_opcode Opcode, std::uint32_t Length, unsigned Access>
void to_region_with(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    ibv_mr* mr = region(b, Access);
    post_remote<Opcode>(a, b.address(0), mr->rkey, Length, request);
    EXPECT_EQ(simverbs_advance_ps(10'000'000), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}
void to_deregistered(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    ibv_mr* mr = region(b, kAllAccess);
    const std::uint32_t rkey = mr->rkey;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    post_remote<IBV_WR_RDMA_WRITE>(a, b.address(0), rkey, 8, request);
}
void to_other_pd(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    ibv_pd* pd = ibv_alloc_pd(b.context);
    ibv_mr* mr = ibv_reg_mr(pd, b.at(0), 4096, kAllAccess);
    post_remote<IBV_WR_RDMA_READ>(a, b.address(0), mr->rkey, 8, request);
    EXPECT_EQ(simverbs_advance_ps(10'000'000), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}
void misaligned(End& a, End& b, Request (*request)(ibv_wr_opcode)) {
    post_remote<IBV_WR_ATOMIC_FETCH_AND_ADD>(a, b.address(4), b.mr->rkey, 8, request);
}

constexpr unsigned kWrite = kLocal | IBV_ACCESS_REMOTE_WRITE;
constexpr unsigned kRead = kLocal | IBV_ACCESS_REMOTE_READ;

// clang-format off
INSTANTIATE_TEST_SUITE_P(
    Rc, RemoteFault,
    testing::Values(
        RemoteCase{"qp_lacks_write", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, kRead, to_good_memory<IBV_WR_RDMA_WRITE, 8>},
        RemoteCase{"qp_lacks_read", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, kWrite, to_good_memory<IBV_WR_RDMA_READ, 8>},
        RemoteCase{"qp_lacks_atomic", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, kWrite, to_good_memory<IBV_WR_ATOMIC_CMP_AND_SWP, 8>},
        RemoteCase{"qp_lacks_write_of_nothing", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, kRead, to_good_memory<IBV_WR_RDMA_WRITE, 0>},
        RemoteCase{"misaligned_atomic", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, misaligned},
        RemoteCase{"write_unknown_rkey", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_unknown_key<IBV_WR_RDMA_WRITE, 4000>},
        RemoteCase{"read_unknown_rkey", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_unknown_key<IBV_WR_RDMA_READ, 4000>},
        RemoteCase{"atomic_unknown_rkey", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_unknown_key<IBV_WR_ATOMIC_FETCH_AND_ADD, 8>},
        RemoteCase{"write_past_the_end", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, past_the_end<IBV_WR_RDMA_WRITE, 8>},
        RemoteCase{"read_past_the_end", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, past_the_end<IBV_WR_RDMA_READ, 8>},
        RemoteCase{"write_to_read_only", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_region_with<IBV_WR_RDMA_WRITE, 8, kRead>},
        RemoteCase{"read_of_write_only", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_region_with<IBV_WR_RDMA_READ, 8, kWrite>},
        RemoteCase{"atomic_not_allowed", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_region_with<IBV_WR_ATOMIC_CMP_AND_SWP, 8, kWrite | kRead>},
        RemoteCase{"deregistered", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_deregistered},
        RemoteCase{"another_pd", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, kAllAccess, to_other_pd}),
    [](const auto& row) { return row.param.name; });
// clang-format on

TEST_F(RcFault, MoreReadsThanTheResponderTakesIsRemInvReq) {
    connect();
    b->to_state(IBV_QPS_RESET);
    ibv_qp_attr attr = init_attr({});
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kInitMask), 0);
    attr = rtr_attr(*a, {.reads = 0});
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtrMask), 0);
    attr = rts_attr({});
    ASSERT_EQ(ibv_modify_qp(b->qp, &attr, kRtsMask), 0);
    ASSERT_EQ(
        failing(IBV_WR_RDMA_READ).into(a->range(0, 8)).to(b->address(0), b->mr->rkey).post(*a), 0);
    post_more();
    expect_requester_failed(IBV_WC_REM_INV_REQ_ERR);
    expect_responder_stopped(IBV_EVENT_QP_ACCESS_ERR, {});
}

// The whole range is looked at before the first packet lands.
TEST_F(RcFault, NothingOfAWriteThatEndsBeyondTheRegionLands) {
    connect();
    std::fill_n(a->at(0), 8192, std::uint8_t{9});
    // The last 4096 bytes of the peer's memory, and 4096 beyond.
    const std::size_t start = End::kBytes - 4096;
    std::fill_n(b->at(start), 4096, std::uint8_t{5});
    ASSERT_EQ(failing(IBV_WR_RDMA_WRITE)
                  .from(a->range(0, 8192))
                  .to(b->address(start), b->mr->rkey)
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_REM_ACCESS_ERR);
    expect_responder_stopped(IBV_EVENT_QP_ACCESS_ERR, {});
    EXPECT_EQ(std::count(b->at(start), b->at(start) + 4096, 5), 4096);
}

// ---- found by the responder on its own receive
// ---------------------------------------------------

TEST_F(RcFault, ReceiveTooSmallIsLocLenThereAndRemInvReqHere) {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(0, 10), b->range(20, 10)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(failing(IBV_WR_SEND).from(a->range(0, 21)).post(*a), 0);
    post_more();
    expect_requester_failed(IBV_WC_REM_INV_REQ_ERR);
    expect_receive_failed(IBV_WC_LOC_LEN_ERR);
}

TEST_F(RcFault, ReceiveWithABadKeyIsLocProtThereAndRemOpHere) {
    connect();
    ASSERT_EQ(b->receive(1, {{b->address(0), 64, b->mr->lkey ^ 0xFF00}}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(failing(IBV_WR_SEND).from(a->range(0, 64)).post(*a), 0);
    post_more();
    expect_requester_failed(IBV_WC_REM_OP_ERR);
    expect_receive_failed(IBV_WC_LOC_PROT_ERR);
}

TEST_F(RcFault, ReceiveIntoReadOnlyMemoryIsLocProtThereAndRemOpHere) {
    connect();
    ibv_mr* read_only = region(*b, 0);
    ASSERT_EQ(b->receive(1, {{b->address(0), 64, read_only->lkey}}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(failing(IBV_WR_SEND).from(a->range(0, 64)).post(*a), 0);
    post_more();
    expect_requester_failed(IBV_WC_REM_OP_ERR);
    expect_receive_failed(IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(read_only), 0);
}

TEST_F(RcFault, WriteWithImmediateAndABadKeyIsLocAccessThereAndRemAccessHere) {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(failing(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .from(a->range(0, 64))
                  .to(b->address(0), b->mr->rkey ^ 0xFF00)
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_REM_ACCESS_ERR);
    expect_receive_failed(IBV_WC_LOC_ACCESS_ERR);
}

// The key is looked at with the first packet, the receive taken with the last.
TEST_F(RcFault, WriteWithImmediateThatFailsBeforeItsLastPacketTakesNoReceive) {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(failing(IBV_WR_RDMA_WRITE_WITH_IMM)
                  .from(a->range(0, 4096))
                  .to(b->address(0), b->mr->rkey ^ 0xFF00)
                  .post(*a),
              0);
    post_more();
    expect_requester_failed(IBV_WC_REM_ACCESS_ERR);
    expect_responder_stopped(IBV_EVENT_QP_ACCESS_ERR, {1});
}

TEST_F(RcFault, NoKeyIsLookedAtForZeroBytes) {
    connect();
    ASSERT_EQ(Request(IBV_WR_RDMA_WRITE).id(1).to(b->address(0), 0xDEAD).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(Request(IBV_WR_RDMA_READ).id(2).to(0, 0).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(b->receive(3, {}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from({a->address(0), 0, 0xDEAD}).post(*a), 0);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace verbs_test
