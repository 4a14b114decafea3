// A process around its devices: fork, and an environment that makes no sense.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "two_hosts.hpp"

#ifdef __SANITIZE_THREAD__
// Children of these tests start threads of their own.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name that the sanitizer looks for
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace verbs_test {
namespace {

// Runs `body` in a forked child: its exit status, and what it wrote to stderr.
struct ChildResult {
    int status = -1;
    std::string errors;
};
ChildResult in_child(const std::function<int()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(20);  // a child that hangs fails
        _exit(body());
    }
    close(ends[1]);
    ChildResult result;
    char buffer[512];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
        result.errors.append(buffer, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

using Fork = TwoHosts;

TEST_F(Fork, WhatWasInheritedAnswersEio) {
    connect();
    const ChildResult result = in_child([this] {
        int failures = 0;
        const auto expect = [&failures](bool held) { failures += held ? 0 : 1; };
        ibv_wc wc{};
        errno = 0;
        expect(ibv_alloc_pd(a->context) == nullptr && errno == EIO);
        ibv_port_attr port{};
        expect(ibv_query_port(a->context, 1, &port) == EIO);
        expect(a->receive(1, {a->range(0, 8)}) == EIO);
        expect(Request(IBV_WR_SEND).from(a->range(0, 8)).post(*a) == EIO);
        expect(ibv_poll_cq(a->cq, 1, &wc) < 0);
        expect(ibv_req_notify_cq(a->cq, 0) == EIO);
        expect(ibv_destroy_qp(a->qp) == EIO);
        expect(ibv_dereg_mr(a->mr) == EIO);
        ibv_async_event event{};
        errno = 0;
        expect(ibv_get_async_event(a->context, &event) == -1 && errno == EIO);
        expect(ibv_close_device(a->context) == 0);
        expect(ibv_close_device(a->context) == EINVAL);
        return failures;
    });
    EXPECT_EQ(result.status, 0) << result.errors;
    expect_works();  // the parent is none the wiser
}

TEST_F(Fork, TheChildIsToldOnceWhatItMayNotUse) {
    connect();
    const ChildResult result = in_child([this] {
        setenv("SIMVERBS_WARN", "1", 1);
        ibv_port_attr port{};
        ibv_wc wc{};
        return ibv_query_port(a->context, 1, &port) == EIO && ibv_poll_cq(a->cq, 1, &wc) < 0 ? 0
                                                                                             : 1;
    });
    EXPECT_EQ(result.status, 0);
    EXPECT_NE(result.errors.find("was forked: what it inherited is its parent's"),
              std::string::npos)
        << result.errors;
    EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1) << result.errors;
}

TEST_F(Fork, TheChildMayOpenAnew) {
    connect();
    const ChildResult result = in_child([] {
        int count = 0;
        ibv_device** devices = ibv_get_device_list(&count);
        ibv_context* context = count > 0 ? ibv_open_device(devices[0]) : nullptr;
        ibv_pd* pd = context != nullptr ? ibv_alloc_pd(context) : nullptr;
        ibv_cq* cq = pd != nullptr ? ibv_create_cq(context, 4, nullptr, nullptr, 0) : nullptr;
        ibv_wc wc{};
        const bool works = cq != nullptr && ibv_poll_cq(cq, 1, &wc) == 0 &&
                           ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 &&
                           ibv_close_device(context) == 0;
        return works ? 0 : 1;
    });
    EXPECT_EQ(result.status, 0) << result.errors;
    expect_works();
}

struct BadVariable {
    const char* name;
    const char* value;
};
std::ostream& operator<<(std::ostream& out, const BadVariable& row) {
    return out << row.name;
}

class Environment : public testing::TestWithParam<BadVariable> {};

TEST_P(Environment, ThatMakesNoSenseIsSaidAndGivesNoDevices) {
    const ChildResult result = in_child([] {
        setenv(GetParam().name, GetParam().value, 1);
        int count = -1;
        std::uint64_t digest = 0;
        ibv_device** devices = ibv_get_device_list(&count);
        return devices != nullptr && devices[0] == nullptr && count == 0 &&
                       simverbs_run_digest(&digest) == ENODEV
                   ? 0
                   : 1;
    });
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.errors.rfind("simverbs: ", 0), 0U) << result.errors;
    EXPECT_NE(result.errors.find(GetParam().value), std::string::npos) << result.errors;
    EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1) << result.errors;
}

