// SIGUSR2 to a program that hangs: what each queue pair waits for.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class HangReport : public TwoHosts {
  protected:
    // Returns a queue pair that flushes what is posted to it, with completions in `cq`.
    ibv_qp* failed_queue_pair(ibv_cq* cq) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = cq;
        wanted.recv_cq = cq;
        wanted.cap = {4, 4, 1, 1, 0};
        wanted.qp_type = IBV_QPT_UD;
        ibv_qp* const qp = ibv_create_qp(a->pd, &wanted);
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        EXPECT_EQ(
            ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            0);
        attr.qp_state = IBV_QPS_ERR;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
        return qp;
    }
    // Nothing of stderr is lost while a report is awaited, so it goes to a file meanwhile.
    class Stderr {
      public:
        Stderr() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
            std::fflush(stderr);
            dup2(fileno(file_), STDERR_FILENO);
        }
        Stderr(const Stderr&) = delete;
        Stderr& operator=(const Stderr&) = delete;
        ~Stderr() {
            dup2(before_, STDERR_FILENO);
            close(before_);
            EXPECT_EQ(std::fclose(file_), 0);
        }
        // Returns what was written since the last look.
        std::string take() {
            std::array<char, 4096> bytes{};
            const ssize_t got = pread(fileno(file_), bytes.data(), bytes.size(), read_);
            read_ += std::max<ssize_t>(got, 0);
            return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
        }
        // The report is another thread's: it comes soon, and in one piece. Empty: none came.
        std::string ask() {
            EXPECT_EQ(raise(SIGUSR2), 0);
            for (int i = 0; i < kTries; ++i) {
                if (std::string text = take(); !text.empty()) {
                    return text;
                }
                usleep(i < kEager ? 0 : 1000);
            }
            return {};
        }

      private:
        static constexpr int kTries = 30'000;
        static constexpr int kEager = 100;

        std::FILE* file_;
        int before_;
        off_t read_ = 0;
    };
    static std::string ask() { return Stderr().ask(); }
};

TEST_F(HangReport, SaysWhoWaitsForWhat) {
    Connection with;
    with.timeout = 0;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    const std::string before = ask();
    EXPECT_NE(before.find("host h0"), std::string::npos) << before;
    EXPECT_NE(before.find("waits for nothing: nothing is posted"), std::string::npos) << before;
    EXPECT_NE(before.find("1 receive posted; waits for a message"), std::string::npos) << before;
    // The only packet is lost and no timer runs: this is how programs hang.
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 1, nullptr), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0);
    pass(1000);
    const std::string after = ask();
    EXPECT_NE(after.find("1 send outstanding (1 begun)"), std::string::npos) << after;
    EXPECT_NE(after.find("for ever (timeout 0)"), std::string::npos) << after;
}

// A queue pair of a host that was killed waits for nothing, whatever it had begun.
TEST_F(HangReport, NamesTheFaultThatKilledAHost) {
    connect({});
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 8)).post(*a), 0);
    simverbs_fault fault;
    simverbs_fault_init(&fault);
    fault.action = SIMVERBS_FAULT_HOST_KILL;
    fault.name = "power";
    fault.target.node = "h0";
    ASSERT_EQ(simverbs_inject(&fault, nullptr), 0) << simverbs_last_error();
    const std::string report = ask();
    EXPECT_NE(report.find("waits for nothing: host h0 was killed at 0 ps by the injected fault "
                          "\"power\" (host_kill)"),
              std::string::npos)
        << report;
}

// Who writes the report goes to sleep when there is nothing to do: a request that comes at that
// moment is answered all the same.
TEST_F(HangReport, EveryRequestIsAnswered) {
    connect({});
    Stderr reports;
    for (int i = 0; i < 2000; ++i) {
        ASSERT_NE(reports.ask(), "") << "request " << i;
    }
}

// A program that hangs may be killed next.
TEST_F(HangReport, LeavesTheTraceOnTheDisk) {
    connect({});
    const std::string path = testing::TempDir() + "hang_report_" + std::to_string(getpid());
    ASSERT_EQ(simverbs_trace_open(path.c_str()), 0) << simverbs_last_error();
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    pass(1000);
    ASSERT_NE(ask(), "");
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    EXPECT_NE(content.str().find("\"posted\""), std::string::npos);
    ASSERT_EQ(simverbs_trace_close(), 0);
    std::remove(path.c_str());
}

