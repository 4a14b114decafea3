// A served world that ends while programs use it: by an operator, who is told of them first, or
// because its server is killed. Nobody waits for ever.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        ++found;
    }
    return found;
}

// The error that a program gets which waits in that way.
struct Way {
    const char* name;
    const char* told;
};

using Ended = std::tuple<Way, const char*, const char*>;  // schedule; how it ends

class WorldEnd : public testing::TestWithParam<Ended> {};

TEST_P(WorldEnd, IsToldToWhoWaits) {
    const auto& [way, schedule, how] = GetParam();
    ServedWorld world("star:2", false, {"--schedule", schedule});
    const std::string errors =
        testing::TempDir() + "outliving-" + std::to_string(world.server().id());
    Process program({SIMVERBS_OUTLIVING_CLIENT, way.name},
                    {"SIMVERBS_SERVER=" + world.socket(), "SIMVERBS_HOST=h0"}, false, errors);
    ASSERT_EQ(program.hear(), "ready");
    if (std::string(how) == "killed") {
        world.server().kill(SIGKILL);
    } else {
        EXPECT_EQ(run(SIMVERBS_COMMAND " down --force --world " + world.socket()).status, 0);
    }
    world.server().end();
    if (std::string(way.name) == "verbs") {
        program.say("go");
    }
    std::string told;
    for (std::string line; (line = program.hear()) != "end";) {
        ASSERT_NE(line, "") << "it waits still, or ended early; so far:\n" << told;
        told += line + "\n";
    }
    EXPECT_EQ(told, way.told);
    EXPECT_EQ(program.end(), 0);
    EXPECT_EQ(count(text_of(errors), "the server of this world has gone"), 1U) << text_of(errors);
    std::filesystem::remove(errors);
}

constexpr const char* kFatalThenError =
    "ibv_get_async_event 0 local catastrophic error\nagain -1 EIO\n";

INSTANTIATE_TEST_SUITE_P(
    Each, WorldEnd,
    testing::Combine(testing::Values(Way{"poll", "ibv_poll_cq -1 EIO\nagain -1 EIO\n"},
                                     Way{"extended", "ibv_start_poll EIO\n"},
                                     Way{"completion-event", "ibv_get_cq_event -1 EIO\n"},
                                     Way{"async-event", kFatalThenError},
                                     Way{"descriptor",
                                         "poll 1\nibv_get_async_event 0 local catastrophic "
                                         "error\nagain -1 EIO\n"},
                                     Way{"verbs",
                                         "ibv_query_port 5 EIO\nibv_alloc_pd EIO\n"
                                         "ibv_get_async_event 0 local catastrophic error\n"
                                         "again -1 EIO\n"}),
                     testing::Values("free", "canonical"), testing::Values("killed", "ended")),
    [](const auto& ended) {
        std::string name = std::string(std::get<0>(ended.param).name) + "_" +
                           std::get<1>(ended.param) + "_" + std::get<2>(ended.param);
        std::replace(name.begin(), name.end(), '-', '_');
        return name;
    });

TEST(WorldEndByOperator, NamesWhoIsAttached) {
    ServedWorld world("star:2");
    Process program = world.client("h1");
    ASSERT_NE(program.hear(), "");
    const std::string down = SIMVERBS_COMMAND " down --world " + world.socket();
    const Ran refused = run(down);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.text.find("(process " + std::to_string(program.id()) + " of h1)"),
              std::string::npos)
        << refused.text;
    EXPECT_NE(refused.text.find("--force"), std::string::npos) << refused.text;
    EXPECT_TRUE(world.serves());
    program.kill(SIGKILL);
    program.end();
    const Ran ended = run(down);  // at once: who has ended is not attached
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_EQ(world.server().end(), 0);
}

TEST(OnAHost, ThatIsNotThereNothingIsRun) {
    ServedWorld world("star:2");
    const Ran ran =
        run(SIMVERBS_COMMAND " on h7 --world " + world.socket() + " -- echo it was run");
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.text.find("has no host 'h7'; it has h0, h1"), std::string::npos) << ran.text;
    EXPECT_EQ(ran.text.find("it was run"), std::string::npos);
    EXPECT_EQ(run(SIMVERBS_COMMAND " on '' --world " + world.socket() + " -- true").status, 2);
    const std::string long_name(100, 'h');
    EXPECT_EQ(
        run(SIMVERBS_COMMAND " on " + long_name + " --world " + world.socket() + " -- true").status,
        2);
}

TEST(OnAHost, HostsAreNamedAsFarAsThereIsRoom) {
    ServedWorld world("star:200");
    const Ran ran = run(SIMVERBS_COMMAND " on x --world " + world.socket() + " -- true");
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.text.find("it has h0, h1, h2,"), std::string::npos) << ran.text;
    EXPECT_NE(ran.text.find(", ...\n"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace server_test
