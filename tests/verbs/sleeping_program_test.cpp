// The library's own thread, which moves time while the program's threads do other than call verbs,
// and worlds without it.
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include <poll.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

using namespace std::chrono_literals;

std::ptrdiff_t threads_of_process() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::distance(begin(threads), end(threads));
}

class SleepingProgram : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        repeats = false;  // time moves by the wall clock, too
    }
    void write_a_byte() {
        *a->at() = 7;
        ASSERT_EQ(
            Request(IBV_WR_RDMA_WRITE).from(a->range(0, 1)).to(b->address(0), b->mr->rkey).post(*a),
            0);
    }
    void await_byte() {
        for (int patience = 60'000; patience > 0 && !byte_is_there(); --patience) {
            std::this_thread::sleep_for(1ms);
        }
        EXPECT_TRUE(byte_is_there());
    }
    bool byte_is_there() { return *static_cast<volatile std::uint8_t*>(b->at()) == 7; }
};

TEST_F(SleepingProgram, IsWokenByTheLibrarysThread) {
    connect();
    write_a_byte();
    await_byte();
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(SleepingProgram, WaitsInVainWithoutThatThread) {
    ASSERT_EQ(simverbs_set("helper_thread", "off"), 0);
    const std::ptrdiff_t before = threads_of_process();
    connect();
    write_a_byte();
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(byte_is_there());
    EXPECT_LE(threads_of_process(), before);  // that of an earlier world may have been ending
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(byte_is_there());
}

TEST_F(SleepingProgram, GetsThatThreadOnceASecondThreadCallsVerbs) {
    ASSERT_EQ(simverbs_set("helper_thread", "off"), 0);
    connect();
    std::thread([this] {
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(b->cq, 1, &wc), 0);
    }).join();
    write_a_byte();
    await_byte();
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
}

TEST_F(SleepingProgram, InABlockingVerbNeedsNoThread) {
    ASSERT_EQ(simverbs_set("helper_thread", "off"), 0);
    connect();
    ibv_comp_channel* const channel = ibv_create_comp_channel(a->context);
    ASSERT_NE(channel, nullptr);
    ibv_cq* const cq = ibv_create_cq(a->context, 16, nullptr, channel, 0);
    ASSERT_EQ(ibv_destroy_qp(a->qp), 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = Connection{}.cap;
    init.qp_type = IBV_QPT_RC;
    a->qp = ibv_create_qp(a->pd, &init);
    ASSERT_EQ(b->to_state(IBV_QPS_RESET), 0);
    bring_up({});

    ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
    write_a_byte();
    pollfd readable{channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, 20), 0);
    ibv_cq* of = nullptr;
    void* context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel, &of, &context), 0);
    EXPECT_EQ(of, cq);
    EXPECT_TRUE(byte_is_there());

    ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(ibv_destroy_qp(a->qp), 0);
    a->qp = nullptr;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

}  // namespace
}  // namespace verbs_test
