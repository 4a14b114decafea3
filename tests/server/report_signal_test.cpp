// SIGUSR2 to a program of a served world: it says what each queue pair waits for, and goes on.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

using testing::HasSubstr;

constexpr const char* kReport = "simverbs: asked for, of the world at '";

// A program whose stderr goes to a file.
class Asked {
  public:
    Asked(const ServedWorld& world, const std::vector<std::string>& command)
        : file_(testing::TempDir() + "report_signal_" + std::to_string(getpid())),
          program_(command, {"SIMVERBS_SERVER=" + world.socket(), "SIMVERBS_HOST=h0"}, false,
                   file_) {}
    ~Asked() { std::filesystem::remove(file_); }
    Asked(const Asked&) = delete;
    Asked& operator=(const Asked&) = delete;

    Process& program() { return program_; }
    // Sends the signal; returns what its stderr has got since, once that has `words`. "": never.
    [[nodiscard]] std::string ask(const std::string& words) const {
        const std::size_t before = errors().size();
        program_.kill(SIGUSR2);
        const auto began = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - began < kPatience) {
            std::string text = errors().substr(before);
            if (text.find(words) != std::string::npos) {
                return text;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return "";
    }
    [[nodiscard]] std::string errors() const {
        std::ifstream file(file_);
        return {std::istreambuf_iterator<char>(file), {}};
    }

  private:
    std::string file_;
    Process program_;
};

class ReportSignal : public testing::TestWithParam<const char*> {
  protected:
    ServedWorld world_{"star:2"};
};

TEST_P(ReportSignal, SaysWhatQueuePairsWaitForAndVerbsGoOn) {
    Asked asked(world_, {SIMVERBS_OUTLIVING_CLIENT, GetParam()});
    ASSERT_EQ(asked.program().hear(), "ready");
    // The kernel keeps 15 characters of a program's name.
    const std::string program =
        "server_outlivin (process " + std::to_string(asked.program().id()) + ")";
    for (int round = 0; round < 3; ++round) {
        EXPECT_THAT(asked.ask("host h1"), HasSubstr(kReport + world_.socket()));
    }
    EXPECT_THAT(asked.errors(), HasSubstr("host h0: lid 1, port ACTIVE, " + program));
    EXPECT_FALSE(asked.program().ended());
}

INSTANTIATE_TEST_SUITE_P(Ways, ReportSignal,
                         testing::Values("poll", "async-event", "completion-event", "verbs"),
                         [](const auto& way) {
                             return std::string(way.param).substr(0,
                                                                  std::string(way.param).find('-'));
                         });

TEST_F(ReportSignal, NamesQueuePairs) {
    Asked asked(world_, {SIMVERBS_VERBS_CLIENT});
    Process peer = world_.client("h1");
    const std::string own = asked.program().hear();
    const std::string other = peer.hear();
    ASSERT_EQ(asked.program().ask("connect " + other), "connected");
    ASSERT_EQ(peer.ask("connect " + own), "connected");
    EXPECT_THAT(asked.ask("host h1"), HasSubstr("1 receive posted; waits for a message"));
}

TEST_F(ReportSignal, ReachesAProgramThatUsesDeviceFilesAlone) {
    Asked asked(world_, {SIMVERBS_COMMAND, "on", "h0", "--world", world_.socket(), "--", "/bin/sh",
                         "-c", "exec 3<>/dev/infiniband/umad0; echo ready; read line"});
    ASSERT_EQ(asked.program().hear(), "ready");
    EXPECT_THAT(asked.ask("host h1"), HasSubstr(kReport + world_.socket()));
    EXPECT_FALSE(asked.program().ended());
}

TEST_F(ReportSignal, LeavesAHandlerOfTheProgramsOwn) {
    Asked asked(world_, {SIMVERBS_OUTLIVING_CLIENT, "async-event", "handler"});
    ASSERT_EQ(asked.program().hear(), "ready");
    asked.program().kill(SIGUSR2);
    EXPECT_EQ(asked.program().hear(), "handled");
    EXPECT_EQ(asked.errors(), "");
}

TEST_F(ReportSignal, LeavesASignalThatTheProgramIgnores) {
    Asked asked(world_, {"/bin/sh", "-c",
                         "trap \"\" USR2; exec " SIMVERBS_OUTLIVING_CLIENT " async-event"});
    ASSERT_EQ(asked.program().hear(), "ready");
    asked.program().kill(SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_FALSE(asked.program().ended());
    EXPECT_EQ(asked.errors(), "");
}

TEST_F(ReportSignal, SaysThatTheWorldHasGone) {
    Asked asked(world_, {SIMVERBS_OUTLIVING_CLIENT, "verbs"});
    ASSERT_EQ(asked.program().hear(), "ready");
    world_.server().kill(SIGKILL);
    ASSERT_NE(world_.server().end(), 0);
    EXPECT_THAT(asked.ask("no world is served at"), HasSubstr(kReport));
}

}  // namespace
}  // namespace server_test
