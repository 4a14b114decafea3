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
// An assertion takes one completion of a queue, also where AnyOf or AllOf have several of these
// matchers. All are about an ibv_cq* of the embedded world, whose empty poll moves time on.
// CompletesWith gives up after kPatience empty polls; or sooner, after kReceivePatience of virtual
// time, where all that is outstanding is turned away for want of a receive and RNR retries have no
// limit: until then the peer may post its receive. What cannot be asked (a queue that is NULL, a
// duration below 0) is thrown as simverbs::Error, so that it fails under Not(), too.
#ifndef SIMVERBS_MATCHERS_HPP
#define SIMVERBS_MATCHERS_HPP

#if __cplusplus < 201703L
#error "<simverbs/matchers.hpp> needs C++17"
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.hpp>

// How GoogleTest prints them: "IBV_WC_RETRY_EXC_ERR (12)".
inline void PrintTo(ibv_wc_status status, std::ostream* out) {
    constexpr std::array kNames{"SUCCESS",
                                "LOC_LEN_ERR",
                                "LOC_QP_OP_ERR",
                                "LOC_EEC_OP_ERR",
                                "LOC_PROT_ERR",
                                "WR_FLUSH_ERR",
                                "MW_BIND_ERR",
                                "BAD_RESP_ERR",
                                "LOC_ACCESS_ERR",
                                "REM_INV_REQ_ERR",
                                "REM_ACCESS_ERR",
                                "REM_OP_ERR",
                                "RETRY_EXC_ERR",
                                "RNR_RETRY_EXC_ERR",
                                "LOC_RDD_VIOL_ERR",
                                "REM_INV_RD_REQ_ERR",
                                "REM_ABORT_ERR",
                                "INV_EECN_ERR",
                                "INV_EEC_STATE_ERR",
                                "FATAL_ERR",
                                "RESP_TIMEOUT_ERR",
                                "GENERAL_ERR",
                                "TM_ERR",
                                "TM_RNDV_INCOMPLETE"};
    const auto number = static_cast<std::size_t>(status);
    *out << "IBV_WC_" << (number < kNames.size() ? kNames[number] : "?") << " (" << number << ")";
}
inline void PrintTo(ibv_wc_opcode opcode, std::ostream* out) {
    constexpr std::array kSent{"SEND",    "RDMA_WRITE", "RDMA_READ", "COMP_SWAP", "FETCH_ADD",
                               "BIND_MW", "LOCAL_INV",  "TSO",       "FLUSH",     "ATOMIC_WRITE"};
    constexpr std::array kReceived{"RECV",    "RECV_RDMA_WITH_IMM", "TM_ADD", "TM_DEL", "TM_SYNC",
                                   "TM_RECV", "TM_NO_TAG"};
    const auto number = static_cast<std::size_t>(opcode);
    const std::size_t received = number - IBV_WC_RECV;
    *out << "IBV_WC_"
         << (number < kSent.size()         ? kSent[number]
             : received < kReceived.size() ? kReceived[received]
                                           : "?")
         << " (" << number << ")";
}

namespace simverbs {

// Empty polls after which nothing is expected any more.
inline constexpr int kPatience = 50'000;
// The virtual time that a peer has to post a receive while RNR retries without limit are all that
// goes on, and the empty polls that it has at least. For one that needs longer, simverbs::advance()
// first.
inline constexpr Picoseconds kReceivePatience = std::chrono::milliseconds(100);
inline constexpr int kReceivePolls = 1'000;

namespace detail {

// The outcome of a look at a queue.
struct Look {
    bool found = false;
    ibv_wc wc{};
    Picoseconds waited{};
};

// A question about a queue, which a look at it answers.
class QueueQuestion {
  public:
    virtual ~QueueQuestion() = default;
    [[nodiscard]] virtual Look look(ibv_cq* cq) const = 0;
    // Nothing came: that answers other questions, too.
    [[nodiscard]] virtual bool waits_to_the_end() const = 0;
    virtual bool judge(ibv_cq* cq, const Look& look,
                       testing::MatchResultListener& listener) const = 0;
    virtual void describe(bool negated, std::ostream& out) const = 0;
};

// The looks of the last assertions. All matchers of one look at a queue once, and when GoogleMock
// asks them a second time, for its message, the completion is gone. An assertion is known by its
// matchers: they are all made before the first of them looks. A queue is known by its place, since
// a list may have it twice. Fibers of a thread may be in assertions at once.
class Looks {
  public:
    static Looks& of_this_thread() {
        thread_local Looks looks;
        return looks;
    }
    // The assertion that a matcher is made for.
    std::uint64_t begin() {
        assertion_ += has_looked_ ? 1U : 0U;
        has_looked_ = false;
        return assertion_;
    }
    // The look of `asker`, which is its own of before, another matcher's, or a new one.
    Look look(const void* asker, std::uint64_t assertion, ibv_cq* const& cq,
              const QueueQuestion& question, bool is_for_message) {
        has_looked_ = true;
        const auto is_here = [&, where = &cq](const Kept& kept) {
            return kept.assertion == assertion && kept.where == where && kept.cq == cq;
        };
        const auto own = std::find_if(all_.begin(), all_.end(), [&](const Kept& kept) {
            return is_here(kept) && kept.has(asker);
        });
        if (own != all_.end() && is_for_message) {
            return own->look;
        }
        if (own != all_.end()) {  // a matcher that is kept begins anew
            all_.erase(std::remove_if(all_.begin(), all_.end(), is_here), all_.end());
        }
        const auto other = std::find_if(all_.begin(), all_.end(), [&](const Kept& kept) {
            return is_here(kept) && kept.is_shared;
        });
        if (other != all_.end()) {
            other->askers.push_back(asker);
            return other->look;
        }
        const Look look = question.look(cq);
        forget();
        all_.push_back(
            {assertion, &cq, cq, look, look.found || question.waits_to_the_end(), {asker}});
        return look;
    }

