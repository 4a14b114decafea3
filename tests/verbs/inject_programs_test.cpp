// simverbs_inject() on the programs of hosts: threads of this process, here.
#include <array>
#include <barrier>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "injection.hpp"

namespace verbs_test {
namespace {

std::int64_t now_ps() {
    std::int64_t now = 0;
    EXPECT_EQ(simverbs_now_ps(&now), 0) << simverbs_last_error();
    return now;
}

simverbs_fault on_programs(simverbs_fault_action action, const char* host,
                           std::int64_t duration = 0) {
    simverbs_fault fault = fault_of(action);
    fault.target.node = host;
    fault.with.duration_ps = duration;
    return fault;
}

class InjectedPrograms : public Injection {
  protected:
    void SetUp() override {
        Injection::SetUp();
        watch();
    }
    static std::uint32_t stop(const char* host, std::int64_t duration) {
        return inject(on_programs(SIMVERBS_FAULT_PROCESS_STOP, host, duration));
    }
    static ibv_port_state port_of(const End& end) {
        ibv_port_attr attr{};
        EXPECT_EQ(ibv_query_port(end.context, 1, &attr), 0);
        return attr.state;
    }
};

// ---- stopped

TEST_F(InjectedPrograms, DeviceOfAStoppedReceiverGoesOn) {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    const std::int64_t end = now_ps() + 20 * kMillisecond;
    stop("h1", 20 * kMillisecond);
    *a->at() = 7;
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 16)).post(*a), 0);
    expect(*a, 2, IBV_WC_SUCCESS);
    EXPECT_LT(now_ps(), end);
    EXPECT_EQ(*b->at(), 7);
    // A completion is there, and is not found before the programs of h1 go on.
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(b->cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 1U);
    EXPECT_EQ(now_ps(), end);
    expect_both_live();
}

TEST_F(InjectedPrograms, EachVerbOfAStoppedHostWaits) {
    connect();
    ASSERT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    ibv_cq_ex* const extended = ibv_create_cq_ex(b->context, &wanted);
    ASSERT_NE(extended, nullptr);
    struct Verb {
        const char* name;
        std::function<void()> call;
    };
    const auto verbs = std::to_array<Verb>({
        {"poll_cq",
         [&] {
             ibv_wc wc{};
             EXPECT_EQ(ibv_poll_cq(b->cq, 1, &wc), 0);
         }},
        {"start_poll",
         [&] {
             ibv_poll_cq_attr attr{};
             EXPECT_EQ(ibv_start_poll(extended, &attr), ENOENT);
         }},
        {"post_recv", [&] { EXPECT_EQ(b->receive(1, {b->range(0, 8)}), 0); }},
        {"post_send", [&] { EXPECT_EQ(Request(IBV_WR_SEND).from(b->range(0, 0)).post(*b), 0); }},
        {"req_notify_cq", [&] { EXPECT_EQ(ibv_req_notify_cq(b->cq, 0), 0); }},
        {"query_qp", [&] { EXPECT_EQ(b->state(), IBV_QPS_RTS); }},
        {"query_device",
         [&] {
             ibv_device_attr attr{};
             EXPECT_EQ(ibv_query_device(b->context, &attr), 0);
         }},
        {"reg_mr",
         [&] {
             ibv_mr* const mr = ibv_reg_mr(b->pd, b->at(), 64, 0);
             ASSERT_NE(mr, nullptr);
             EXPECT_EQ(ibv_dereg_mr(mr), 0);
         }},
        {"get_async_event",
         [&] {
             ibv_async_event event{};
             EXPECT_EQ(ibv_get_async_event(b->context, &event), -1);
         }},
        {"open_device",
         [&] {
             ibv_context* const again = ibv_open_device(b->context->device);
             ASSERT_NE(again, nullptr);
             EXPECT_EQ(ibv_close_device(again), 0);
         }},
    });
    for (const Verb& verb : verbs) {
        const std::int64_t end = now_ps() + 5 * kMillisecond;
        stop("h1", 5 * kMillisecond);
        verb.call();
        EXPECT_GE(now_ps(), end) << verb.name;
    }
    const std::int64_t before = now_ps();
    stop("h1", 5 * kMillisecond);
    EXPECT_EQ(a->state(), IBV_QPS_RTS);
    EXPECT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    EXPECT_EQ(now_ps(), before) << "h0 is not stopped";
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)), 0);
}

TEST_F(InjectedPrograms, StoppedReceiverIsNotReadyUntilItGoesOn) {
    connect({.rnr_retries = 7, .min_rnr_timer = 12});
    const std::int64_t end = now_ps() + 20 * kMillisecond;
    stop("h1", 20 * kMillisecond);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 16)).post(*a), 0);
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    EXPECT_GE(now_ps(), end);
    expect(*a, 2, IBV_WC_SUCCESS);
    expect(*b, 1, IBV_WC_SUCCESS);
}

