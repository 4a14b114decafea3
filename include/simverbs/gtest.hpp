// Matchers for tests of verbs code with GoogleMock, in virtual time:
//
//     EXPECT_THAT(cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
//     EXPECT_THAT(cq, simverbs::NothingWithin(std::chrono::seconds(1)));
//     EXPECT_THAT(cq, simverbs::CompletesWith(IBV_WC_SUCCESS,
//                                             AllOf(simverbs::HasWrId(7),
//                                             simverbs::HasByteLen(64))));
//     EXPECT_THAT(cq, simverbs::Completes(AnyOf(simverbs::HasStatus(IBV_WC_RNR_RETRY_EXC_ERR),
//                                               simverbs::HasStatus(IBV_WC_RETRY_EXC_ERR))));
//     EXPECT_THAT(lost, simverbs::Fired(1));  // a simverbs::Fault
//
// Each takes one completion: two CompletesWith in an AnyOf take two. All are about an ibv_cq* of
// the embedded world, whose empty poll moves time on. CompletesWith gives up after kPatience empty
// polls; or sooner, after kReceivePatience of virtual time, where all that is outstanding is turned
// away for want of a receive and RNR retries have no limit: until then the peer may post its
// receive. And a fixture, two hosts with a reliable connection between them:
//
//     using Loss = simverbs::TwoHosts;
//     TEST_F(Loss, IsRepaired) {
//         const simverbs::Fault lost = simverbs::drop().from("h0").psn(1).attempt(1).inject();
//         h1.receive(64);
//         h0.send(64);
//         EXPECT_THAT(h1.cq, simverbs::CompletesWith(IBV_WC_SUCCESS));
//     }
#ifndef SIMVERBS_GTEST_HPP
#define SIMVERBS_GTEST_HPP

#if __cplusplus < 201703L
#error "<simverbs/gtest.hpp> needs C++17, and {.name = value} in its options C++20: -std=c++20"
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <infiniband/verbs.h>

#include <simverbs/connect.hpp>
#include <simverbs/simverbs.hpp>

namespace simverbs {

// Empty polls after which nothing is expected any more.
inline constexpr int kPatience = 50'000;
// The virtual time that a peer has to post a receive while RNR retries without limit are all that
// goes on, and the empty polls that it has at least. For one that needs longer, simverbs::advance()
// first.
inline constexpr Picoseconds kReceivePatience = std::chrono::milliseconds(100);
inline constexpr int kReceivePolls = 1'000;

namespace detail {

// GoogleMock asks a matcher that did not match a second time, for the explanation. By then the
// completion is gone: what the first look at each queue found is kept for the second one.
template <class Seen>
class LookOnce {
  public:
    template <class Look>
    Seen operator()(ibv_cq* cq, const testing::MatchResultListener& listener, Look&& look) const {
        const auto kept = std::find_if(kept_->begin(), kept_->end(),
                                       [cq](const Kept& each) { return each.cq == cq; });
        if (!listener.IsInterested()) {
            const Seen seen = look();
            if (kept == kept_->end()) {
                kept_->push_back({cq, seen});
            } else {
                kept->seen = seen;
            }
            return seen;
        }
        if (kept == kept_->end()) {
            return look();
        }
        const Seen seen = kept->seen;
        kept_->erase(kept);
        return seen;
    }

  private:
    struct Kept {
        ibv_cq* cq;
        Seen seen;
    };
    using All = std::vector<Kept>;
    std::shared_ptr<All> kept_ = std::make_shared<All>();  // shared by copies of the matcher
};

// "wr_id 7 with 'remote access error' (vendor_err 136)".
inline std::string words(const ibv_wc& wc) {
    std::string text =
        "wr_id " + std::to_string(wc.wr_id) + " with '" + ibv_wc_status_str(wc.status) + "'";
    if (wc.vendor_err != 0) {
        text += " (vendor_err " + std::to_string(wc.vendor_err) + ")";
    }
    return text;
}

inline std::string below(const char* text) {
    if (text == nullptr) {
        return std::string("\n    (") + simverbs_last_error() + ")";
    }
    return *text == '\0' ? "" : std::string("\n") + text;
}

// Why, on lines of their own.
inline std::string why(ibv_cq* cq, std::uint32_t qp_num) {
    const char* const host = simverbs_device_host(cq->context->device);
    return below(host == nullptr ? simverbs_explain("", 0) : simverbs_explain(host, qp_num));
}

// True where sends are outstanding in the world, and each of them waits for a receive of its peer
// with RNR retries that have no limit: nothing but a receive, or a fault to come, ends that.
inline bool all_wait_for_receives() {
    const char* const waits = simverbs_waits();
    std::istringstream lines(waits == nullptr ? "" : waits);
    bool is_any = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" outstanding (") == std::string::npos ||
            line.find(", 0 sends outstanding") != std::string::npos) {
            continue;
        }
        is_any = true;
        if (line.find("RNR retries have no limit") == std::string::npos) {
            return false;
        }
    }
    return is_any;
}