// Says why queue pairs are in ERR that nobody has taken there.
TEST_F(HangReport, NamesAQueueThatWasOverrun) {
    Connection with;
    with.cq_entries = 1;
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    ASSERT_EQ(b->receive(2, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(3).from(a->range(0, 8)).post(*a), 0);
    pass(1000);
    const std::string report = ask();
    EXPECT_NE(report.find(" of 1 entry: overrun (IBV_EVENT_CQ_ERR)"), std::string::npos) << report;
}

// Why a thread sleeps for good in ibv_get_cq_event().
TEST_F(HangReport, NamesAQueueThatIsNotArmed) {
    connect({});
    ibv_comp_channel* const channel = ibv_create_comp_channel(a->context);
    ibv_cq* const cq = ibv_create_cq(a->context, 4, nullptr, channel, 0);
    const std::string not_armed = "is not armed (ibv_req_notify_cq): its channel gets no event";
    EXPECT_NE(ask().find(not_armed), std::string::npos);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(ask().find(not_armed), std::string::npos);
    ASSERT_EQ(b->receive(1, {b->range(0, 8)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0);
    pass(1000);
    EXPECT_NE(ask().find("1 completion was not polled"), std::string::npos);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
}

// Says why ibv_destroy_cq() does not return.
TEST_F(HangReport, NamesEventsThatAreNotAcknowledged) {
    connect({});
    ibv_comp_channel* const channel = ibv_create_comp_channel(a->context);
    ibv_cq* const cq = ibv_create_cq(a->context, 4, nullptr, channel, 0);
    ibv_qp* const qp = failed_queue_pair(cq);
    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);  // flushed at once
    ibv_cq* which = nullptr;
    void* argument = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel, &which, &argument), 0);
    ASSERT_EQ(ibv_destroy_qp(qp), 0);
    std::thread destroyer([cq] { EXPECT_EQ(ibv_destroy_cq(cq), 0); });
    Stderr reports;
    std::string report;
    for (int i = 0; i < 1000 && report.find("waits to destroy") == std::string::npos; ++i) {
        report = reports.ask();
    }
    EXPECT_NE(report.find("a thread waits to destroy completion queue 0x"), std::string::npos)
        << report;
    ibv_ack_cq_events(cq, 1);
    destroyer.join();
    EXPECT_EQ(reports.ask().find("waits to destroy"), std::string::npos);
    ibv_destroy_comp_channel(channel);
}

TEST_F(HangReport, SaysTheTimeInItsUnit) {
    connect({});
    simverbs_advance_ps(1'500'000'000);
    EXPECT_EQ(ask().find(" ps of virtual time"), std::string::npos);
}

class StalledWorld : public HangReport {
  protected:
    static void SetUpTestSuite() { setenv("SIMVERBS_WARN", "1", 1); }
    static void TearDownTestSuite() { unsetenv("SIMVERBS_WARN"); }
};

// A thread sleeps in ibv_get_cq_event() beside a completion, the other in read(2).
TEST_F(StalledWorld, NamesAQueueWithCompletionsThatIsNotArmed) {
    connect({});
    ibv_comp_channel* const channel = ibv_create_comp_channel(a->context);
    ibv_cq* const cq = ibv_create_cq(a->context, 4, nullptr, channel, 0);
    ibv_qp* const qp = failed_queue_pair(cq);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);  // flushed at once
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
    const int stderr_before = dup(STDERR_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    std::string report;
    std::thread reader([&] {  // sleeps in the kernel without a time limit until it is told
        std::array<char, 4096> bytes{};
        while (report.find("waits for") == std::string::npos) {
            const ssize_t got = read(pipe_ends[0], bytes.data(), bytes.size());
            report.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
        EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
        EXPECT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
    });
    ibv_cq* which = nullptr;
    void* argument = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel, &which, &argument), 0);
    reader.join();
    dup2(stderr_before, STDERR_FILENO);
    for (const int each : {stderr_before, pipe_ends[0], pipe_ends[1]}) {
        close(each);
    }
    EXPECT_NE(report.find("is not armed, so ibv_get_cq_event() does not return: call "
                          "ibv_req_notify_cq()"),
              std::string::npos)
        << report;
    ibv_ack_cq_events(cq, 1);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
}

