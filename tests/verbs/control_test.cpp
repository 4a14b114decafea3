// The control API: what it does, what it refuses and how it says so.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

using testing::Test;

class Control : public TwoHosts {
  protected:
    static bool error_names(const char* word) {
        return std::strstr(simverbs_last_error(), word) != nullptr;
    }
    static int device_count() {
        int count = 0;
        ibv_free_device_list(ibv_get_device_list(&count));
        return count;
    }
    int write(std::uint32_t length = 8) {
        EXPECT_EQ(Request(IBV_WR_RDMA_WRITE)
                      .from(a->range(0, length))
                      .to(b->address(0), b->mr->rkey)
                      .post(*a),
                  0);
        return a->wait().status;
    }
};

TEST_F(Control, TopologyDecidesHowManyDevicesThereAre) {
    ASSERT_EQ(simverbs_set_topology("star:5"), 0);
    EXPECT_EQ(device_count(), 5);
    ASSERT_EQ(simverbs_restart(), 0);
    ASSERT_EQ(simverbs_set_topology("pair"), 0);
    EXPECT_EQ(device_count(), 2);
}

TEST_F(Control, AScenarioNamesWhatTheFabricOfTheProgramHas) {
    const std::string path =
        testing::TempDir() + "simverbs_fabric_" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path) << "faults: [{action: link_down, link: h3-s0, when: {at: 1s}}]\n";
    EXPECT_EQ(simverbs_begin_scenario(path.c_str()), EINVAL);
    EXPECT_TRUE(error_names("h3-s0")) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:4"), 0);
    EXPECT_EQ(simverbs_begin_scenario(path.c_str()), 0) << simverbs_last_error();
    EXPECT_EQ(device_count(), 4);
    std::remove(path.c_str());
}

TEST_F(Control, NonsenseIsRefusedAtOnceAndTheWorldIsStillMade) {
    EXPECT_EQ(simverbs_set_topology("sphere"), EINVAL);
    EXPECT_TRUE(error_names("sphere"));
    EXPECT_EQ(simverbs_set_topology(nullptr), EINVAL);
    EXPECT_EQ(simverbs_set_personality("mlx9"), EINVAL);
    EXPECT_TRUE(error_names("connectx6"));
    EXPECT_EQ(device_count(), 2);
}

TEST_F(Control, EverySettingHasAName) {
    for (const auto& [setting, value] :
         std::initializer_list<std::pair<const char*, const char*>>{{"topology", "star:3"},
                                                                    {"personality", "connectx6"},
                                                                    {"routing", "up-down"},
                                                                    {"seed", "0x10"},
                                                                    {"first_psn", "16777215"},
                                                                    {"first_qpn", "65535"},
                                                                    {"keys", "random"},
                                                                    {"sm", "sweep"},
                                                                    {"schedule", "serial"},
                                                                    {"spin_ms", "0"},
                                                                    {"helper_thread", "off"},
                                                                    {"host", "h2"}}) {
        EXPECT_EQ(simverbs_set(setting, value), 0) << setting << ": " << simverbs_last_error();
    }
    EXPECT_EQ(device_count(), 1) << "of h2";
    EXPECT_EQ(simverbs_set("seed", "1"), EBUSY);
}

TEST_F(Control, SettingsThatDoNotExistAreRefusedWithThoseThatDo) {
    for (const char* const unknown : {"", "sead", "SEED", "trace", "warn", "server", "devices"}) {
        EXPECT_EQ(simverbs_set(unknown, "1"), EINVAL) << unknown;
        EXPECT_TRUE(error_names("topology, personality, routing, seed,")) << simverbs_last_error();
    }
    EXPECT_EQ(simverbs_set(nullptr, "1"), EINVAL);
    EXPECT_EQ(simverbs_set("seed", nullptr), EINVAL);
    EXPECT_EQ(simverbs_set("seed", "one"), EINVAL);
    EXPECT_TRUE(error_names("'one' is not a number"));
    EXPECT_EQ(simverbs_set("topology", "sphere"), EINVAL);
    EXPECT_EQ(simverbs_set("sm", "swep"), EINVAL);
    EXPECT_TRUE(error_names("did you mean \"sweep\"?"));
    EXPECT_EQ(device_count(), 2);
}

