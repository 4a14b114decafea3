// <simverbs/gtest.hpp>: what its matchers take, and what they say of what they do not.
#include <gtest/gtest-spi.h>

#include "simverbs/gtest.hpp"

#include "injection.hpp"

namespace verbs_test {
namespace {

using simverbs::CompletesWith;
using simverbs::NothingWithin;
using namespace std::chrono_literals;

class Matchers : public Injection {
  protected:
    template <class M>
    static std::string explained(const M& matcher, ibv_cq* cq) {
        testing::StringMatchResultListener listener;
        EXPECT_FALSE(testing::ExplainMatchResult(matcher, cq, &listener));
        return listener.str();
    }
};

TEST_F(Matchers, WaitForTheNextCompletion) {
    connect({.timeout = 10, .retries = 1});
    write(1, 3);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_SUCCESS));
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    write(2, 3);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_THAT(b->cq, NothingWithin(1s));
}

TEST_F(Matchers, SayWhatCameInstead) {
    connect();
    write(7, 1);
    EXPECT_THAT(explained(CompletesWith(IBV_WC_REM_ACCESS_ERR), a->cq),
                testing::AllOf(testing::HasSubstr("wr_id 7"), testing::HasSubstr("success")));
    EXPECT_THAT(explained(CompletesWith(IBV_WC_SUCCESS), a->cq), testing::HasSubstr("nothing"));
    write(8, 1);
    EXPECT_THAT(explained(NothingWithin(1s), a->cq), testing::HasSubstr("wr_id 8"));
}

TEST_F(Matchers, LetTimePass) {
    connect();
    const auto before = simverbs::now();
    EXPECT_THAT(a->cq, NothingWithin(3ms));
    EXPECT_EQ(simverbs::now() - before, 3ms);
}

// GoogleMock matches once more for its message: what came the first time is what it speaks of.
TEST_F(Matchers, TellOfWhatWasTakenTheFirstTime) {
    connect();
    write(7, 1);
    write(8, 1);
    ibv_cq* const cq = a->cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_REM_ACCESS_ERR)),
                            "which completes wr_id 7 with 'success'");
    EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS));  // 8 is still there
    write(9, 1);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, testing::Not(CompletesWith(IBV_WC_SUCCESS))),
                            "which completes wr_id 9 with 'success'");
    write(10, 1);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, NothingWithin(1s)),
                            "which completes wr_id 10 with 'success'");
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS)),
                            "which completes nothing within ");
}

TEST_F(Matchers, TellOfEachOfSeveralQueues) {
    connect();
    write(7, 1);
    simverbs::advance(1ms);
    const std::vector<ibv_cq*> queues = {b->cq, a->cq};
    const auto nothing = NothingWithin(1ms);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(queues, testing::ElementsAre(nothing, nothing)),
                            "element #1 doesn't match, which completes wr_id 7");
}

TEST_F(Matchers, SayTimesInUnitsOfTheirSize) {
    connect();
    write(7, 1);
    ibv_cq* const cq = a->cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, NothingWithin(1500us)),
                            "completes nothing within 1.5 ms");
    using simverbs::Picoseconds;
    EXPECT_EQ(simverbs::to_string(Picoseconds(1s)), "1 s");
    EXPECT_EQ(simverbs::to_string(Picoseconds(67'108'864'000)), "67.108864 ms");
    EXPECT_EQ(simverbs::to_string(Picoseconds(1'000'000'000'001)), "1.000000000001 s");
    EXPECT_EQ(simverbs::to_string(Picoseconds(10us)), "10 us");
    EXPECT_EQ(simverbs::to_string(Picoseconds(-1'050)), "-1.05 ns");
    EXPECT_EQ(simverbs::to_string(Picoseconds(999)), "999 ps");
    EXPECT_EQ(simverbs::to_string(Picoseconds(0)), "0 ps");
}

using simverbs::HasByteLen;
using simverbs::HasOpcode;
using simverbs::HasStatus;
using simverbs::HasWrId;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

TEST_F(Matchers, LookAtFieldsOfOneCompletion) {
    connect();
    write(7, 3);
    write(8, 3);
    write(9, 3);
    ibv_cq* const cq = a->cq;
    EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS, AllOf(HasWrId(7), HasOpcode(IBV_WC_RDMA_WRITE))));
    EXPECT_THAT(
        cq, simverbs::Completes(AnyOf(HasStatus(IBV_WC_RETRY_EXC_ERR), HasStatus(IBV_WC_SUCCESS))));
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS, HasWrId(10))),
                            "completes with 'success' and is an object whose field `wr_id`");
}