  private:
    struct Kept {
        std::uint64_t assertion;
        const void* where;
        ibv_cq* cq;
        Look look;
        bool is_shared;
        std::vector<const void*> askers;

        [[nodiscard]] bool has(const void* asker) const {
            return std::find(askers.begin(), askers.end(), asker) != askers.end();
        }
    };
    static constexpr std::uint64_t kRemembered = 64;

    void forget() {
        const auto is_old = [this](const Kept& kept) {
            return kept.assertion + kRemembered < assertion_;
        };
        all_.erase(std::remove_if(all_.begin(), all_.end(), is_old), all_.end());
    }

    std::vector<Kept> all_;
    std::uint64_t assertion_ = 0;
    bool has_looked_ = false;
};

// A question in an assertion.
class InAssertion final : public testing::MatcherInterface<ibv_cq* const&> {
  public:
    explicit InAssertion(std::shared_ptr<const QueueQuestion> question)
        : question_(std::move(question)), assertion_(Looks::of_this_thread().begin()) {}

    bool MatchAndExplain(ibv_cq* const& cq, testing::MatchResultListener* listener) const override {
        const Look look = Looks::of_this_thread().look(this, assertion_, cq, *question_,
                                                       listener->IsInterested());
        return question_->judge(cq, look, *listener);
    }
    void DescribeTo(std::ostream* out) const override { question_->describe(false, *out); }
    void DescribeNegationTo(std::ostream* out) const override { question_->describe(true, *out); }

  private:
    std::shared_ptr<const QueueQuestion> question_;
    std::uint64_t assertion_;
};

// A question that is kept as a Matcher<ibv_cq*>, for one assertion after another.
class Kept final : public testing::MatcherInterface<ibv_cq*> {
  public:
    explicit Kept(std::shared_ptr<const QueueQuestion> question) : question_(std::move(question)) {}

    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const override {
        if (!listener->IsInterested() || !last_ || last_->first != cq) {
            last_ = {cq, question_->look(cq)};
        }
        const Look look = last_->second;
        if (listener->IsInterested()) {
            last_.reset();
        }
        return question_->judge(cq, look, *listener);
    }
    void DescribeTo(std::ostream* out) const override { question_->describe(false, *out); }
    void DescribeNegationTo(std::ostream* out) const override { question_->describe(true, *out); }

  private:
    std::shared_ptr<const QueueQuestion> question_;
    mutable std::optional<std::pair<ibv_cq*, Look>> last_;
};

// A matcher of a queue, until GoogleMock makes one of it for an assertion.
class QueueMatcher {
  public:
    explicit QueueMatcher(std::shared_ptr<const QueueQuestion> question)
        : question_(std::move(question)) {}

    template <class T,
              std::enable_if_t<
                  std::is_same_v<std::remove_cv_t<std::remove_reference_t<T>>, ibv_cq*>, int> = 0>
    operator testing::Matcher<T>() const {  // NOLINT(google-explicit-constructor): as gmock has it
        if constexpr (std::is_reference_v<T>) {
            return testing::Matcher<T>(new InAssertion(question_));
        } else {
            return testing::Matcher<T>(new Kept(question_));
        }
    }

