// Two hosts of a simulated fabric, in one process and one thread: what most tests of verbs code
// need. Knows nothing but verbs.h and simverbs.h, so that it builds anywhere against an installed
// simverbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <infiniband/verbs.h>

#include "simverbs/matchers.hpp"  // statuses have names in failures, in every file of a program
#include "simverbs/simverbs.h"

namespace verbs_test {

inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr std::uint32_t kPsn = 100;  // where both sides begin

// As munmap(), but nothing else comes to lie there: not what another thread allocates, say.
void take_away(void* pages, std::size_t bytes);

// On Ethernet: of the port's RoCE v2 address over IPv4, which lies elsewhere with each device.
std::uint8_t ipv4_gid_index(ibv_context* context);

// The last refusal gives a reason that has these words.
void expect_reason(std::string_view words);

// How two queue pairs are made and connected.
struct Connection {
    ibv_qp_type type = IBV_QPT_RC;
    std::uint32_t shared_receives = 0;  // of a shared receive queue; 0: a queue of its own
    std::uint32_t qkey = 0x11111111;    // UD
    ibv_mtu mtu = IBV_MTU_1024;
    std::uint8_t timeout = 14;  // 67.1 ms a try
    std::uint8_t retries = 7;
    std::uint8_t rnr_retries = 6;
    std::uint8_t min_rnr_timer = 12;  // 0.64 ms
    std::uint8_t reads = 16;          // outstanding, both as requester and as responder
    unsigned access = kAllAccess;     // of the responder's queue pair
    int signal_all = 0;
    ibv_qp_cap cap = {.max_send_wr = 16,
                      .max_recv_wr = 16,
                      .max_send_sge = 4,
                      .max_recv_sge = 4,
                      .max_inline_data = 256};
    int cq_entries = 64;
    std::optional<std::uint8_t> gid_index;  // on Ethernet; without: RoCE v2 over IPv4
};

// One end: a device, and one of everything on it. Completions of both queues come to one CQ.
class End {
  public:
    static constexpr std::size_t kBytes = std::size_t{1} << 20;

    End(std::size_t device, const Connection& with);
    ~End();
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    std::uint8_t* at(std::size_t offset = 0) { return memory_.get() + offset; }
    std::uint64_t address(std::size_t offset = 0) {
        return reinterpret_cast<std::uint64_t>(at(offset));
    }
    std::uint64_t& word(std::size_t offset = 0) {
        return *reinterpret_cast<std::uint64_t*>(at(offset));
    }
    // Returns a range of the memory for a work request.
    ibv_sge range(std::size_t offset, std::uint32_t length) {
        return {address(offset), length, mr->lkey};
    }

    // On the shared receive queue where there is one.
    int receive(std::uint64_t id, std::vector<ibv_sge> segments);
    // Polls until a completion is there. One that never comes is a failure, and returned with
    // status IBV_WC_GENERAL_ERR.
    ibv_wc wait();
    // One completion, if there is one without any time passing.
    std::vector<ibv_wc> drain();
    ibv_qp_state state();
    ibv_qp_attr query();
    int to_state(ibv_qp_state state);
    // Async events so far, acknowledged.
    std::vector<ibv_event_type> events();

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_srq* srq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_ah* ah = nullptr;  // UD: leads to the other end
    ibv_mr* mr = nullptr;  // all of `memory_`, with every right

  private:
    struct Free {
        void operator()(std::uint8_t* block) const;
    };
    std::unique_ptr<std::uint8_t, Free> memory_;
};

// A send work request, spelled as it is meant: Request(IBV_WR_SEND).id(1).from(sge).post(end).
class Request {
  public:
    explicit Request(ibv_wr_opcode opcode) {
        wr_.opcode = opcode;
        wr_.send_flags = IBV_SEND_SIGNALED;
    }
    Request& id(std::uint64_t value) {
        wr_.wr_id = value;
        return *this;
    }
    Request& from(const ibv_sge& segment) {
        segments_.push_back(segment);
        return *this;
    }
    // Where the answer to a READ or an atomic lands.
    Request& into(const ibv_sge& segment) { return from(segment); }
    Request& to(std::uint64_t address, std::uint32_t rkey) {
        wr_.wr.rdma.remote_addr = address;
        wr_.wr.rdma.rkey = rkey;
        return *this;
    }
    Request& compare_and_swap(std::uint64_t address, std::uint32_t rkey, std::uint64_t expected,
                              std::uint64_t replacement);
    Request& fetch_and_add(std::uint64_t address, std::uint32_t rkey, std::uint64_t addend);
    // Where a datagram goes.
    Request& to(ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
        wr_.wr.ud.ah = ah;
        wr_.wr.ud.remote_qpn = qpn;
        wr_.wr.ud.remote_qkey = qkey;
        return *this;
    }
    Request& immediate(std::uint32_t value);
    Request& with(unsigned flags) {
        wr_.send_flags |= flags;
        return *this;
    }
    Request& unsignaled() {
        wr_.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
        return *this;
    }
    [[nodiscard]] int post(End& end);

  private:
    ibv_send_wr wr_{};
    std::vector<ibv_sge> segments_;
};

// A fabric of its own for each test: two hosts, h0 and h1, on the switch s0.
class TwoHosts : public testing::Test {
  protected:
    void SetUp() override;
    void TearDown() override;

    // Makes both ends and takes their queue pairs to RTS. `with` holds for both.
    void connect(const Connection& with = {});
    // The same for ends whose queue pairs are in RESET.
    void bring_up(const Connection& with) { bring_up(*a, *b, with); }
    static void bring_up(End& one, End& other, const Connection& with);

    // Both directions of the attributes that the three steps to RTS need.
    static ibv_qp_attr init_attr(const Connection& with);
    static ibv_qp_attr rtr_attr(const End& peer, const Connection& with);
    static ibv_qp_attr rts_attr(const Connection& with);
    static int init_mask(const Connection& with);
    static int rtr_mask(const Connection& with);
    static int rts_mask(const Connection& with);
    static constexpr int kInitMask =
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    static constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER;
    static constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

    // Lets virtual time pass.
    static void pass(std::int64_t milliseconds);
    static std::int64_t now_us();
    static std::uint64_t run_digest();
    // Nothing more happens, however long one waits.
    void expect_silence();
    // A message goes through, from a to b.
    void expect_works();

    std::unique_ptr<End> a;
    std::unique_ptr<End> b;
    bool repeats = true;  // the run: false where a test acts on the wall clock
};

}  // namespace verbs_test

// GoogleTest finds it by its name: a completion as a line of text.
void PrintTo(const ibv_wc& wc, std::ostream* out);  // NOLINT(readability-identifier-naming)