TEST_F(Matchers, SayHowCloseAFaultCameToFiring) {
    connect();
    const simverbs::Fault third = simverbs::drop().from("h0").requests().nth(3).inject();
    const simverbs::Fault other = simverbs::drop().from("h1").requests().inject();
    const simverbs::Fault unlucky =
        simverbs::drop().from("h0").with_chance(1, 1'000'000'000).inject();
    write(7, 1);
    write(8, 1);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(third, simverbs::Fired(1)),
                            "which fired 0 times: 2 of what it waits for came, and it fires on "
                            "number 3");
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(other, simverbs::Fired(1)),
                            "which fired 0 times: nothing that it waits for came");
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(unlucky, simverbs::Fired(testing::Ge(1U))),
                            "2 of what it waits for came, and its chance hit none");
    write(9, 1);
    EXPECT_THAT(a->cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(third, simverbs::Fired(1));
    EXPECT_EQ(third.matched(), 3U);
}

using Connected = simverbs::TwoHosts;

TEST_F(Connected, FixtureCountsTheBytesOfAReceive) {
    h1.receive(64, 3);
    h0.send(17);
    EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_SUCCESS, AllOf(HasWrId(3), HasByteLen(17))));
}

TEST_F(Connected, AKeyOfTheOtherHostIsNotItsOwn) {
    ASSERT_NE(h0.mr->rkey, h1.mr->rkey);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(h0.bytes.data()), 8, h0.mr->lkey};
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(h1.bytes.data());
    request.wr.rdma.rkey = h0.mr->rkey;  // h1's is meant
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(h0.qp, &request, &bad), 0);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_REM_ACCESS_ERR));
}

// A fixture used as an object, so that a test can look at what it says of itself.
class Inner : public simverbs::TwoHosts {
  public:
    using TwoHosts::h0;
    using TwoHosts::h1;
    explicit Inner(const simverbs::WorldOptions& options = {}) : TwoHosts(options) {}
    void SetUp() override { TwoHosts::SetUp(); }
    void TearDown() override { TwoHosts::TearDown(); }

  private:
    void TestBody() override {}
};

class Fixture : public testing::Test {
  protected:
    ~Fixture() override {
        for (const char* name : {"SIMVERBS_MEMLOCK", "SIMVERBS_SEED", "SIMVERBS_TOPOLOGY",
                                 "SIMVERBS_PERSONALITY", "SIMVERBS_WARN"}) {
            unsetenv(name);
        }
    }
};

TEST_F(Fixture, SaysThatItsMemoryIsNotRegistered) {
    setenv("SIMVERBS_MEMLOCK", "4096", 1);
    EXPECT_FATAL_FAILURE(
        {
            Inner inner;
            inner.SetUp();
            inner.TearDown();
        },
        "ibv_reg_mr: Cannot allocate memory");
}

TEST_F(Fixture, FailsWhereADeviceStaysOpen) {
    EXPECT_NONFATAL_FAILURE(
        {
            Inner inner;
            inner.SetUp();
            ibv_context* const left = ibv_open_device(inner.h0.context->device);
            // Static, since its memory stays allocated.
            static ibv_cq* s_left_behind = nullptr;
            s_left_behind = ibv_create_cq(left, 1, nullptr, nullptr, 0);
            EXPECT_NE(s_left_behind, nullptr);
            inner.TearDown();
        },
        "simverbs0 with 0 queue pairs and 1 completion queue");
    Inner next;
    next.SetUp();
    next.h0.write(next.h1, 1);
    EXPECT_THAT(next.h0.cq, CompletesWith(IBV_WC_SUCCESS));
    next.TearDown();
}

