// Hosts as fibers: plain polls and blocking verbs in one thread.
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <simverbs/lab.hpp>

namespace verbs_test {
namespace {

using namespace std::chrono_literals;

struct Address {
    std::uint32_t qp_num;
    std::uint16_t lid;
};

// A queue pair of one program, with what it needs.
class Endpoint {
  public:
    explicit Endpoint(ibv_context* device)
        : pd_(ibv_alloc_pd(device)),
          channel(ibv_create_comp_channel(device)),
          cq(ibv_create_cq(device, 64, nullptr, channel, 0)),
          mr(ibv_reg_mr(pd_, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE)) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        init.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1};
        qp = ibv_create_qp(pd_, &init);
        ibv_query_port(device, 1, &port_);
    }
    ~Endpoint() {
        ibv_destroy_qp(qp);
        ibv_dereg_mr(mr);
        ibv_destroy_cq(cq);
        ibv_destroy_comp_channel(channel);
        ibv_dealloc_pd(pd_);
    }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    [[nodiscard]] Address address() const { return {qp->qp_num, port_.lid}; }

    void connect(const Address& peer) const {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        ASSERT_EQ(
            ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_1024;
        attr.dest_qp_num = peer.qp_num;
        attr.ah_attr.dlid = peer.lid;
        attr.ah_attr.port_num = 1;
        attr.min_rnr_timer = 1;
        ASSERT_EQ(
            ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
        attr.qp_state = IBV_QPS_RTS;
        attr.timeout = 10;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        ASSERT_EQ(ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                  0);
    }
    void receive() {
        ibv_sge piece{reinterpret_cast<std::uint64_t>(bytes.data()), 8, mr->lkey};
        ibv_recv_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &request, &bad), 0);
    }
    void send() {
        ibv_sge piece{reinterpret_cast<std::uint64_t>(bytes.data()), 8, mr->lkey};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(qp, &request, &bad), 0);
    }
    // Polls, or sleeps in a blocking verb.
    [[nodiscard]] ibv_wc completion(bool by_event) const {
        ibv_wc wc{};
        while (ibv_poll_cq(cq, 1, &wc) == 0) {
            if (!by_event) {
                continue;
            }
            EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
            if (ibv_poll_cq(cq, 1, &wc) == 1) {
                break;
            }
            ibv_cq* of = nullptr;
            void* context = nullptr;
            EXPECT_EQ(ibv_get_cq_event(channel, &of, &context), 0);
            ibv_ack_cq_events(of, 1);
        }
        return wc;
    }

  private:
    ibv_pd* pd_;
    ibv_port_attr port_{};

  public:
    std::array<std::uint8_t, 64> bytes{};
    ibv_comp_channel* channel;
    ibv_cq* cq;
    ibv_mr* mr;
    ibv_qp* qp;
};

constexpr int kRounds = 20;

// Runs one host and the other by turns; the digest of the run.
std::uint64_t ping_pong(bool server_by_event, bool with_loss) {
    std::uint64_t digest = 0;
    simverbs::Lab lab({.topology = "star:2", .seed = 3});
    boost::fibers::promise<Address> of_h0;
    boost::fibers::promise<Address> of_h1;
    boost::fibers::barrier both(2);
    int received = 0;
    lab.host("h0", [&](ibv_context* device) {
        Endpoint own(device);
        of_h0.set_value(own.address());
        own.connect(of_h1.get_future().get());
        own.receive();
        both.wait();
        for (int i = 0; i < kRounds; ++i) {
            EXPECT_EQ(own.completion(server_by_event).status, IBV_WC_SUCCESS);
            own.receive();
            received += own.bytes[0] == i ? 1 : 0;
            own.send();
            EXPECT_EQ(own.completion(server_by_event).opcode, IBV_WC_SEND);
        }
        both.wait();
    });
    lab.host("h1", [&](ibv_context* device) {
        if (with_loss) {
            simverbs::drop().from("h1").psn(5).attempt(1).inject().leave();
        }
        Endpoint own(device);
        of_h1.set_value(own.address());
        own.connect(of_h0.get_future().get());
        both.wait();
        for (int i = 0; i < kRounds; ++i) {
            own.receive();
            own.bytes[0] = static_cast<std::uint8_t>(i);
            own.send();
            EXPECT_EQ(own.completion(false).status, IBV_WC_SUCCESS);
            EXPECT_EQ(own.completion(false).status, IBV_WC_SUCCESS);
        }
        both.wait();
        digest = simverbs::run_digest();
    });
    lab.run();
    EXPECT_EQ(received, kRounds);
    return digest;
}