TEST_F(Control, CallsWithoutAPlaceForTheirResultAreRefused) {
    EXPECT_EQ(simverbs_now_ps(nullptr), EINVAL);
    EXPECT_TRUE(error_names("simverbs_now_ps: there is no place for the result: NULL"));
    EXPECT_EQ(simverbs_step_ps(1, nullptr), EINVAL);
    EXPECT_EQ(simverbs_run_digest(nullptr), EINVAL);
    EXPECT_EQ(simverbs_packet_digest(nullptr), EINVAL);
    EXPECT_EQ(simverbs_is_deterministic(nullptr), EINVAL);
    EXPECT_EQ(simverbs_fault_fired(1, nullptr), EINVAL);
    EXPECT_EQ(simverbs_fault_matched(1, nullptr), EINVAL);
    EXPECT_EQ(simverbs_fault_missed(1, nullptr, nullptr), EINVAL);
    EXPECT_EQ(simverbs_report_queue_pairs(nullptr, nullptr), EINVAL);
    EXPECT_STREQ(simverbs_objects_left(nullptr), "");
    EXPECT_EQ(simverbs_device_host(nullptr), nullptr);
    EXPECT_EQ(simverbs_set_link(nullptr, 0), ENOENT);
    EXPECT_TRUE(error_names("simverbs_set_link: link is missing"));
    EXPECT_EQ(simverbs_port_set_pkeys("h0", 1, nullptr, 3), EINVAL);
    EXPECT_TRUE(error_names("the table is NULL"));
    EXPECT_EQ(simverbs_allow_misuse("foo", 1), EINVAL);
    EXPECT_TRUE(error_names("'foo' is no mistake that is named; those are "));
    EXPECT_TRUE(error_names("no_receive_at_rtr"));
}

TEST_F(Control, SettingsAreBusyOnceTheWorldExists) {
    connect();
    EXPECT_EQ(simverbs_set_topology("pair"), EBUSY);
    EXPECT_EQ(simverbs_set_seed(2), EBUSY);
    EXPECT_EQ(simverbs_set_personality("rxe"), EBUSY);
    EXPECT_TRUE(error_names("simverbs_restart"));
    EXPECT_EQ(simverbs_restart(), EBUSY);
    a.reset();
    b.reset();
    EXPECT_EQ(simverbs_restart(), 0);
    EXPECT_EQ(simverbs_set_seed(2), 0);
}

TEST_F(Control, PersonalityChangesWhatDevicesDo) {
    ASSERT_EQ(simverbs_set_personality("connectx6"), 0);
    connect();
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    EXPECT_EQ(a->to_state(IBV_QPS_ERR), EINVAL) << "spec takes it";
}

TEST_F(Control, TimeStandsUntilItIsMoved) {
    connect();
    const std::int64_t before = now_us();
    EXPECT_EQ(now_us(), before);
    pass(5);
    EXPECT_EQ(now_us(), before + 5000);
    EXPECT_EQ(simverbs_advance_ps(0), 0);
    EXPECT_EQ(simverbs_advance_ps(-1), EINVAL);
    EXPECT_EQ(simverbs_advance_ps(INT64_MAX), EINVAL);
    EXPECT_EQ(now_us(), before + 5000);
}

TEST_F(Control, AdvanceCarriesOutWhatIsDueWithoutPolling) {
    connect();
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(b->address(0), b->mr->rkey).post(*a), 0);
    pass(1);
    ibv_wc wc[2];
    EXPECT_EQ(ibv_poll_cq(a->cq, 2, wc), 1);
}

TEST_F(Control, AStepRunsOneInstantWithinTheLimit) {
    connect();
    int ran = 1;
    EXPECT_EQ(simverbs_step_ps(-1, &ran), EINVAL);
    ASSERT_EQ(simverbs_step_ps(INT64_MAX, &ran), 0);
    EXPECT_EQ(ran, 0) << "nothing is about";
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).from(a->range(0, 8)).to(b->address(0), b->mr->rkey).post(*a), 0);
    ASSERT_EQ(simverbs_step_ps(1, &ran), 0);
    EXPECT_EQ(ran, 0) << "a picosecond is too short for anything to arrive";
    std::int64_t last = 0;
    int steps = 0;
    for (; simverbs_step_ps(INT64_MAX, &ran) == 0 && ran == 1; ++steps) {
        std::int64_t now = 0;
        ASSERT_EQ(simverbs_now_ps(&now), 0);
        EXPECT_GE(now, last);
        last = now;
    }
    EXPECT_GT(steps, 1);
    ibv_wc wc[2];
    EXPECT_EQ(ibv_poll_cq(a->cq, 2, wc), 1);
}

