// The environment of programs that are started with an LD_PRELOAD of their own.
#include "simverbs/devices/program_environment.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simverbs::devices {
namespace {

std::vector<std::string> started_with(std::vector<std::string> given) {
    std::vector<char*> pointers;
    pointers.reserve(given.size() + 1);
    for (std::string& variable : given) {
        pointers.push_back(variable.data());
    }
    pointers.push_back(nullptr);
    const ProgramEnvironment environment(pointers.data());
    std::vector<std::string> got;
    for (char* const* variable = environment.get(); *variable != nullptr; ++variable) {
        got.emplace_back(*variable);
    }
    return got;
}

TEST(ProgramEnvironment, KeepsThisLibraryInFrontOfOthers) {
    const std::vector<std::string> got =
        started_with({"A=1", "LD_PRELOAD=other.so", "SIMVERBS_DEVICES=/tmp/t"});
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0], "A=1");
    EXPECT_TRUE(got[1].starts_with("LD_PRELOAD=")) << got[1];
    EXPECT_TRUE(got[1].ends_with("/devices_test:other.so")) << "the file that this is in here";
    EXPECT_EQ(got[2], "SIMVERBS_DEVICES=/tmp/t");
}

TEST(ProgramEnvironment, LeavesOthersAlone) {
    const std::string devices = "SIMVERBS_DEVICES=/tmp/t";
    for (const std::vector<std::string>& given : std::vector<std::vector<std::string>>{
             {},
             {devices},
             {"LD_PRELOAD=", devices},
             {"LD_PRELOAD=other.so"},
             {"LD_PRELOAD=other.so:/x/libsimverbs-devices.so", devices}}) {
        EXPECT_EQ(started_with(given), given);
    }
    EXPECT_EQ(ProgramEnvironment(nullptr).get(), nullptr);
    std::vector<std::string> many(ProgramEnvironment::kMaxVariables, "A=1");
    many.emplace_back("LD_PRELOAD=other.so");
    many.push_back(devices);
    EXPECT_EQ(started_with(many), many);
    const std::vector<std::string> is_long{"LD_PRELOAD=" + std::string(10'000, 'x'), devices};
    EXPECT_EQ(started_with(is_long), is_long);
}

}  // namespace
}  // namespace simverbs::devices
