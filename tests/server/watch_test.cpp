// `simverbs watch` on served worlds, as a program that is read and as one on a terminal.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/cli/watch_screen.hpp"

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using simverbs::cli::short_number;
using simverbs::cli::watch_screen;
using simverbs::cli::Watched;

Ran watch(const std::string& socket, const std::string& words) {
    return run(std::string(SIMVERBS_COMMAND) + " watch --world '" + socket + "' " + words);
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
        ++found;
    }
    return found;
}

// `simverbs watch` on a terminal of its own.
class Terminal {
  public:
    Terminal(const std::string& socket, unsigned short rows, unsigned short columns) {
        const winsize size{rows, columns, 0, 0};
        process_ = forkpty(&screen_, nullptr, nullptr, &size);
        if (process_ == 0) {
            execl(SIMVERBS_COMMAND, SIMVERBS_COMMAND, "watch", "--world", socket.c_str(),
                  "--interval", "50ms", nullptr);
            _exit(127);
        }
    }
    ~Terminal() {
        if (process_ > 0) {
            kill(process_, SIGKILL);
            waitpid(process_, nullptr, 0);
        }
        close(screen_);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    // Returns what it draws until `word` has come since the last call; "" when it never does.
    std::string read_until(const std::string& word) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        std::string text;
        while (text.find(word) == std::string::npos) {
            pollfd wanted{screen_, POLLIN, 0};
            std::array<char, 4096> buffer;
            const ssize_t got =
                poll(&wanted, 1, 1000) == 1 ? ::read(screen_, buffer.data(), buffer.size()) : 0;
            if (got < 0 || std::chrono::steady_clock::now() > end) {
                return {};
            }
            text.append(buffer.data(), static_cast<std::size_t>(got));
        }
        return text;
    }
    void resize(unsigned short rows, unsigned short columns) const {
        const winsize size{rows, columns, 0, 0};
        ASSERT_EQ(ioctl(screen_, TIOCSWINSZ, &size), 0);
    }
    void type(char c) const { ASSERT_EQ(write(screen_, &c, 1), 1); }
    int end() {
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

  private:
    int screen_ = -1;
    pid_t process_ = -1;
};

TEST(Watch, ShowsQueuePairsAndPortsOnce) {
    ServedWorld world("star:2");
    const Couple couple(world, "h0", "h1");
    const Ran said = watch(world.socket(), "--once");
    EXPECT_EQ(said.status, 0);
    for (const char* const words : {"star:2  virtual time ", "queue pair", "RTS", "RC", "h0:1",
                                    "h1:1", "s0:1", "ACTIVE", "for a message"}) {
        EXPECT_NE(said.text.find(words), std::string::npos) << words << "\n" << said.text;
    }
    EXPECT_EQ(said.text.find('\x1b'), std::string::npos) << "no terminal, no escapes";
}

TEST(Watch, TellsRatesWhileMessagesFlow) {
    ServedWorld world("star:2");
    Couple couple(world, "h0", "h1");
    couple.begin();
    const Ran said = watch(world.socket(), "--count 3 --interval 200ms");
    EXPECT_TRUE(couple.finish());
    EXPECT_EQ(said.status, 0);
    EXPECT_EQ(count(said.text, "star:2  virtual time "), 3U);
    EXPECT_EQ(count(said.text, "of wall time"), 2U) << "not the first time\n" << said.text;
    const std::string last = said.text.substr(said.text.rfind("star:2  "));
    const std::size_t row = last.find("0x01");
    ASSERT_NE(row, std::string::npos) << last;
    EXPECT_EQ(last.find(" -  ", row), std::string::npos) << "each has its rates\n" << last;
}

TEST(Watch, ChangesNothing) {
    std::string digests;
    for (const int looks : {0, 3}) {
        ServedWorld world("star:2");
        for (int i = 0; i < looks; ++i) {
            EXPECT_EQ(watch(world.socket(), "--once").status, 0);
        }
        const Ran down =
            run(std::string(SIMVERBS_COMMAND) + " down --world '" + world.socket() + "'");
        if (digests.empty()) {
            digests = down.text;
        }
        EXPECT_EQ(digests, down.text);
        EXPECT_NE(digests.find("run digest "), std::string::npos) << digests;
    }
}

TEST(Watch, SaysThatThereIsNoWorldAndWhenItEnds) {
    const Ran nobody = watch("/nowhere/at/all", "--once");
    EXPECT_EQ(nobody.status, 2);
    EXPECT_NE(nobody.text.find("no world is served at '/nowhere/at/all'"), std::string::npos)
        << nobody.text;
    ServedWorld world("star:2");
    Terminal terminal(world.socket(), 40, 200);
    EXPECT_NE(terminal.read_until("virtual time"), "");
    world.server().kill(SIGTERM);
    EXPECT_NE(terminal.read_until("the world has ended"), "");
    EXPECT_EQ(terminal.end(), 0);
}

TEST(Watch, DrawsWhatFitsItsTerminalAndLeavesItAsItWas) {
    ServedWorld world("star:12");
    Terminal terminal(world.socket(), 10, 40);
    EXPECT_NE(terminal.read_until("\x1b[?1049h"), "") << "a screen of its own";
    const std::string first = terminal.read_until("more ports");
    EXPECT_NE(first, "") << "24 ports do not fit 10 lines";
    EXPECT_EQ(first.find("not ready"), std::string::npos) << "nor all columns";
    terminal.resize(60, 200);
    EXPECT_NE(terminal.read_until("not ready"), "");
    EXPECT_NE(terminal.read_until("h11:1"), "");
    terminal.type('\x03');
    EXPECT_NE(terminal.read_until("\x1b[?1049l"), "");
    EXPECT_EQ(terminal.end(), 128 + SIGINT);
}

TEST(Watch, RefusesAnIntervalThatIsNone) {
    EXPECT_NE(watch("/nowhere", "--interval 0ms").status, 0);
    EXPECT_NE(watch("/nowhere", "--interval 5").text.find("unit"), std::string::npos);
}

TEST(WatchScreen, ShowsTheBusyAndTheBrokenWhereNotAllFit) {
    Watched now{.topology = "t", .time_ps = 2'000'000, .wall_ns = 1'000'000'000};
    for (std::uint64_t i = 0; i < 20; ++i) {
        now.queue_pairs.push_back({.device = "h0", .qpn = i, .state = i == 12 ? "ERR" : "RTS"});
        now.ports.push_back({.name = "h" + std::to_string(i) + ":1", .state = "ACTIVE"});
    }
    Watched before = now;
    before.time_ps = 1'000'000;
    before.wall_ns = 0;
    now.queue_pairs[17].sends_done = 3;
    now.ports[14].lost = 2;
    const std::string screen = watch_screen(now, &before, {.lines = 16, .columns = 300});
    EXPECT_EQ(count(screen, "\n"), 16U) << screen;
    EXPECT_LT(screen.find("0x000011"), screen.find("0x000000")) << screen;
    EXPECT_LT(screen.find("0x00000c"), screen.find("0x000000")) << screen;
    EXPECT_LT(screen.find("h14:1"), screen.find("h1:1")) << screen;
    EXPECT_NE(screen.find("3.00M"), std::string::npos) << "three in a microsecond\n" << screen;
    EXPECT_NE(screen.find("more queue pairs"), std::string::npos) << screen;
}

TEST(WatchScreen, NumbersAreShort) {
    EXPECT_EQ(short_number(0), "0");
    EXPECT_EQ(short_number(999), "999");
    EXPECT_EQ(short_number(1'239), "1.23k");
    EXPECT_EQ(short_number(45'678'901), "45.6M");
    EXPECT_EQ(short_number(400'000'000'000), "400G");
    EXPECT_EQ(short_number(~std::uint64_t{0}), "18.4E");
}

TEST(WatchScreen, IsNotMadeOfSomethingElse) {
    EXPECT_FALSE(simverbs::cli::read_watched("no such request", 0));
    EXPECT_FALSE(simverbs::cli::read_watched("{\"topology\": \"x\"}", 0));
}

}  // namespace
}  // namespace server_test