TEST(Lab, ProgramsThatPollTakeTurns) {
    EXPECT_EQ(ping_pong(false, false), ping_pong(false, false));
}

TEST(Lab, BlockingVerbsLetOthersRun) {
    EXPECT_EQ(ping_pong(true, false), ping_pong(true, false));
}

TEST(Lab, FaultsAreThereAsElsewhere) {
    EXPECT_NE(ping_pong(true, true), ping_pong(true, false));
}

TEST(Lab, SleepersWakeInVirtualTime) {
    simverbs::Lab lab;
    std::vector<std::string> order;
    const auto sleeper = [&](const char* name, simverbs::Picoseconds duration) {
        lab.host("h0", [&lab, &order, name, duration](ibv_context*) {
            lab.sleep_for(duration);
            order.emplace_back(name);
            EXPECT_EQ(simverbs::now(), duration);
        });
    };
    sleeper("long", 3s);
    sleeper("short", 1ms);
    sleeper("middle", 2s);
    lab.run();
    EXPECT_EQ(order, (std::vector<std::string>{"short", "middle", "long"}));
}

TEST(Lab, AStoppedHostLetsOthersRun) {
    simverbs::Lab lab;
    std::vector<std::string> order;
    const auto call_a_verb = [](ibv_context* device) {
        ibv_port_attr port{};
        EXPECT_EQ(ibv_query_port(device, 1, &port), 0);
    };
    lab.host("h0", [&](ibv_context* device) {
        lab.sleep_for(1ms);
        simverbs::process_stop("h1", 10ms).inject().leave();
        for (int i = 0; i < 3; ++i) {
            lab.sleep_for(1ms);
            call_a_verb(device);
        }
        EXPECT_EQ(simverbs::now(), 4ms);
        order.emplace_back("h0");
    });
    lab.host("h1", [&](ibv_context* device) {
        lab.sleep_for(2ms);
        call_a_verb(device);
        EXPECT_EQ(simverbs::now(), 11ms);
        order.emplace_back("h1");
    });
    lab.run();
    EXPECT_EQ(order, (std::vector<std::string>{"h0", "h1"}));
}

TEST(Lab, WhoWaitsForNothingIsNamed) {
    simverbs::Lab lab;
    lab.host("h1", [](ibv_context* device) {
        const Endpoint own(device);
        (void)own.completion(true);
    });
    try {
        lab.run();
        FAIL() << "it ended";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(),
                     "simverbs::Lab: nothing is left to happen, and h1 waited\n"
                     "no queue pair has left RESET\n");
    }
}

// Requests that are refused for ever end a run, with what they wait for.
TEST(Lab, AForgottenReceiveIsNamed) {
    simverbs::Lab lab;
    std::array<boost::fibers::promise<Address>, 2> addresses;
    boost::fibers::promise<void> connected;
    lab.host("h0", [&](ibv_context* device) {
        Endpoint own(device);
        addresses[0].set_value(own.address());
        own.connect(addresses[1].get_future().get());
        connected.get_future().get();
        own.send();
        (void)own.completion(true);
    });
    lab.host("h1", [&](ibv_context* device) {
        Endpoint own(device);
        addresses[1].set_value(own.address());
        own.connect(addresses[0].get_future().get());
        connected.set_value();
        (void)own.completion(true);
    });
    try {
        lab.run();
        FAIL() << "it ended";
    } catch (const std::runtime_error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("nothing happens but RNR retries, which have no limit, and h0, h1 "
                            "waited"),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("its peer had no receive posted"), std::string::npos) << text;
    }
}

TEST(Lab, WhatAProgramLeavesIsNamed) {
    simverbs::Lab lab;
    lab.host("h0", [](ibv_context* device) {
        static ibv_cq* s_left = nullptr;  // its memory stays allocated
        s_left = ibv_create_cq(device, 4, nullptr, nullptr, 0);
    });
    try {
        lab.run();
        FAIL() << "it ended";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(),
                     "simverbs::Lab: the program of h0 has left simverbs0 with 0 queue pairs and 1 "
                     "completion queue");
    }
}

TEST(Lab, NobodySleepsBeforeItRuns) {
    simverbs::Lab lab;
    EXPECT_THROW(lab.sleep_for(1ms), simverbs::Error);
}

TEST(Lab, WhatAProgramThrowsComesOut) {
    simverbs::Lab lab;
    lab.host("h0", [](ibv_context*) { throw std::out_of_range("mine"); });
    EXPECT_THROW(lab.run(), std::out_of_range);
    simverbs::Lab other;
    other.host("h7", [](ibv_context*) {});
    EXPECT_THROW(other.run(), std::runtime_error);
}

}  // namespace
}  // namespace verbs_test