  private:
    std::shared_ptr<const QueueQuestion> question_;
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

// Says what came; if it failed, why, on lines of their own.
inline void tell(ibv_cq* cq, const ibv_wc& wc, testing::MatchResultListener& listener) {
    if (listener.IsInterested()) {
        listener << "which completes " << words(wc);
        if (wc.status != IBV_WC_SUCCESS) {
            listener << below(simverbs_explain_completion(cq, &wc));
        }
    }
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

inline void require_queue(const ibv_cq* cq) {
    if (cq == nullptr) {
        throw Error(EINVAL, "a matcher is asked about a completion queue that is NULL");
    }
}

// The next entry of a queue; throws where it cannot be polled.
inline bool poll(ibv_cq* cq, ibv_wc& wc) {
    const int found = ibv_poll_cq(cq, 1, &wc);
    if (found < 0) {
        throw Error(EIO, "ibv_poll_cq of a queue that a matcher is asked about fails");
    }
    return found == 1;
}

class NextCompletion final : public QueueQuestion {
  public:
    // Without a status: any.
    NextCompletion(std::optional<ibv_wc_status> status,
                   std::optional<testing::Matcher<const ibv_wc&>> fields)
        : status_(status), fields_(std::move(fields)) {}

    [[nodiscard]] Look look(ibv_cq* cq) const override {
        require_queue(cq);
        Look seen;
        const Picoseconds begin = now();
        for (int i = 0; i < kPatience && !seen.found; ++i) {
            seen.found = poll(cq, seen.wc);
            if (!seen.found && i % kReceivePolls == kReceivePolls - 1 &&
                now() - begin >= kReceivePatience && all_wait_for_receives()) {
                break;
            }
        }
        seen.waited = now() - begin;
        return seen;
    }
    [[nodiscard]] bool waits_to_the_end() const override { return true; }
    bool judge(ibv_cq* cq, const Look& look,
               testing::MatchResultListener& listener) const override {
        if (!look.found) {
            if (listener.IsInterested()) {
                listener << "which completes nothing within " << to_string(look.waited)
                         << why_nothing();
            }
            return false;
        }
        tell(cq, look.wc, listener);
        return (!status_ || look.wc.status == *status_) &&
               (!fields_ || judge_fields(look.wc, listener));
    }
    void describe(bool negated, std::ostream& out) const override {
        out << (negated ? "does not complete" : "completes");
        if (status_) {
            out << " with '" << ibv_wc_status_str(*status_) << "'";
        }
        if (fields_) {
            out << (status_ ? " and " : " with ");
            fields_->DescribeTo(&out);
        }
    }

  private:
    [[nodiscard]] bool judge_fields(const ibv_wc& wc,
                                    testing::MatchResultListener& listener) const {
        testing::StringMatchResultListener told;
        const bool matches = fields_->MatchAndExplain(wc, &told);
        listener << (told.str().empty() ? "" : ", ") << told.str();
        return matches;
    }

    std::optional<ibv_wc_status> status_;
    std::optional<testing::Matcher<const ibv_wc&>> fields_;
};

class Silence final : public QueueQuestion {
  public:
    explicit Silence(Picoseconds duration) : duration_(duration) {
        if (duration < Picoseconds::zero()) {
            throw Error(EINVAL, "NothingWithin(" + to_string(duration) + "): time goes forward");
        }
    }

    [[nodiscard]] Look look(ibv_cq* cq) const override {
        require_queue(cq);
        Look seen;
        advance(duration_);
        seen.found = poll(cq, seen.wc);
        return seen;
    }
    [[nodiscard]] bool waits_to_the_end() const override { return false; }
    bool judge(ibv_cq* cq, const Look& look,
               testing::MatchResultListener& listener) const override {
        if (look.found) {
            tell(cq, look.wc, listener);
        }
        return !look.found;
    }
    void describe(bool negated, std::ostream& out) const override {
        out << "completes " << (negated ? "something" : "nothing") << " within "
            << to_string(duration_);
    }

  private:
    Picoseconds duration_;
};

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

// The next completion of a queue, whenever it comes, has this status.
inline detail::QueueMatcher CompletesWith(ibv_wc_status status) {
    return detail::QueueMatcher(std::make_shared<detail::NextCompletion>(status, std::nullopt));
}
// It has this status and these fields.
inline detail::QueueMatcher CompletesWith(ibv_wc_status status,
                                          const testing::Matcher<const ibv_wc&>& fields) {
    return detail::QueueMatcher(std::make_shared<detail::NextCompletion>(status, fields));
}
// It has these fields, with any status.
inline detail::QueueMatcher Completes(const testing::Matcher<const ibv_wc&>& fields) {
    return detail::QueueMatcher(std::make_shared<detail::NextCompletion>(std::nullopt, fields));
}

// So much virtual time passes, and the queue is empty then.
template <class Rep, class Period>
detail::QueueMatcher NothingWithin(const std::chrono::duration<Rep, Period>& duration) {
    return detail::QueueMatcher(std::make_shared<detail::Silence>(picoseconds(duration)));
}

class FiredMatcher {
  public:
    using is_gtest_matcher = void;

    explicit FiredMatcher(testing::Matcher<std::uint64_t> times) : times_(std::move(times)) {}

    bool MatchAndExplain(const Fault& fault, testing::MatchResultListener* listener) const {
        *listener << "which fired " << fault.fired() << " times: " << fault.describe();
        return times_.Matches(fault.fired() - fault.missed());
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

// EXPECT_THAT(lost, Fired(1)), or Fired(Ge(2)): how often a fault has fired and done something;
// else how much of what it waits for has come, or why it did nothing.
inline testing::Matcher<const Fault&> Fired(const testing::Matcher<std::uint64_t>& times) {
    return FiredMatcher(times);
}

// As GoogleTest prints it.
inline void PrintTo(const Fault& fault, std::ostream* out) {
    *out << "fault " << fault.id();
}

}  // namespace simverbs

#endif