TEST_F(Control, FaultsNameLinksThatExist) {
    connect();
    std::uint32_t fault = 0;
    EXPECT_EQ(simverbs_drop_nth("h0-h1", "h0", 1, &fault), ENOENT);
    EXPECT_TRUE(error_names("h0-s0"));
    EXPECT_EQ(simverbs_drop_nth("h0-s0", "h1", 1, &fault), ENOENT);
    EXPECT_TRUE(error_names("its ends are"));
    EXPECT_EQ(simverbs_drop_nth("h0-s0", "h0", 0, &fault), EINVAL);
    EXPECT_EQ(simverbs_drop_all(nullptr, nullptr, &fault), ENOENT);
    EXPECT_EQ(simverbs_set_link("h7-s0", 0), ENOENT);
    EXPECT_EQ(simverbs_clear_fault(1), ENOENT);
    ASSERT_EQ(simverbs_drop_nth("s0-h0", "h0", 1, &fault), 0);
    EXPECT_EQ(fault, 1U);
    ASSERT_EQ(simverbs_drop_all("h0-s0", "s0", &fault), 0);
    EXPECT_EQ(fault, 2U);
    EXPECT_EQ(simverbs_clear_fault(1), 0);
    EXPECT_EQ(simverbs_clear_fault(1), ENOENT);
}

// ---- traces and digests
// --------------------------------------------------------------------------

TEST_F(Control, CallbackSeesTheFaultThatFired) {
    connect();
    struct Seen {
        int records = 0;
        int faults = 0;
        std::string node;
        std::uint64_t nth = 0;
    } seen;
    const auto record = [](const simverbs_record* event, void* argument) {
        auto& all = *static_cast<Seen*>(argument);
        ++all.records;
        if (std::strcmp(event->name, "fault_fired") != 0) {
            return;
        }
        ++all.faults;
        all.node = event->node;
        for (std::size_t i = 0; i < event->field_count; ++i) {
            if (std::strcmp(event->fields[i].name, "nth") == 0) {
                all.nth = event->fields[i].number;
            }
        }
    };
    ASSERT_EQ(simverbs_trace_callback(record, &seen), 0);
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 2, nullptr), 0);
    EXPECT_EQ(write(4096), IBV_WC_SUCCESS);
    EXPECT_EQ(seen.faults, 1);
    EXPECT_EQ(seen.node, "h0");
    EXPECT_EQ(seen.nth, 2U);
    EXPECT_GT(seen.records, 10);
    ASSERT_EQ(simverbs_trace_callback(nullptr, nullptr), 0);
    const int before = seen.records;
    EXPECT_EQ(write(), IBV_WC_SUCCESS);
    EXPECT_EQ(seen.records, before);
}

TEST_F(Control, TraceTellsOfDevicesOpenedAndClosed) {
    std::string seen;
    const auto record = [](const simverbs_record* event, void* argument) {
        if (std::strcmp(event->name, "context") == 0) {
            *static_cast<std::string*>(argument) +=
                std::string(event->node) + (event->fields[1].number != 0 ? " opened;" : " closed;");
        }
    };
    ASSERT_EQ(simverbs_trace_callback(record, &seen), 0);
    connect();
    EXPECT_EQ(seen, "h0 opened;h1 opened;");
    b.reset();
    EXPECT_EQ(seen, "h0 opened;h1 opened;h1 closed;");
    ASSERT_EQ(simverbs_trace_callback(nullptr, nullptr), 0);
}

TEST_F(Control, TraceFileHasASchemaAndEvents) {
    connect();
    const std::string path = testing::TempDir() + "simverbs_trace_" + std::to_string(getpid());
    EXPECT_EQ(simverbs_trace_close(), ENOENT);
    EXPECT_EQ(simverbs_trace_open("/nonexistent/folder/trace"), ENOENT);
    ASSERT_EQ(simverbs_trace_open(path.c_str()), 0) << simverbs_last_error();
    EXPECT_EQ(simverbs_trace_open(path.c_str()), EBUSY);
    EXPECT_EQ(write(), IBV_WC_SUCCESS);
    ASSERT_EQ(simverbs_trace_close(), 0);
    std::ifstream in(path);
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    EXPECT_NE(line.find("schema"), std::string::npos) << line;
    std::string rest;
    while (std::getline(in, line)) {
        rest += line;
    }
    EXPECT_NE(rest.find("completion"), std::string::npos);
    std::remove(path.c_str());
}

