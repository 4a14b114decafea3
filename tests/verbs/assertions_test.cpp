// <simverbs/gtest.hpp>: one completion for each assertion, explanations of that completion and no
// other, and mistakes of tests that the fixture and the matchers find.
#include <sstream>

#include <gtest/gtest-spi.h>

#include "simverbs/gtest.hpp"

#include "injection.hpp"

namespace verbs_test {
namespace {

using simverbs::CompletesWith;
using simverbs::Fired;
using simverbs::HasOpcode;
using simverbs::HasStatus;
using simverbs::HasWrId;
using simverbs::NothingWithin;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

class Assertions : public simverbs::TwoHosts {
  protected:
    void exchange(int count) {
        for (int i = 0; i < count; ++i) {
            const auto id = static_cast<std::uint64_t>(i);
            h1.receive(64, id);
            h0.send(64, 100 + id);
        }
    }
    // Returns what an assertion that fails says.
    template <class M>
    static std::string said_by(ibv_cq* cq, const M& matcher) {
        testing::StringMatchResultListener listener;
        EXPECT_FALSE(testing::ExplainMatchResult(matcher, cq, &listener));
        return listener.str();
    }
};

TEST_F(Assertions, AlternativesAreAboutOneCompletion) {
    exchange(6);
    EXPECT_THAT(h0.cq, AnyOf(CompletesWith(IBV_WC_RETRY_EXC_ERR), CompletesWith(IBV_WC_SUCCESS)));
    EXPECT_NONFATAL_FAILURE(
        EXPECT_THAT(h0.cq, AnyOf(CompletesWith(IBV_WC_RETRY_EXC_ERR),
                                 CompletesWith(IBV_WC_RNR_RETRY_EXC_ERR))),
        "which completes wr_id 101 with 'success', and which completes wr_id 101 with 'success'");
    EXPECT_THAT(h0.cq, AllOf(CompletesWith(IBV_WC_SUCCESS), simverbs::Completes(HasWrId(102))));
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h0.cq, AllOf(CompletesWith(IBV_WC_SUCCESS, HasWrId(103)),
                                                     CompletesWith(IBV_WC_SUCCESS, HasWrId(104)))),
                            "which completes wr_id 103 with 'success'");
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS, HasWrId(104)));
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS, HasWrId(105)));
    EXPECT_THAT(h0.cq, NothingWithin(1ms));
}

TEST_F(Assertions, NothingOrACompletionAreAboutOneLook) {
    exchange(2);
    simverbs::advance(1ms);
    EXPECT_THAT(h0.cq, AnyOf(NothingWithin(1ns), CompletesWith(IBV_WC_SUCCESS, HasWrId(100))));
    EXPECT_NONFATAL_FAILURE(
        EXPECT_THAT(h0.cq, AnyOf(CompletesWith(IBV_WC_WR_FLUSH_ERR), NothingWithin(1ns))),
        "which completes wr_id 101");
    const simverbs::Fault late = simverbs::delay(1ms).from("h0").inject();
    exchange(1);
    EXPECT_THAT(h0.cq, AllOf(NothingWithin(500us), CompletesWith(IBV_WC_SUCCESS)));
}

TEST_F(Assertions, EachElementOfAListIsALookOfItsOwn) {
    exchange(3);
    const std::vector<ibv_cq*> thrice(3, h0.cq);
    EXPECT_THAT(thrice, testing::ElementsAre(CompletesWith(IBV_WC_SUCCESS, HasWrId(100)),
                                             CompletesWith(IBV_WC_SUCCESS, HasWrId(101)),
                                             CompletesWith(IBV_WC_SUCCESS, HasWrId(102))));
    EXPECT_THAT(thrice, testing::Each(Not(CompletesWith(IBV_WC_SUCCESS))));
}

TEST_F(Assertions, MatchersThatAreKeptAskEachTime) {
    exchange(4);
    const auto as_it_is = CompletesWith(IBV_WC_SUCCESS);
    const testing::Matcher<ibv_cq*> converted = as_it_is;
    for (ibv_cq* cq : {h0.cq, h1.cq, h0.cq}) {
        EXPECT_THAT(cq, as_it_is);
    }
    EXPECT_THAT(h0.cq, converted);
    EXPECT_THAT(h0.cq, converted);
    EXPECT_THAT(h0.cq, Not(converted));
}