TEST_F(InjectedPrograms, StopOutlastsFewRetries) {
    connect({.rnr_retries = 2, .min_rnr_timer = 12});
    const std::int64_t end = now_ps() + 20 * kMillisecond;
    stop("h1", 20 * kMillisecond);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 16)).post(*a), 0);
    expect(*a, 2, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_LT(now_ps(), end);
    EXPECT_EQ(b->state(), IBV_QPS_RTS);
}

// The later end counts, whichever came first.
TEST_F(InjectedPrograms, StopsOverlap) {
    connect();
    for (const auto& [first, second] : {std::pair{10, 4}, std::pair{4, 10}}) {
        const std::int64_t end = now_ps() + 10 * kMillisecond;
        stop("h1", first * kMillisecond);
        stop("h1", second * kMillisecond);
        EXPECT_EQ(b->state(), IBV_QPS_RTS);
        EXPECT_EQ(now_ps(), end);
    }
    EXPECT_EQ(firings.size(), 4U);
    EXPECT_TRUE(missed.empty());
}

// One thread a host: the receiver's is stopped while it waits, in an empty poll or, where it
// `blocks`, for a completion event.
class StoppedThread : public InjectedPrograms {
  protected:
    static constexpr std::uint64_t kMessages = 40;

    static void serve(End& receiver, ibv_cq* cq, ibv_comp_channel* channel, std::barrier<>& both) {
        ASSERT_EQ(simverbs_actor("receiver"), 0) << simverbs_last_error();
        both.arrive_and_wait();
        for (std::uint64_t id = 0; id < kMessages; ++id) {
            ASSERT_EQ(receiver.receive(id, {receiver.range(0, 64)}), 0);
            ibv_wc wc{};
            while (ibv_poll_cq(cq, 1, &wc) == 0) {
                if (channel == nullptr) {
                    continue;
                }
                ibv_cq* of = nullptr;
                void* context = nullptr;
                ASSERT_EQ(ibv_get_cq_event(channel, &of, &context), 0);
                ibv_ack_cq_events(of, 1);
                ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
            }
            ASSERT_EQ(wc.wr_id, id);
        }
    }

    // The digest of a run.
    static std::uint64_t run(bool blocks) {
        EXPECT_EQ(simverbs_restart(), 0) << simverbs_last_error();
        EXPECT_EQ(simverbs_actor("main"), 0);
        End sender(0, Connection{});
        End receiver(1, Connection{});
        ibv_comp_channel* const channel =
            blocks ? ibv_create_comp_channel(receiver.context) : nullptr;
        ibv_cq* const cq = ibv_create_cq(receiver.context, 16, nullptr, channel, 0);
        EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = Connection{}.cap;
        init.qp_type = IBV_QPT_RC;
        EXPECT_EQ(ibv_destroy_qp(receiver.qp), 0);
        receiver.qp = ibv_create_qp(receiver.pd, &init);
        bring_up(sender, receiver, {.rnr_retries = 7});
        simverbs_fault fault = on_programs(SIMVERBS_FAULT_PROCESS_STOP, "h1", 5 * kMillisecond);
        fault.on = SIMVERBS_ON_PACKET;
        fault.match.from = "h0";
        fault.nth = 20;
        inject(fault);
        const std::int64_t began = now_ps();
        std::barrier both(2);
        std::thread serving([&] { serve(receiver, cq, channel, both); });
        std::thread sending([&] {
            ASSERT_EQ(simverbs_actor("sender"), 0) << simverbs_last_error();
            both.arrive_and_wait();
            for (std::uint64_t id = 0; id < kMessages; ++id) {
                ASSERT_EQ(Request(IBV_WR_SEND).id(id).from(sender.range(0, 64)).post(sender), 0);
                expect(sender, id, IBV_WC_SUCCESS);
            }
        });
        serving.join();
        sending.join();
        EXPECT_GE(now_ps() - began, 5 * kMillisecond);
        const std::uint64_t digest = run_digest();
        EXPECT_EQ(ibv_destroy_qp(std::exchange(receiver.qp, nullptr)), 0);
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        if (channel != nullptr) {
            EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        }
        return digest;
    }
};

TEST_F(StoppedThread, RepeatsItself) {
    for (const bool blocks : {false, true}) {
        std::set<std::uint64_t> digests;
        for (int i = 0; i < 3; ++i) {
            digests.insert(run(blocks));
        }
        EXPECT_EQ(digests.size(), 1U) << (blocks ? "in a blocking verb" : "in an empty poll");
    }
}

// ---- killed