// The same of a queue in which nothing came: what failed, anywhere, and what is waited for.
inline std::string why_nothing() {
    return below(simverbs_explain("", 0)) + below(simverbs_waits());
}

// "wr_id is equal to 7".
template <class T>
testing::Matcher<const ibv_wc&> has(const char* name, T ibv_wc::*member,
                                    const testing::Matcher<T>& expected) {
    return testing::Field(name, member, expected);
}

}  // namespace detail

// Matchers of the fields of a completion, for Completes() and CompletesWith(): a value, or a
// matcher of one.
inline testing::Matcher<const ibv_wc&> HasStatus(const testing::Matcher<ibv_wc_status>& status) {
    return detail::has("status", &ibv_wc::status, status);
}
inline testing::Matcher<const ibv_wc&> HasWrId(const testing::Matcher<std::uint64_t>& id) {
    return detail::has("wr_id", &ibv_wc::wr_id, id);
}
inline testing::Matcher<const ibv_wc&> HasByteLen(const testing::Matcher<std::uint32_t>& bytes) {
    return detail::has("byte_len", &ibv_wc::byte_len, bytes);
}
inline testing::Matcher<const ibv_wc&> HasOpcode(const testing::Matcher<ibv_wc_opcode>& opcode) {
    return detail::has("opcode", &ibv_wc::opcode, opcode);
}
inline testing::Matcher<const ibv_wc&> HasQpNum(const testing::Matcher<std::uint32_t>& number) {
    return detail::has("qp_num", &ibv_wc::qp_num, number);
}
inline testing::Matcher<const ibv_wc&> HasSrcQp(const testing::Matcher<std::uint32_t>& number) {
    return detail::has("src_qp", &ibv_wc::src_qp, number);
}

class CompletesWithMatcher {
  public:
    using is_gtest_matcher = void;

    // Without a status: any.
    CompletesWithMatcher(std::optional<ibv_wc_status> status,
                         std::optional<testing::Matcher<const ibv_wc&>> fields)
        : status_(status), fields_(std::move(fields)) {}

    // Takes the next completion.
    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        const Seen seen = look_once_(cq, *listener, [cq] { return next_of(cq); });
        if (seen.found < 0) {
            *listener << "which cannot be polled";
        } else if (seen.found == 0) {
            *listener << "which completes nothing within " << to_string(seen.waited)
                      << detail::why_nothing();
        } else if (listener->IsInterested()) {
            *listener << "which completes " << detail::words(seen.wc);
            if (seen.wc.status != IBV_WC_SUCCESS) {
                *listener << detail::why(cq, seen.wc.qp_num);
            }
        }
        if (seen.found != 1 || (status_ && seen.wc.status != *status_)) {
            return false;
        }
        return !fields_ || explain_fields(seen.wc, *listener);
    }
    void DescribeTo(std::ostream* out) const { describe("completes", *out); }
    void DescribeNegationTo(std::ostream* out) const { describe("does not complete", *out); }

  private:
    struct Seen {
        int found = 0;  // as ibv_poll_cq() returned it at last
        ibv_wc wc{};
        Picoseconds waited{};
    };

    [[nodiscard]] bool explain_fields(const ibv_wc& wc,
                                      testing::MatchResultListener& listener) const {
        testing::StringMatchResultListener told;
        const bool matches = fields_->MatchAndExplain(wc, &told);
        listener << (told.str().empty() ? "" : ", ") << told.str();
        return matches;
    }
    void describe(const char* verb, std::ostream& out) const {
        out << verb;
        if (status_) {
            out << " with '" << ibv_wc_status_str(*status_) << "'";
        }
        if (fields_) {
            out << (status_ ? " and " : " with ");
            fields_->DescribeTo(&out);
        }
    }

    static Seen next_of(ibv_cq* cq) {
        Seen seen;
        const Picoseconds begin = now();
        for (int i = 0; i < kPatience && seen.found == 0; ++i) {
            seen.found = ibv_poll_cq(cq, 1, &seen.wc);
            if (seen.found == 0 && i % kReceivePolls == kReceivePolls - 1 &&
                now() - begin >= kReceivePatience && detail::all_wait_for_receives()) {
                break;
            }
        }
        seen.waited = now() - begin;
        return seen;
    }

    std::optional<ibv_wc_status> status_;
    std::optional<testing::Matcher<const ibv_wc&>> fields_;
    detail::LookOnce<Seen> look_once_;
};