TEST_F(Fixture, TakesFromTheEnvironmentWhatItIsNotGiven) {
    setenv("SIMVERBS_TOPOLOGY", "eth-star:3", 1);
    setenv("SIMVERBS_PERSONALITY", "rxe", 1);
    {
        Inner inner;
        inner.SetUp();
        EXPECT_EQ(inner.h0.port.link_layer, IBV_LINK_LAYER_ETHERNET);
        inner.TearDown();
    }
    Inner given({.topology = "star:2"});
    given.SetUp();
    EXPECT_EQ(given.h0.port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    given.TearDown();
}

TEST_F(Fixture, IsNoMistakeItself) {
    setenv("SIMVERBS_WARN", "1", 1);
    testing::internal::CaptureStderr();
    {
        Inner inner;
        inner.SetUp();
        inner.h1.receive(64);
        inner.h0.send(64);
        EXPECT_THAT(inner.h1.cq, CompletesWith(IBV_WC_SUCCESS));
        inner.TearDown();
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Datagrams that are dropped complete nothing: why is said all the same.
class Datagrams : public simverbs::TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_UD;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = 4;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        init.send_cq = init.recv_cq = h0.cq;
        from = ibv_create_qp(h0.pd, &init);
        init.send_cq = init.recv_cq = h1.cq;
        to = ibv_create_qp(h1.pd, &init);
        simverbs::connect(*from, *to);
        ibv_ah_attr address{};
        address.dlid = h1.port.lid;
        address.port_num = 1;
        ah = ibv_create_ah(h0.pd, &address);
    }
    void TearDown() override {
        ibv_destroy_ah(ah);
        ibv_destroy_qp(from);
        ibv_destroy_qp(to);
        TwoHosts::TearDown();
    }
    void receive(std::uint32_t length) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(h1.bytes.data()), length, h1.mr->lkey};
        ibv_recv_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(to, &request, &bad), 0);
    }
    void send(std::uint32_t qkey) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(h0.bytes.data()), 64, h0.mr->lkey};
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.wr.ud.ah = ah;
        request.wr.ud.remote_qpn = to->qp_num;
        request.wr.ud.remote_qkey = qkey;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(from, &request, &bad), 0);
    }
    static constexpr std::uint32_t kQkey = 0x11111111;

    ibv_qp* from = nullptr;
    ibv_qp* to = nullptr;
    ibv_ah* ah = nullptr;
};

TEST_F(Datagrams, ThatDoNotFitAreNamed) {
    receive(64);
    send(kQkey);
    ibv_cq* const cq = h1.cq;
    EXPECT_NONFATAL_FAILURE(
        EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS)),
        "1 receive posted; waits for a message; dropped 1 message: the receive is too small for "
        "it (UD: 40 bytes for the GRH, then the message)");
}

TEST_F(Datagrams, WithAnotherQkeyAreNamed) {
    receive(104);
    send(kQkey + 1);
    send(kQkey + 1);
    ibv_cq* const cq = h1.cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS)),
                            "dropped 2 messages, the last because it carried another Q_Key");
}

TEST_F(Datagrams, WithoutAReceiveAreNamed) {
    send(kQkey);
    ibv_cq* const cq = h1.cq;
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(cq, CompletesWith(IBV_WC_SUCCESS)),
                            "dropped 1 message: no receive was posted for it");
}

TEST_F(Connected, FixtureSaysWhyARequestFailed) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.send(64, 5);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "which completes wr_id 5 with 'transport retry counter exceeded' "
                            "(vendor_err 48)\n"
                            "    536.870ms: request 0 of h0 QP 0x");
    EXPECT_THAT(simverbs::explain("h0", h0.qp->qp_num),
                testing::HasSubstr("Root: the injected fault 1 (drop)"));
    EXPECT_EQ(simverbs::explain("h1", h1.qp->qp_num), "");
    EXPECT_EQ(simverbs::explain("h0", h0.qp->qp_num + 1), "");
    EXPECT_EQ(simverbs::explain(), simverbs::explain("h0"));
}

// Who waits for nothing is told what failed elsewhere.
TEST_F(Connected, FixtureSaysWhatFailedOnTheOtherHost) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h1.receive(64);
    h0.send(64, 5);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "of h0 QP 0x10001 completed with RETRY_EXC_ERR");
}

class WithoutRecords : public simverbs::TwoHosts {
  protected:
    WithoutRecords() : TwoHosts({.kept_records = 0}) {}
};