// While an assertion waits, another fiber of its thread may be in one of its own.
struct Meanwhile {
    ibv_cq* cq;
    bool has_begun = false;

    static void wait(void* argument) {
        auto* const self = static_cast<Meanwhile*>(argument);
        int ran = 0;
        ASSERT_EQ(simverbs_step_ps(INT64_MAX, &ran), 0);
        if (!self->has_begun) {
            self->has_begun = true;
            EXPECT_THAT(self->cq, CompletesWith(IBV_WC_SUCCESS, HasWrId(100)));
        }
    }
};

TEST_F(Assertions, AssertionsOfSeveralFibersAreApart) {
    exchange(2);
    Meanwhile other{h0.cq};
    simverbs_set_wait_hook(&Meanwhile::wait, &other);
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_WR_FLUSH_ERR)),
                            "which completes wr_id 0 with 'success'");
    EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_SUCCESS, HasWrId(1)));
    simverbs_set_wait_hook(nullptr, nullptr);
}

#define NAMED(status)                       \
    std::pair<ibv_wc_status, const char*> { \
        status, #status                     \
    }
TEST(Printing, NamesEachStatusAsRdmaCoreDoes) {
    int number = 0;
    for (const auto& [status, name] : {NAMED(IBV_WC_SUCCESS),
                                       NAMED(IBV_WC_LOC_LEN_ERR),
                                       NAMED(IBV_WC_LOC_QP_OP_ERR),
                                       NAMED(IBV_WC_LOC_EEC_OP_ERR),
                                       NAMED(IBV_WC_LOC_PROT_ERR),
                                       NAMED(IBV_WC_WR_FLUSH_ERR),
                                       NAMED(IBV_WC_MW_BIND_ERR),
                                       NAMED(IBV_WC_BAD_RESP_ERR),
                                       NAMED(IBV_WC_LOC_ACCESS_ERR),
                                       NAMED(IBV_WC_REM_INV_REQ_ERR),
                                       NAMED(IBV_WC_REM_ACCESS_ERR),
                                       NAMED(IBV_WC_REM_OP_ERR),
                                       NAMED(IBV_WC_RETRY_EXC_ERR),
                                       NAMED(IBV_WC_RNR_RETRY_EXC_ERR),
                                       NAMED(IBV_WC_LOC_RDD_VIOL_ERR),
                                       NAMED(IBV_WC_REM_INV_RD_REQ_ERR),
                                       NAMED(IBV_WC_REM_ABORT_ERR),
                                       NAMED(IBV_WC_INV_EECN_ERR),
                                       NAMED(IBV_WC_INV_EEC_STATE_ERR),
                                       NAMED(IBV_WC_FATAL_ERR),
                                       NAMED(IBV_WC_RESP_TIMEOUT_ERR),
                                       NAMED(IBV_WC_GENERAL_ERR),
                                       NAMED(IBV_WC_TM_ERR),
                                       NAMED(IBV_WC_TM_RNDV_INCOMPLETE)}) {
        std::ostringstream said;
        PrintTo(status, &said);
        EXPECT_EQ(said.str(), std::string(name) + " (" + std::to_string(number++) + ")");
    }
}
#undef NAMED

TEST_F(Assertions, StatusesAndOpcodesHaveNames) {
    exchange(2);
    EXPECT_THAT(said_by(h0.cq, simverbs::Completes(HasStatus(IBV_WC_RETRY_EXC_ERR))),
                HasSubstr("whose field `status` is IBV_WC_SUCCESS (0)"));
    EXPECT_THAT(said_by(h1.cq, simverbs::Completes(HasOpcode(IBV_WC_RECV_RDMA_WITH_IMM))),
                HasSubstr("whose field `opcode` is IBV_WC_RECV (128)"));
    EXPECT_EQ(testing::PrintToString(IBV_WC_FETCH_ADD), "IBV_WC_FETCH_ADD (4)");
    EXPECT_EQ(testing::PrintToString(static_cast<ibv_wc_opcode>(200)), "IBV_WC_? (200)");
}

