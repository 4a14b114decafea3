// Options of the world in this process, as its environment gives them.
#include "simverbs/driver/embedded_options.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simverbs::driver {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ReadEnvironment : public testing::Test {
  protected:
    void SetUp() override { clearenv(); }
    void TearDown() override { clearenv(); }

    EmbeddedOptions options_;
};

TEST_F(ReadEnvironment, TakesSettingsOfEveryWorldAndOfEmbeddedOnesAlone) {
    setenv("SIMVERBS_TOPOLOGY", "star:5", 1);
    setenv("SIMVERBS_SEED", "41", 1);
    setenv("SIMVERBS_SCHEDULE", "serial", 1);
    setenv("SIMVERBS_HOST", "h3", 1);
    setenv("SIMVERBS_DIGEST", "digests.txt", 1);
    setenv("SIMVERBS_SUMMARY", "1", 1);
    setenv("SIMVERBS_TRACE_FLUSH", "1", 1);
    EXPECT_EQ(read_environment(options_), "");
    EXPECT_EQ(options_.simulation.topology, "star:5");
    EXPECT_EQ(options_.simulation.seed, 41U);
    EXPECT_EQ(options_.time.schedule, Schedule::kSerial);
    EXPECT_EQ(options_.host, "h3");
    EXPECT_EQ(options_.digest_file, "digests.txt");
    EXPECT_TRUE(options_.summary);
    EXPECT_TRUE(options_.flush_trace);
}

TEST_F(ReadEnvironment, NamesTheVariableWhoseValueIsWrong) {
    setenv("SIMVERBS_SEED", "many", 1);
    EXPECT_THAT(read_environment(options_), StartsWith("SIMVERBS_SEED='many' is not a number"));
}

TEST_F(ReadEnvironment, TakesOneAndZeroForSwitches) {
    for (const char* const wrong : {"false", "off", "2", "00"}) {
        setenv("SIMVERBS_SUMMARY", wrong, 1);
        EXPECT_THAT(read_environment(options_), HasSubstr("is neither 1 nor 0"));
    }
    setenv("SIMVERBS_SUMMARY", "0", 1);
    EXPECT_EQ(read_environment(options_), "");
    EXPECT_FALSE(options_.summary);
}

TEST_F(ReadEnvironment, LeavesDefaultsWhereAVariableIsEmpty) {
    setenv("SIMVERBS_SCHEDULE", "", 1);
    EXPECT_EQ(read_environment(options_), "");
    EXPECT_EQ(options_.time.schedule, Schedule::kCanonical);
}

TEST_F(ReadEnvironment, SaysWhichWordsAreValid) {
    setenv("SIMVERBS_SCHEDULE", "cannonical", 1);
    EXPECT_THAT(read_environment(options_), HasSubstr("canonical, free, serial"));
}

}  // namespace
}  // namespace simverbs::driver