TEST_F(WithoutRecords, TheReasonIsNotKnown) {
    h0.send(64, 5);
    ASSERT_EQ(h1.qp->state, IBV_QPS_RTS);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(h0.qp, &attr, IBV_QP_STATE), 0);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS)),
                            "(simverbs_explain_completion: no records are kept");
}

class FewRecords : public simverbs::TwoHosts {
  protected:
    FewRecords() : TwoHosts({.kept_records = 10}) {}
};

TEST_F(FewRecords, AreThoseOfTheEnd) {
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.send(64, 5);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_THAT(simverbs::explain("h0"), testing::HasSubstr("were forgotten)"));
}

TEST_F(Connected, FixtureSendsAndReceives) {
    h0.bytes[0] = 42;
    h1.receive(64, 7);
    h0.send(64);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[0], 42);
}

TEST_F(Connected, FixtureSaysWhatIsWaitedForWhereNothingCompletes) {
    h1.send(64);  // and nothing is posted for it: RNR retries without end
    testing::StringMatchResultListener listener;
    const testing::Matcher<ibv_cq*> matcher = simverbs::CompletesWith(IBV_WC_SUCCESS);
    EXPECT_FALSE(matcher.Matches(h1.cq));
    matcher.MatchAndExplain(h1.cq, &listener);
    EXPECT_THAT(listener.str(), testing::HasSubstr("which completes nothing within "));
    EXPECT_THAT(listener.str(),
                testing::ContainsRegex("host h1\n.*1 send outstanding.*waits .*"
                                       "its peer had no receive posted, [0-9]+ times"));
}

// RNR retries would go on for ever: it says so after 100 ms of virtual time.
TEST_F(Connected, NobodyPostsAReceive) {
    h1.send(64);
    EXPECT_FALSE(testing::Matches(simverbs::CompletesWith(IBV_WC_SUCCESS))(h1.cq));
    EXPECT_GE(simverbs::now(), simverbs::kReceivePatience);
    EXPECT_LT(simverbs::now(), 150ms);
}

// Posts a receive at h0 once that time has come, as another fiber or thread would.
struct LatePeer {
    simverbs::TwoHostsEnd* end;
    simverbs::Picoseconds at;
    bool has_posted = false;

    static void wait(void* argument) {
        auto* const self = static_cast<LatePeer*>(argument);
        int ran = 0;
        ASSERT_EQ(simverbs_step_ps(INT64_MAX, &ran), 0);
        if (!self->has_posted && simverbs::now() >= self->at) {
            self->has_posted = true;
            self->end->receive(64);
        }
    }
};

TEST_F(Connected, AReceiveThatComesLateIsWaitedFor) {
    h1.send(64);
    LatePeer peer{&h0, 95ms};
    simverbs_set_wait_hook(&LatePeer::wait, &peer);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    simverbs_set_wait_hook(nullptr, nullptr);
    EXPECT_GE(simverbs::now(), 95ms);
}

// A request that waits for an answer may still complete, however long RNR retries go on.
class Patient : public simverbs::TwoHosts {
  protected:
    Patient() : TwoHosts({}, {.timeout = 16, .min_rnr_timer = 12}) {}
};

TEST_F(Patient, RetriesOfAnotherRequestAreWaitedFor) {
    const simverbs::Fault lost = simverbs::drop().from("h0").opcode("SEND").every_time().inject();
    h1.send(64);
    h0.send(64);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
    EXPECT_GE(simverbs::now(), 2s);
}

// The world ends with an acknowledgment in it, of which its records are told no more.
TEST_F(Connected, FixtureEndsWhileAnAnswerIsUnderWay) {
    h1.receive(64);
    h0.send(64);
    EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
}

TEST_F(Connected, FixtureWritesAndReadsUnderFaults) {
    const simverbs::Fault lost = simverbs::drop().from("h0").psn(1).attempt(1).inject();
    h0.bytes[1] = 7;
    h0.write(h1, 2);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h1.bytes[1], 7);
    EXPECT_EQ(lost.fired(), 1U);
    h1.bytes[1] = 8;
    h0.read(h1, 2);
    EXPECT_THAT(h0.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(h0.bytes[1], 8);
}

}  // namespace
}  // namespace verbs_test
