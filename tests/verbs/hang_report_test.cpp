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
    // The report is another thread's: it comes soon, and in one piece. Nothing of stderr is lost
    // meanwhile, so it goes to a file until the report is there.
    static std::string ask() {
        constexpr int kTries = 30'000;
        std::FILE* file = std::tmpfile();
        std::fflush(stderr);
        const int before = dup(STDERR_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        EXPECT_EQ(raise(SIGUSR2), 0);
        std::string text;
        for (int i = 0; i < kTries && text.find("virtual time") == std::string::npos; ++i) {
            usleep(1000);
            std::array<char, 4096> bytes{};
            const ssize_t got = pread(fileno(file), bytes.data(), bytes.size(), 0);
            text.assign(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
        }
        dup2(before, STDERR_FILENO);
        close(before);
        EXPECT_EQ(std::fclose(file), 0);
        return text;
    }
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

}  // namespace
}  // namespace verbs_test