// Whom a timer interrupts; a thread that did it would be one that does not wait in a verb.
std::array<std::atomic<pthread_t>, 2> g_waiting;

// Two threads sleep in ibv_get_cq_event() for each other.
TEST_F(StalledWorld, ThreadsThatWaitForEachOtherAreReported) {
    connect({});
    std::array<ibv_comp_channel*, 2> channels{ibv_create_comp_channel(a->context),
                                              ibv_create_comp_channel(b->context)};
    std::array<ibv_cq*, 2> cqs{ibv_create_cq(a->context, 4, nullptr, channels[0], 0),
                               ibv_create_cq(b->context, 4, nullptr, channels[1], 0)};
    for (ibv_cq* cq : cqs) {
        ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    }
    Stderr reports;
    const auto wait = [](ibv_comp_channel* channel) {
        ibv_cq* which = nullptr;
        void* argument = nullptr;
        return ibv_get_cq_event(channel, &which, &argument);
    };
    struct sigaction interrupts {};
    interrupts.sa_handler = [](int) {};
    ASSERT_EQ(sigaction(SIGUSR1, &interrupts, nullptr), 0);
    interrupts.sa_handler = [](int) {
        for (const auto& thread : g_waiting) {
            pthread_kill(thread, SIGUSR1);
        }
    };
    ASSERT_EQ(sigaction(SIGALRM, &interrupts, nullptr), 0);
    std::thread other([&] { EXPECT_EQ(wait(channels[1]), -1); });
    g_waiting[0] = pthread_self();
    g_waiting[1] = other.native_handle();
    itimerval timer{{3, 0}, {3, 0}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
    EXPECT_EQ(wait(channels[0]), -1);
    other.join();
    timer = {};
    ASSERT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
    const std::string report = reports.take();
    EXPECT_NE(report.find("every thread waits in a verb for another one, and no event is left"),
              std::string::npos)
        << report;
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(ibv_destroy_cq(cqs.at(i)), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channels.at(i)), 0);
    }
}

// Whoever goes on polling for what cannot come is told so, once.
TEST_F(StalledWorld, IsReportedOnce) {
    Connection with;
    with.timeout = 0;
    connect(with);
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 1, nullptr), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 8)).post(*a), 0);
    Stderr reports;
    ibv_wc wc{};
    for (int i = 0; i < 900; ++i) {
        ASSERT_EQ(ibv_poll_cq(a->cq, 1, &wc), 0);
    }
    EXPECT_EQ(reports.take(), "");
    for (int i = 0; i < 5000; ++i) {
        ASSERT_EQ(ibv_poll_cq(a->cq, 1, &wc), 0);
    }
    const std::string report = reports.take();
    EXPECT_NE(report.find("everyone waits and no event is left"), std::string::npos) << report;
    EXPECT_EQ(report.find("everyone waits"), report.rfind("everyone waits")) << report;
    EXPECT_NE(report.find("for ever (timeout 0)"), std::string::npos) << report;
}

// Retries without end: events never run out, and nothing comes of them.
TEST_F(StalledWorld, EventsWithoutEndAreReported) {
    Connection with;
    with.rnr_retries = 7;
    connect(with);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 8)).post(*a), 0);
    Stderr reports;
    ibv_wc wc{};
    std::string report;
    for (int i = 0; i < 1'100'000 && report.empty(); ++i) {
        ASSERT_EQ(ibv_poll_cq(a->cq, 1, &wc), 0);
        report = i % 1000 == 0 ? reports.take() : report;
    }
    EXPECT_NE(report.find("a million events"), std::string::npos) << report;
    EXPECT_EQ(report.find("no event is left"), std::string::npos) << report;
    int deterministic = 0;
    ASSERT_EQ(simverbs_is_deterministic(&deterministic), 0);
    EXPECT_EQ(deterministic, 1) << simverbs_last_error();
}

}  // namespace
}  // namespace verbs_test