// The next completion of a queue, whenever it comes, has this status.
inline testing::Matcher<ibv_cq*> CompletesWith(ibv_wc_status status) {
    return CompletesWithMatcher(status, std::nullopt);
}
// It has this status and these fields.
inline testing::Matcher<ibv_cq*> CompletesWith(ibv_wc_status status,
                                               const testing::Matcher<const ibv_wc&>& fields) {
    return CompletesWithMatcher(status, fields);
}
// It has these fields, with any status.
inline testing::Matcher<ibv_cq*> Completes(const testing::Matcher<const ibv_wc&>& fields) {
    return CompletesWithMatcher(std::nullopt, fields);
}

class NothingWithinMatcher {
  public:
    using is_gtest_matcher = void;

    explicit NothingWithinMatcher(Picoseconds duration) : duration_(duration) {}

    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        const Seen seen = look_once_(cq, *listener, [this, cq] { return within(cq); });
        if (!seen.wrong.empty()) {
            *listener << "but time does not pass: " << seen.wrong;
        } else if (seen.found < 0) {
            *listener << "which cannot be polled";
        } else if (seen.found == 1 && listener->IsInterested()) {
            *listener << "which completes " << detail::words(seen.wc);
            if (seen.wc.status != IBV_WC_SUCCESS) {
                *listener << detail::why(cq, seen.wc.qp_num);
            }
        }
        return seen.wrong.empty() && seen.found == 0;
    }
    void DescribeTo(std::ostream* out) const {
        *out << "completes nothing within " << to_string(duration_);
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "completes something within " << to_string(duration_);
    }

  private:
    struct Seen {
        std::string wrong;
        int found = 0;
        ibv_wc wc{};
    };

    Seen within(ibv_cq* cq) const {
        Seen seen;
        if (simverbs_advance_ps(duration_.count()) != 0) {
            seen.wrong = simverbs_last_error();
        } else {
            seen.found = ibv_poll_cq(cq, 1, &seen.wc);
        }
        return seen;
    }

    Picoseconds duration_;
    detail::LookOnce<Seen> look_once_;
};

// So much virtual time passes, and the queue is empty then.
inline testing::Matcher<ibv_cq*> NothingWithin(Picoseconds duration) {
    return NothingWithinMatcher(duration);
}

class FiredMatcher {
  public:
    using is_gtest_matcher = void;

    explicit FiredMatcher(testing::Matcher<std::uint64_t> times) : times_(std::move(times)) {}

    bool MatchAndExplain(const Fault& fault, testing::MatchResultListener* listener) const {
        const std::uint64_t fired = fault.fired();
        *listener << "which fired " << fired << " times: " << fault.describe();
        return times_.Matches(fired);
    }
    void DescribeTo(std::ostream* out) const {
        *out << "fired as often as: ";
        times_.DescribeTo(out);
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "fired as often as: ";
        times_.DescribeNegationTo(out);
    }

  private:
    testing::Matcher<std::uint64_t> times_;
};

// EXPECT_THAT(lost, Fired(1)), or Fired(Ge(2)): how often a fault has fired; else how much of what
// it waits for has come.
inline testing::Matcher<const Fault&> Fired(const testing::Matcher<std::uint64_t>& times) {
    return FiredMatcher(times);
}

// As GoogleTest prints it.
inline void PrintTo(const Fault& fault, std::ostream* out) {
    *out << "fault " << fault.id();
}

// One end of the connection of TwoHosts. What cannot be made or posted fails the test.
struct TwoHostsEnd {
    static constexpr std::size_t kBytes = 4096;

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;  // of both queues; 256 entries
    ibv_mr* mr = nullptr;  // of `bytes`, with all rights
    ibv_qp* qp = nullptr;  // RC, in RTS; 64 requests a queue, each send signaled
    ibv_port_attr port{};
    alignas(64) std::array<std::uint8_t, kBytes> bytes{};