// A question without an answer is no mismatch, which Not() would turn into success.
TEST_F(Assertions, WhatCannotBeAskedIsAnError) {
    EXPECT_THROW(static_cast<void>(NothingWithin(-1ms)), simverbs::Error);
    EXPECT_THROW(static_cast<void>(NothingWithin(std::chrono::hours(24 * 365))), simverbs::Error);
    EXPECT_THROW(simverbs::advance(std::chrono::hours(24 * 365)), simverbs::Error);
    ibv_cq* const none = nullptr;
    EXPECT_THROW(EXPECT_THAT(none, Not(CompletesWith(IBV_WC_SUCCESS))), simverbs::Error);
    EXPECT_THROW(EXPECT_THAT(none, NothingWithin(1ns)), simverbs::Error);
    EXPECT_THAT(h0.cq, NothingWithin(std::chrono::duration<double>(0.5)));
    EXPECT_EQ(simverbs::now(), 500ms);
}

// ---- faults that had nothing to be done to

TEST_F(Assertions, AFaultThatDidNothingHasNotFired) {
    using simverbs::FaultWords;
    const simverbs::Fault none =
        FaultWords(SIMVERBS_FAULT_CQ_OVERRUN).target("h0").target_object(777).inject();
    EXPECT_NONFATAL_FAILURE(EXPECT_THAT(none, Fired(1)),
                            "1 of them did nothing, since there is no such completion queue");
    EXPECT_THAT(none, Fired(0));
    EXPECT_EQ(none.fired(), 1U);
    EXPECT_EQ(none.missed(), 1U);
    std::uint64_t missed = 0;
    EXPECT_EQ(simverbs_fault_missed(none.id() + 1, &missed, nullptr), ENOENT);
    const simverbs::Fault overrun =
        FaultWords(SIMVERBS_FAULT_CQ_OVERRUN).target("h0").target_object(h0.cq->handle).inject();
    EXPECT_THAT(overrun, Fired(1));
}

TEST_F(Assertions, AFaultThatDidNothingIsNoRoot) {
    using simverbs::FaultWords;
    const simverbs::Fault none =
        FaultWords(SIMVERBS_FAULT_MR_INVALIDATE).target("h0").target_object(0xdead).inject();
    h0.write(h1, 5000);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_LOC_PROT_ERR));
    const std::string text = simverbs::explain("h0", h0.qp->qp_num);
    EXPECT_THAT(text, HasSubstr("No fault was injected that leads to it"));
    EXPECT_THAT(text, HasSubstr("the injected fault 1 (mr_invalidate) fired and did nothing: there "
                                "is no such memory region"));
}

// ---- explanations of the completion that was taken

TEST_F(Assertions, AReconnectedQueuePairIsExplainedAnew) {
    h1.receive(8, 1);
    h0.send(64, 2);
    EXPECT_THAT(said_by(h0.cq, CompletesWith(IBV_WC_SUCCESS)), HasSubstr("with REM_INV_REQ_ERR"));
    h0.send(64, 3);
    EXPECT_THAT(said_by(h0.cq, CompletesWith(IBV_WC_SUCCESS)),
                AllOf(HasSubstr("request 1 of h0 QP 0x10001 completed with WR_FLUSH_ERR"),
                      HasSubstr("request 0 of h0 QP 0x10001 completed with REM_INV_REQ_ERR")));
    EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_LOC_LEN_ERR));

    simverbs::connect(*h0.qp, *h1.qp);
    EXPECT_EQ(simverbs::explain(), "");
    EXPECT_EQ(simverbs::explain("h0", h0.qp->qp_num), "");
    h0.write(h1, 5000, 9);
    EXPECT_THAT(said_by(h0.cq, CompletesWith(IBV_WC_SUCCESS)),
                AllOf(HasSubstr("with LOC_PROT_ERR"), Not(HasSubstr("REM_INV_REQ_ERR"))));

    simverbs::connect(*h0.qp, *h1.qp);
    h1.receive(64, 3);
    const simverbs::Fault down = simverbs::link_down("h1-s0").inject();
    h0.send(64, 4);
    EXPECT_THAT(said_by(h0.cq, CompletesWith(IBV_WC_SUCCESS)),
                AllOf(HasSubstr("with RETRY_EXC_ERR"), HasSubstr("sent 1 packet on"),
                      HasSubstr("Root: the injected fault 1 (link_down)"),
                      Not(HasSubstr("REM_INV_REQ_ERR")), Not(HasSubstr("LOC_PROT_ERR"))));
}