TEST_F(Control, EqualRunsHaveEqualDigestsAndOthersDoNot) {
    const auto run = [this](int writes) {
        a.reset();
        b.reset();
        EXPECT_EQ(simverbs_restart(), 0);
        std::uint64_t packets = 0;
        EXPECT_EQ(simverbs_packet_digest(&packets), 0);
        connect();
        for (int i = 0; i < writes; ++i) {
            EXPECT_EQ(write(), IBV_WC_SUCCESS);
        }
        EXPECT_EQ(simverbs_packet_digest(&packets), 0);
        return std::pair(run_digest(), packets);
    };
    const auto once = run(3);
    EXPECT_EQ(run(3), once);
    EXPECT_NE(run(4).first, once.first);
    EXPECT_NE(run(4).second, once.second);
}

// Worlds come and go by the thousand in one process of a test suite.
TEST_F(Control, RestartingLeavesNothingBehind) {
    a.reset();
    b.reset();
    const auto restart_often = [](int times) {
        for (int i = 0; i < times; ++i) {
            ASSERT_EQ(simverbs_restart(), 0);
            ibv_free_device_list(ibv_get_device_list(nullptr));
        }
    };
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_device* const kept = devices[0];
    ibv_free_device_list(devices);
    restart_often(150);  // until the caches of malloc are full: 8 KiB within the first 120
    const std::size_t before = mallinfo2().uordblks;
    constexpr int kTimes = 50;
    restart_often(kTimes);
    const std::size_t after = mallinfo2().uordblks;
    EXPECT_LT(after, before + 64UL * kTimes);
    devices = ibv_get_device_list(nullptr);
    EXPECT_EQ(devices[0], kept);
    ibv_free_device_list(devices);
}

TEST_F(Control, LookingAtARunDoesNotChangeItsDigest) {
    const auto run = [this](bool looked_at) {
        a.reset();
        b.reset();
        EXPECT_EQ(simverbs_restart(), 0);
        if (looked_at) {
            EXPECT_EQ(simverbs_trace_callback([](const simverbs_record*, void*) {}, nullptr), 0);
        }
        connect();
        EXPECT_EQ(write(9000), IBV_WC_SUCCESS);
        return run_digest();
    };
    EXPECT_EQ(run(true), run(false));
}

TEST_F(Control, OneThreadIsDeterministic) {
    connect();
    EXPECT_EQ(write(), IBV_WC_SUCCESS);
    int deterministic = 0;
    ASSERT_EQ(simverbs_is_deterministic(&deterministic), 0);
    EXPECT_EQ(deterministic, 1) << simverbs_last_error();
}

// ---- actors
// --------------------------------------------------------------------------------------

TEST_F(Control, NamesOfActorsAreTheirOwn) {
    EXPECT_EQ(simverbs_actor(nullptr), EINVAL);
    EXPECT_EQ(simverbs_actor(""), EINVAL);
    EXPECT_EQ(simverbs_actor(std::string(64, 'x').c_str()), EINVAL);
    ASSERT_EQ(simverbs_actor("main"), 0);
    EXPECT_EQ(simverbs_actor("main"), 0);
    std::thread([] {
        EXPECT_EQ(simverbs_actor("main"), EEXIST);
        EXPECT_TRUE(error_names("main"));
        EXPECT_EQ(simverbs_actor("other"), 0);
    }).join();
    EXPECT_EQ(simverbs_actor("other"), 0);  // its thread is gone
}

TEST_F(Control, AdvanceWakesAThreadThatBlocksInAVerb) {
    connect();
    ASSERT_EQ(fcntl(b->context->async_fd, F_SETFL, 0), 0);
    std::thread waiter([this] {
        ibv_async_event event{};
        EXPECT_EQ(ibv_get_async_event(b->context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
        ibv_ack_async_event(&event);
    });
    pass(10);
    EXPECT_EQ(simverbs_set_link("h1-s0", 0), 0);
    pass(10);
    waiter.join();
    ASSERT_EQ(fcntl(b->context->async_fd, F_SETFL, O_NONBLOCK), 0);
}

TEST_F(Control, AThreadMayOutliveTheWorldItUsed) {
    std::thread([] { EXPECT_EQ(simverbs_actor("early"), 0); }).join();
    for (int i = 0; i < 3; ++i) {
        connect();
        EXPECT_EQ(write(), IBV_WC_SUCCESS);
        a.reset();
        b.reset();
        ASSERT_EQ(simverbs_restart(), 0);
    }
}

}  // namespace
}  // namespace verbs_test
