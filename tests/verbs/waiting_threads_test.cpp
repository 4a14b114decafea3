// Threads that wait for each other's messages by events.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include <poll.h>
#include <pthread.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

using namespace std::chrono_literals;

// An end whose completions are announced through a channel.
class WaitingEnd {
  public:
    explicit WaitingEnd(End& end) : end_(end) {
        channel_ = ibv_create_comp_channel(end.context);
        cq_ = ibv_create_cq(end.context, 64, nullptr, channel_, 0);
        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        ibv_qp_init_attr init{};
        init.send_cq = end.cq;
        init.recv_cq = cq_;
        init.cap = Connection{}.cap;
        init.qp_type = IBV_QPT_RC;
        end.qp = ibv_create_qp(end.pd, &init);
        EXPECT_EQ(ibv_req_notify_cq(cq_, 0), 0);
    }
    ~WaitingEnd() {
        EXPECT_EQ(ibv_destroy_qp(end_.qp), 0);
        end_.qp = nullptr;
        EXPECT_EQ(ibv_destroy_cq(cq_), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    }
    WaitingEnd(const WaitingEnd&) = delete;
    WaitingEnd& operator=(const WaitingEnd&) = delete;

    [[nodiscard]] int descriptor() const { return channel_->fd; }
    // Waits for the completion of each eighth one, which frees the places of those before.
    void send() {
        const bool is_eighth = ++sent_ % 8 == 0;
        Request request(IBV_WR_SEND);
        request.from(end_.range(0, 8));
        ASSERT_EQ((is_eighth ? request : request.unsignaled()).post(end_), 0);
        if (is_eighth) {
            ASSERT_EQ(end_.wait().status, IBV_WC_SUCCESS);
        }
    }
    void receive() { ASSERT_EQ(end_.receive(1, {end_.range(64, 8)}), 0); }
    void await_event() {
        ibv_cq* of = nullptr;
        void* context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel_, &of, &context), 0);
        ibv_ack_cq_events(of, 1);
        ASSERT_EQ(ibv_req_notify_cq(of, 0), 0);
    }
    void await_message() {
        ibv_wc wc{};
        int found = 0;
        while ((found = ibv_poll_cq(cq_, 1, &wc)) == 0) {
            await_event();
        }
        ASSERT_EQ(found, 1);
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    }

  private:
    End& end_;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* cq_ = nullptr;
    int sent_ = 0;
};

class WaitingThreads : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        repeats = false;
        connect();
        one.emplace(*a);
        other.emplace(*b);
        bring_up({});
    }
    void TearDown() override {
        one.reset();
        other.reset();
        TwoHosts::TearDown();
    }
    std::optional<WaitingEnd> one;
    std::optional<WaitingEnd> other;
};

// Answers each second message after about the time for which a thread watches its word before it
// sleeps. It watches again since the others are answered at once.
void answer_messages(WaitingEnd& end, int messages) {
    std::minstd_rand random(7);
    for (int i = 0; i < messages; ++i) {
        end.await_message();
        end.receive();
        const auto begin = std::chrono::steady_clock::now();
        const auto pause = 85us + (random() % 30) * 1us;
        while (i % 2 == 1 && std::chrono::steady_clock::now() - begin < pause) {
        }
        end.send();
    }
}

// An event may be handed to a thread that has just given up watching, and is about to sleep until
// its descriptor is readable.
TEST_F(WaitingThreads, AreWokenWhicheverWayTheyWait) {
    constexpr int kMessages = 2'000;
    one->receive();
    other->receive();
    std::thread peer([this] { answer_messages(*other, kMessages); });
    for (int i = 0; i < kMessages; ++i) {
        one->send();
        one->await_message();
        one->receive();
    }
    peer.join();
}

// AddressSanitizer does not support the unwinding of a cancelled thread: a check of its own fails.
#ifndef __SANITIZE_ADDRESS__
TEST_F(WaitingThreads, MayBeCancelledInTheirSleep) {
    other->receive();
    std::thread peer([this] { other->await_event(); });
    std::this_thread::sleep_for(20ms);
    ASSERT_EQ(pthread_cancel(peer.native_handle()), 0);
    peer.join();
    std::thread([] {
        std::array<char, 65536> stack;  // where that thread had its own
        std::ranges::fill(stack, '\x5a');
        const volatile char* const kept = stack.data();
        EXPECT_EQ(kept[7], '\x5a');
    }).join();
    one->send();
    other->await_message();
}

TEST_F(WaitingThreads, ThatAreCancelledTakeNoEventWithThem) {
    other->receive();
    one->send();
    pollfd readable{other->descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, 60'000), 1);
    std::thread([this] {
        pthread_cancel(pthread_self());
        other->await_event();
    }).join();
    ASSERT_EQ(poll(&readable, 1, 0), 1);
    other->await_message();
}
#endif

// One thread takes events in a verb, the other one sleeps in poll(2) on the same descriptor.
TEST_F(WaitingThreads, InPollAreWokenByWhatNobodyWaitsForInAVerb) {
    one->receive();
    other->receive();
    std::thread peer([this] {
        pollfd readable{other->descriptor(), POLLIN, 0};
        EXPECT_EQ(poll(&readable, 1, 60'000), 1);
        other->await_message();
        other->send();
    });
    one->send();
    one->await_message();
    peer.join();
}

}  // namespace
}  // namespace verbs_test