// A responder that failed for the same reason in an earlier connection is not named.
TEST_F(Assertions, TheResponderOfThisConnectionIsNamed) {
    for (const auto& again : {false, true}) {
        if (again) {
            simverbs::connect(*h0.qp, *h1.qp);
            simverbs::advance(1ms);
        }
        h1.receive(8, 1);
        h0.send(64, 2);
        const std::string text = said_by(h0.cq, CompletesWith(IBV_WC_SUCCESS));
        EXPECT_THAT(text,
                    HasSubstr(again ? "    1.003ms: h1 found it" : "    1.112us: h1 found it"))
            << text;
        EXPECT_THAT(h1.cq, CompletesWith(IBV_WC_LOC_LEN_ERR));
    }
}

class ForgottenRecords : public simverbs::TwoHosts {
  protected:
    ForgottenRecords() : TwoHosts({.kept_records = 20}) {}
};

// Counts are of what is known.
TEST_F(ForgottenRecords, NothingIsCountedThatWasForgotten) {
    for (int i = 0; i < 40; ++i) {
        h0.write(h1, 64);
        EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
    }
    const simverbs::Fault lost = simverbs::drop().from("h0").every_time().inject();
    h0.write(h1, 64);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_RETRY_EXC_ERR));
    const std::string text = simverbs::explain("h0");
    EXPECT_THAT(text, Not(HasSubstr("had sent 0 packets")));
    EXPECT_THAT(text, HasSubstr("again, as far back as records go"));
    EXPECT_THAT(text, testing::ContainsRegex("PSN 41 of its queue pair.*at least [0-9] times"));
}

TEST_F(ForgottenRecords, NoRootIsDeniedThatWasForgotten) {
    const simverbs::Fault down = simverbs::link_down("h1-s0").inject();
    simverbs::advance(1ms);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    h0.write(h1, 5000);
    for (int i = 0; i < 12; ++i) {
        ibv_query_qp(h0.qp, &attr, IBV_QP_STATE, &init);
    }
    EXPECT_THAT(simverbs::explain("h0"),
                AllOf(HasSubstr("No injected fault that leads to it is among the records"),
                      Not(HasSubstr("what the programs asked for did"))));
}

// ---- what tests leave behind

class Leaking : public simverbs::TwoHosts {
  public:
    void SetUp() override { TwoHosts::SetUp(); }
    void TearDown() override { TwoHosts::TearDown(); }
    // The objects are static, since their memory stays allocated.
    void leave_memory() {
        static ibv_pd* s_pd = nullptr;
        static ibv_mr* s_mr = nullptr;
        s_pd = ibv_alloc_pd(h1.context);
        s_mr = ibv_reg_mr(s_pd, h1.bytes.data(), 64, IBV_ACCESS_ON_DEMAND);  // pins nothing
        EXPECT_NE(s_mr, nullptr);
    }
    void leave_queues() {
        static ibv_cq* s_cq = nullptr;
        static ibv_comp_channel* s_channel = nullptr;
        s_cq = ibv_create_cq(h0.context, 4, nullptr, nullptr, 0);
        s_channel = ibv_create_comp_channel(h0.context);
        EXPECT_NE(s_cq, nullptr);
        EXPECT_NE(s_channel, nullptr);
    }

  private:
    void TestBody() override {}
};

TEST(LeakingFixture, NamesWhatTheTestHasNotDestroyed) {
    EXPECT_NONFATAL_FAILURE(
        {
            Leaking test;
            test.SetUp();
            test.leave_memory();
            test.TearDown();
        },
        "1 protection domain, 1 memory region");
    EXPECT_NONFATAL_FAILURE(
        {
            Leaking test;
            test.SetUp();
            test.leave_queues();
            test.TearDown();
        },
        "1 completion queue, 1 completion channel");
}

// ---- traces

TEST_F(Assertions, TracesDoNotSilenceEachOther) {
    const simverbs::Trace first;
    {
        const simverbs::Trace second;
        h0.write(h1, 1);
        EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
        EXPECT_EQ(second.count("completion"), 1U);
        EXPECT_EQ(first.records().size(), second.records().size());
    }
    h0.write(h1, 1);
    EXPECT_THAT(h0.cq, CompletesWith(IBV_WC_SUCCESS));
    EXPECT_EQ(first.count("completion"), 2U);
    EXPECT_EQ(simverbs_trace_callback([](const simverbs_record*, void*) {}, nullptr), EBUSY);
}

}  // namespace
}  // namespace verbs_test
