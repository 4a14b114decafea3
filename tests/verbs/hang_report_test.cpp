// SIGUSR2 to a program that hangs: what each queue pair waits for.
#include <array>
#include <csignal>
#include <cstdio>
#include <string>

#include <unistd.h>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

class HangReport : public TwoHosts {
  protected:
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
        // The report is another thread's: it comes soon, and in one piece. Empty: none came.
        std::string ask() {
            EXPECT_EQ(raise(SIGUSR2), 0);
            for (int i = 0; i < kTries; ++i) {
                std::array<char, 4096> bytes{};
                const ssize_t got = pread(fileno(file_), bytes.data(), bytes.size(), read_);
                const std::string text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
                if (text.find("virtual time") != std::string::npos) {
                    read_ += got;
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
    EXPECT_NE(before.find("1 receives posted; waits for a message"), std::string::npos) << before;
    // The only packet is lost and no timer runs: this is how programs hang.
    ASSERT_EQ(simverbs_drop_nth("h0-s0", "h0", 1, nullptr), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(2).from(a->range(0, 8)).post(*a), 0);
    pass(1000);
    const std::string after = ask();
    EXPECT_NE(after.find("1 sends outstanding (1 begun)"), std::string::npos) << after;
    EXPECT_NE(after.find("for ever (timeout 0)"), std::string::npos) << after;
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

}  // namespace
}  // namespace verbs_test
