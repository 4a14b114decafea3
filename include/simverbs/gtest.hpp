// Matchers for tests of verbs code with GoogleMock, in virtual time:
//
//     EXPECT_THAT(cq, simverbs::CompletesWith(IBV_WC_RETRY_EXC_ERR));
//     EXPECT_THAT(cq, simverbs::NothingWithin(std::chrono::seconds(1)));
//
// Both are about an ibv_cq* of the embedded world, whose empty poll moves time on.
#ifndef SIMVERBS_GTEST_HPP
#define SIMVERBS_GTEST_HPP

#include <ostream>

#include <gmock/gmock.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.hpp>

namespace simverbs {

// Empty polls after which nothing is expected any more.
inline constexpr int kPatience = 200'000;

class CompletesWithMatcher {
  public:
    using is_gtest_matcher = void;

    explicit CompletesWithMatcher(ibv_wc_status status) : status_(status) {}

    // Takes the next completion.
    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        ibv_wc wc{};
        for (int i = 0; i < kPatience; ++i) {
            const int found = ibv_poll_cq(cq, 1, &wc);
            if (found < 0) {
                *listener << "which cannot be polled";
                return false;
            }
            if (found == 1) {
                *listener << "which completes wr_id " << wc.wr_id << " with '"
                          << ibv_wc_status_str(wc.status) << "', vendor_err " << wc.vendor_err;
                return wc.status == status_;
            }
        }
        *listener << "which completes nothing";
        return false;
    }
    void DescribeTo(std::ostream* out) const {
        *out << "completes with '" << ibv_wc_status_str(status_) << "'";
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "does not complete with '" << ibv_wc_status_str(status_) << "'";
    }

  private:
    ibv_wc_status status_;
};

// The next completion of a queue, whenever it comes, has this status.
inline testing::Matcher<ibv_cq*> CompletesWith(ibv_wc_status status) {
    return CompletesWithMatcher(status);
}

class NothingWithinMatcher {
  public:
    using is_gtest_matcher = void;

    explicit NothingWithinMatcher(Picoseconds duration) : duration_(duration) {}

    bool MatchAndExplain(ibv_cq* cq, testing::MatchResultListener* listener) const {
        if (simverbs_advance_ps(duration_.count()) != 0) {
            *listener << "but time does not pass: " << simverbs_last_error();
            return false;
        }
        ibv_wc wc{};
        if (ibv_poll_cq(cq, 1, &wc) == 0) {
            return true;
        }
        *listener << "which completes wr_id " << wc.wr_id << " with '"
                  << ibv_wc_status_str(wc.status) << "'";
        return false;
    }
    void DescribeTo(std::ostream* out) const {
        *out << "completes nothing within " << duration_.count() << " ps";
    }
    void DescribeNegationTo(std::ostream* out) const {
        *out << "completes something within " << duration_.count() << " ps";
    }

  private:
    Picoseconds duration_;
};

// So much virtual time passes, and the queue is empty then.
inline testing::Matcher<ibv_cq*> NothingWithin(Picoseconds duration) {
    return NothingWithinMatcher(duration);
}

}  // namespace simverbs

#endif