TEST_F(InjectedPrograms, KilledOnesLeaveTheirDeviceAsItIs) {
    connect({.timeout = 10, .retries = 1});
    inject(on_programs(SIMVERBS_FAULT_PROCESS_KILL, "h1"));
    write(1, 1);
    expect(*a, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(a->events().empty());
    EXPECT_TRUE(b->events().empty());
    EXPECT_EQ(*b->at(), 0);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(b->qp, &attr, IBV_QP_STATE, &init), EIO);
    EXPECT_EQ(port_of(*a), IBV_PORT_ACTIVE);
    // Another program opens it while what was open lies about.
    const std::unique_ptr<End> dead = std::move(b);
    b = std::make_unique<End>(1, Connection{});
    EXPECT_EQ(port_of(*b), IBV_PORT_ACTIVE);
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    bring_up({});
    expect_works();
    EXPECT_TRUE(missed.empty());
}

// Threads of this process cannot be ended: their verbs fail instead.
TEST_F(InjectedPrograms, KilledOnesCannotGoOn) {
    connect({.timeout = 10, .retries = 1});
    ASSERT_EQ(b->receive(1, {b->range(0, 64)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 64)).post(*a), 0);
    expect(*a, 1, IBV_WC_SUCCESS);
    simverbs_fault fault = on_programs(SIMVERBS_FAULT_PROCESS_KILL, "h1");
    fault.name = "power";
    inject(fault);
    ibv_wc wc{};
    EXPECT_EQ(ibv_poll_cq(b->cq, 1, &wc), 1) << "it had completed before";
    EXPECT_EQ(wc.wr_id, 1U);
    const std::int64_t before = now_ps();
    EXPECT_EQ(ibv_poll_cq(b->cq, 1, &wc), -1);
    EXPECT_EQ(now_ps(), before) << "nobody waits";
    EXPECT_NE(std::strstr(simverbs_last_error(), "the programs of h1 were killed at "), nullptr)
        << simverbs_last_error();
    EXPECT_NE(std::strstr(simverbs_last_error(), "by the injected fault \"power\" (process_kill)"),
              nullptr)
        << simverbs_last_error();
    EXPECT_EQ(b->receive(3, {b->range(0, 8)}), EIO);
    EXPECT_EQ(Request(IBV_WR_SEND).from(b->range(0, 0)).post(*b), EIO);
    EXPECT_EQ(ibv_req_notify_cq(b->cq, 0), EIO);
    EXPECT_EQ(ibv_alloc_pd(b->context), nullptr);
    EXPECT_EQ(a->state(), IBV_QPS_RTS) << "h0 lives";
    EXPECT_EQ(a->receive(1, {a->range(0, 8)}), 0);
    b.reset();  // which can still give back what it has
}

TEST_F(InjectedPrograms, KilledWhileStoppedIsTheEndOfTheStop) {
    connect({.timeout = 10, .retries = 1});
    stop("h1", 20 * kMillisecond);
    const std::int64_t before = now_ps();
    inject(on_programs(SIMVERBS_FAULT_PROCESS_KILL, "h1"));
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(b->qp, &attr, IBV_QP_STATE, &init), EIO);
    EXPECT_EQ(now_ps(), before);
    const std::unique_ptr<End> dead = std::move(b);
    b = std::make_unique<End>(1, Connection{});
    EXPECT_EQ(now_ps(), before) << "another program is not stopped";
}

TEST_F(InjectedPrograms, WithoutProgramsThereIsNobodyToHit) {
    connect();
    b.reset();
    inject(on_programs(SIMVERBS_FAULT_PROCESS_KILL, "h1"));
    stop("h1", kMillisecond);
    EXPECT_EQ(missed, std::vector<std::string>(2, "no program uses a device of it"));
}

// ---- what cannot be

TEST_F(InjectedPrograms, AreAskedForByAHostAndATime) {
    connect();
    expect_refused(on_programs(SIMVERBS_FAULT_PROCESS_STOP, "h1"), EINVAL, "duration_ps");
    expect_refused(on_programs(SIMVERBS_FAULT_PROCESS_STOP, "h1", -1), EINVAL, "duration_ps");
    expect_refused(on_programs(SIMVERBS_FAULT_PROCESS_STOP, "h7", 1), ENOENT, "h0 to h1");
    expect_refused(on_programs(SIMVERBS_FAULT_PROCESS_KILL, "s0"), ENOENT, "h0 to h1");
    expect_refused(on_programs(SIMVERBS_FAULT_PROCESS_KILL, nullptr), ENOENT, "target.node");
    EXPECT_STREQ(simverbs_fault_action_str(SIMVERBS_FAULT_PROCESS_STOP), "process_stop");
    EXPECT_STREQ(simverbs_fault_action_str(SIMVERBS_FAULT_PROCESS_KILL), "process_kill");
}

}  // namespace
}  // namespace verbs_test
