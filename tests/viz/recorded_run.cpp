#include "recorded_run.hpp"

#include <array>
#include <cstdio>
#include <sstream>

#include <unistd.h>

namespace viz_test {

using verbs_test::Connection;
using verbs_test::Request;

void RecordedRun::SetUp() {
    TwoHosts::SetUp();
}

void RecordedRun::TearDown() {
    TwoHosts::TearDown();
    for (const char* const ending : {".jsonl", ".pcapng", ".html"}) {
        unlink(file(ending).c_str());
    }
}

std::string RecordedRun::file(const std::string& ending) const {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (char& c : name) {
        c = c == '/' ? '_' : c;
    }
    return testing::TempDir() + "viz_" + std::to_string(getpid()) + "_" + name + ending;
}

void RecordedRun::open_trace() {
    ASSERT_EQ(simverbs_trace_open(file(".jsonl").c_str()), 0) << simverbs_last_error();
}

void RecordedRun::open_capture() {
    ASSERT_EQ(simverbs_capture_open(file(".pcapng").c_str()), 0) << simverbs_last_error();
}

void RecordedRun::close_trace() {
    pass(1000);
    ASSERT_EQ(simverbs_trace_close(), 0) << simverbs_last_error();
}

void RecordedRun::close_capture() {
    pass(1000);
    ASSERT_EQ(simverbs_capture_close(), 0) << simverbs_last_error();
}

simverbs::viz::Trace RecordedRun::trace() const {
    auto read = simverbs::viz::read_trace(file(".jsonl"));
    EXPECT_TRUE(read) << read.error();
    return read ? std::move(*read) : simverbs::viz::Trace{};
}

void RecordedRun::reliable_traffic() {
    connect();
    ASSERT_EQ(b->receive(1, {b->range(65536, 5000)}), 0);
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 2, nullptr), 0) << simverbs_last_error();
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 5000)).post(*a), 0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(b->wait().status, IBV_WC_SUCCESS);
    const std::uint64_t there = b->address(131072);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).id(2).from(a->range(0, 3001)).to(there, b->mr->rkey).post(*a),
        0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_READ).id(3).into(a->range(65536, 3001)).to(there, b->mr->rkey).post(*a),
        0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(Request(IBV_WR_ATOMIC_CMP_AND_SWP)
                  .id(4)
                  .into(a->range(0, 8))
                  .compare_and_swap(there, b->mr->rkey, 1, 2)
                  .post(*a),
              0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(Request(IBV_WR_ATOMIC_FETCH_AND_ADD)
                  .id(5)
                  .into(a->range(0, 8))
                  .fetch_and_add(there, b->mr->rkey, 7)
                  .post(*a),
              0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM).id(6).from(a->range(0, 16)).immediate(9).post(*a), 0);
    pass(2);  // not ready, twice at least
    ASSERT_EQ(b->receive(2, {b->range(0, 64)}), 0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(b->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(
        Request(IBV_WR_RDMA_WRITE).id(7).from(a->range(0, 64)).to(there, b->mr->rkey + 1).post(*a),
        0);
    ASSERT_EQ(a->wait().status, IBV_WC_REM_ACCESS_ERR);
}

void RecordedRun::unreliable_traffic() {
    connect({.type = IBV_QPT_UC});
    ASSERT_EQ(b->receive(1, {b->range(65536, 5000)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(1).from(a->range(0, 4097)).post(*a), 0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(b->wait().status, IBV_WC_SUCCESS);
}

void RecordedRun::datagrams() {
    const Connection with{.type = IBV_QPT_UD};
    connect(with);
    ASSERT_EQ(b->receive(1, {b->range(65536, 2048)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND_WITH_IMM)
                  .id(1)
                  .from(a->range(0, 1001))
                  .immediate(3)
                  .to(a->ah, b->qp->qp_num, with.qkey)
                  .post(*a),
              0);
    ASSERT_EQ(a->wait().status, IBV_WC_SUCCESS);
    ASSERT_EQ(b->wait().status, IBV_WC_SUCCESS);
}

std::vector<std::string> Output::lines() const {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        all.push_back(line);
    }
    return all;
}

Output run_program(const std::string& command) {
    Output output;
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        return output;
    }
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        output.text.append(buffer.data(), got);
    }
    output.status = pclose(pipe);
    return output;
}

}  // namespace viz_test