INSTANTIATE_TEST_SUITE_P(
    Of, Environment,
    testing::Values(
        BadVariable{"SIMVERBS_TOPOLOGY", "moebius:3"}, BadVariable{"SIMVERBS_TOPOLOGY", "star:x"},
        BadVariable{"SIMVERBS_PERSONALITY", "connectx9"}, BadVariable{"SIMVERBS_SEED", "12three"},
        BadVariable{"SIMVERBS_SEED", "-1"}, BadVariable{"SIMVERBS_SCHEDULE", "chaotic"},
        BadVariable{"SIMVERBS_FIRST_PSN", "16777216"},
        BadVariable{"SIMVERBS_FIRST_PSN", "0x1000000"}, BadVariable{"SIMVERBS_FIRST_QPN", "65536"},
        BadVariable{"SIMVERBS_KEYS", "shuffled"}, BadVariable{"SIMVERBS_SM", "opensm"},
        BadVariable{"SIMVERBS_SPIN_MS", "soon"}, BadVariable{"SIMVERBS_HOST", "h9"},
        BadVariable{"SIMVERBS_TRACE", "/nonexistent/folder/trace"}));

// UCX looks for files of devices that an embedded world does not have, and opens none.
TEST(EnvironmentOf, DevicesThatAreListedAndNotOpenedAreExplainedOnce) {
    const auto list = [](bool opens) {
        return in_child([opens] {
            setenv("SIMVERBS_WARN", "1", 1);
            for (int i = 0; i < 3; ++i) {
                ibv_device** devices = ibv_get_device_list(nullptr);
                ibv_context* context = opens ? ibv_open_device(devices[0]) : nullptr;
                ibv_free_device_list(devices);
                if (context != nullptr) {
                    ibv_close_device(context);
                }
            }
            return 0;
        });
    };
    if (access("/dev/infiniband/uverbs0", F_OK) == 0) {
        GTEST_SKIP() << "this machine has a device of its own";
    }
    const std::string said = list(false).errors;
    EXPECT_NE(said.find("/dev/infiniband/uverbsN"), std::string::npos) << said;
    EXPECT_NE(said.find("`simverbs run` or `simverbs on`"), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
    EXPECT_EQ(list(true).errors, "");
}

TEST(EnvironmentOf, HostLimitsWhatIsSeen) {
    const ChildResult result = in_child([] {
        setenv("SIMVERBS_TOPOLOGY", "star:3", 1);
        setenv("SIMVERBS_HOST", "h1", 1);
        int count = 0;
        ibv_get_device_list(&count);
        return count;
    });
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.errors, "");
}

// A topology from a file, in which a host has three HCAs of two kinds.
class TopologyFile : public testing::Test {
  protected:
    ~TopologyFile() override { std::remove(path_.c_str()); }
    void write(const char* text) const { std::ofstream(path_) << text; }
    const std::string path_ =
        testing::TempDir() + "simverbs_topology_" + std::to_string(getpid()) + ".yaml";
};

TEST_F(TopologyFile, AHostShowsAllItsHcas) {
    write(
        "hosts: {a: {hcas: 3, personality: rxe}, b: }\n"
        "switches: {s: }\nlinks: [{ends: [a.0..2, s]}, {ends: [b, s]}]\n");
    const ChildResult result = in_child([this] {
        setenv("SIMVERBS_TOPOLOGY", path_.c_str(), 1);
        setenv("SIMVERBS_HOST", "a", 1);
        int count = 0;
        ibv_device** devices = ibv_get_device_list(&count);
        ibv_context* context = count == 3 ? ibv_open_device(devices[2]) : nullptr;
        ibv_device_attr attributes{};
        ibv_port_attr port{};
        const bool opened = context != nullptr && ibv_query_device(context, &attributes) == 0 &&
                            ibv_query_port(context, 1, &port) == 0;
        return opened && std::string(ibv_get_device_name(devices[2])) == "simverbs2" &&
                       attributes.vendor_id == 0xFFFFFF && port.lid == 3
                   ? 0
                   : 1;
    });
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.errors, "");
}

TEST_F(TopologyFile, AMistakeInItIsNamedByItsPlace) {
    write("hosts: {a: {personality: rxee}}\n");
    const ChildResult result = in_child([this] {
        setenv("SIMVERBS_TOPOLOGY", path_.c_str(), 1);
        int count = -1;
        ibv_get_device_list(&count);
        return count;
    });
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.errors, "simverbs: " + path_ +
                                 ":1:26: \"rxee\": did you mean \"rxe\"? valid: spec, connectx6, "
                                 "rxe\n");
}

}  // namespace
}  // namespace verbs_test
