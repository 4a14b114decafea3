// Settings as they stand in the environment of a process.
#include "simverbs/world/environment.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simverbs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Environment : public testing::Test {
  protected:
    void SetUp() override { clearenv(); }
    void TearDown() override { clearenv(); }
};

TEST_F(Environment, CountsAnEmptyVariableAsNotSet) {
    EXPECT_EQ(environment_value(Setting::kSeed), "");
    setenv("SIMVERBS_SEED", "", 1);
    EXPECT_EQ(environment_value(Setting::kSeed), "");
    setenv("SIMVERBS_SEED", "7", 1);
    EXPECT_EQ(environment_value(Setting::kSeed), "7");
}

TEST_F(Environment, NamesVariablesThatAreNoSettingInTheOrderOfTheirNames) {
    setenv("SIMVERBS_TOPOLGY", "star:4", 1);
    setenv("SIMVERBS_COFFEE_MACHINE", "1", 1);
    EXPECT_THAT(describe_unknown_variables(),
                ElementsAre(AllOf(HasSubstr("SIMVERBS_COFFEE_MACHINE is no setting"),
                                  Not(HasSubstr("did you mean"))),
                            "SIMVERBS_TOPOLGY is no setting: did you mean "
                            "\"SIMVERBS_TOPOLOGY\"?"));
}

TEST_F(Environment, IsSilentAboutSettingsAndAboutNamesOfOthers) {
    for (const SettingRow& row : kSettings) {
        setenv(row.variable.data(), "1", 1);
    }
    for (const char* const name : {"SIMVERBS_TEST_FOLDER", "SIMVERBS_CMAKE_OPTIONS", "SIMVERBS",
                                   "MY_SIMVERBS_SEDE", "PATH"}) {
        setenv(name, "1", 1);
    }
    EXPECT_THAT(describe_unknown_variables(), IsEmpty());
}

}  // namespace
}  // namespace simverbs