    // Posts a receive of the first `length` bytes; the id comes back in the completion.
    void receive(std::uint32_t length, std::uint64_t id = 0) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        ibv_recv_wr request{};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(qp, &request, &bad), 0) << simverbs_last_error();
    }
    void send(std::uint32_t length, std::uint64_t id = 0) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        post(request, length, id);
    }
    // To, and from, the first bytes of the other end.
    void write(const TwoHostsEnd& peer, std::uint32_t length, std::uint64_t id = 0) {
        remote(IBV_WR_RDMA_WRITE, peer, length, id);
    }
    void read(const TwoHostsEnd& peer, std::uint32_t length, std::uint64_t id = 0) {
        remote(IBV_WR_RDMA_READ, peer, length, id);
    }

  private:
    void remote(ibv_wr_opcode opcode, const TwoHostsEnd& peer, std::uint32_t length,
                std::uint64_t id) {
        ibv_send_wr request{};
        request.opcode = opcode;
        request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(peer.bytes.data());
        request.wr.rdma.rkey = peer.mr->rkey;
        post(request, length, id);
    }
    void post(ibv_send_wr& request, std::uint32_t length, std::uint64_t id) {
        ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), length, mr->lkey};
        request.wr_id = id;
        request.sg_list = &piece;
        request.num_sge = 1;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(qp, &request, &bad), 0) << simverbs_last_error();
    }
};

// A world of its own for each test. A class derived from it may give other options, of the world
// (a fabric of Ethernet, say) and of the connection of the first two devices:
//
//     class Impatient : public simverbs::TwoHosts {
//       protected:
//         Impatient() : TwoHosts({.topology = "eth-star:2"}, {.timeout = 8, .retries = 0}) {}
//     };
class TwoHosts : public testing::Test {
  protected:
    explicit TwoHosts(const WorldOptions& options = {}, const ConnectionOptions& connection = {})
        : world_(options), connection_(connection) {}
    // A test that leaves a device open fails, and the next one begins anew all the same.
    ~TwoHosts() override {
        if (simverbs_restart() != 0) {
            ADD_FAILURE() << simverbs_last_error();
            simverbs_close_devices();
        }
    }

    void SetUp() override {
        int count = 0;
        ibv_device** const devices = ibv_get_device_list(&count);
        if (count >= 2) {
            make(h0, devices[0]);
        }
        if (h0.qp != nullptr) {
            make(h1, devices[1]);
        }
        if (devices != nullptr) {
            ibv_free_device_list(devices);
        }
        ASSERT_GE(count, 2) << simverbs_last_error();
        if (h1.qp != nullptr) {
            // Receives are the test's to post, later than SIMVERBS_WARN=1 wants them.
            simverbs_allow_misuse("no_receive_at_rtr", 1);
            connect(*h0.qp, *h1.qp, connection_);
            simverbs_allow_misuse("no_receive_at_rtr", 0);
        }
    }
    void TearDown() override {
        // A test need not look at every completion.
        simverbs_allow_misuse("completions_unread", 1);
        for (TwoHostsEnd* end : {&h0, &h1}) {
            if (end->context == nullptr) {
                continue;
            }
            const auto why = simverbs_last_error;
            EXPECT_EQ(end->qp == nullptr ? 0 : ibv_destroy_qp(end->qp), 0) << why();
            EXPECT_EQ(end->mr == nullptr ? 0 : ibv_dereg_mr(end->mr), 0) << why();
            EXPECT_EQ(end->cq == nullptr ? 0 : ibv_destroy_cq(end->cq), 0) << why();
            EXPECT_EQ(end->pd == nullptr ? 0 : ibv_dealloc_pd(end->pd), 0) << why();
            EXPECT_EQ(ibv_close_device(end->context), 0) << why();
        }
    }

    TwoHostsEnd h0;
    TwoHostsEnd h1;

  private:
    static constexpr int kAllRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    static void make(TwoHostsEnd& end, ibv_device* device) {
        constexpr int kEntries = 256;
        constexpr std::uint32_t kRequests = 64;
        end.context = ibv_open_device(device);
        ASSERT_NE(end.context, nullptr) << "ibv_open_device: " << std::strerror(errno);
        end.pd = ibv_alloc_pd(end.context);
        ASSERT_NE(end.pd, nullptr) << "ibv_alloc_pd: " << std::strerror(errno);
        end.cq = ibv_create_cq(end.context, kEntries, nullptr, nullptr, 0);
        ASSERT_NE(end.cq, nullptr) << "ibv_create_cq: " << std::strerror(errno);
        end.mr = ibv_reg_mr(end.pd, end.bytes.data(), end.bytes.size(), kAllRights);
        ASSERT_NE(end.mr, nullptr) << "ibv_reg_mr: " << std::strerror(errno);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = end.cq;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = kRequests;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        end.qp = ibv_create_qp(end.pd, &init);
        ASSERT_NE(end.qp, nullptr) << "ibv_create_qp: " << std::strerror(errno);
        ASSERT_EQ(ibv_query_port(end.context, 1, &end.port), 0);
    }
    World world_;
    ConnectionOptions connection_;
};

}  // namespace simverbs

#endif
