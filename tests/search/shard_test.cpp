// Which part of a sweep is whose, from what mpirun and Slurm say.
#include "scenarios/search/shard.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/outcome.hpp"

namespace scenarios {
namespace {

using Environment = std::map<std::string, std::string>;

fabric::Outcome<Shard> shard_of(const Environment& environment) {
    return shard_of_environment([&environment](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
    });
}

Environment array(const char* id, const char* least, const char* step, const char* count) {
    return {{"SLURM_ARRAY_TASK_ID", id},
            {"SLURM_ARRAY_TASK_MIN", least},
            {"SLURM_ARRAY_TASK_STEP", step},
            {"SLURM_ARRAY_TASK_COUNT", count}};
}

TEST(Shard, IsTheWholeWhereNobodySaysOtherwise) {
    EXPECT_EQ(shard_of({}), (Shard{0, 1}));
}

TEST(Shard, IsReadFromText) {
    EXPECT_EQ(parse_shard("0/1"), (Shard{0, 1}));
    EXPECT_EQ(parse_shard("3/8"), (Shard{3, 8}));
    for (const char* const bad :
         {"", "3", "8/8", "9/8", "-1/4", "1/0", "1/4x", "a/b", "1//4", "/"}) {
        EXPECT_EQ(parse_shard(bad), std::nullopt) << bad;
    }
}

TEST(Shard, IsTheRankOfMpi) {
    EXPECT_EQ(shard_of({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
              (Shard{2, 4}));
}

TEST(Shard, IsTheTaskOfAnArray) {
    EXPECT_EQ(shard_of(array("0", "0", "1", "10")), (Shard{0, 10}));
    EXPECT_EQ(shard_of(array("9", "5", "2", "3")), (Shard{2, 3}));
}

TEST(Shard, IsBothWhereATaskOfAnArrayCallsMpirun) {
    Environment environment = array("2", "1", "1", "3");
    environment["OMPI_COMM_WORLD_RANK"] = "1";
    environment["OMPI_COMM_WORLD_SIZE"] = "4";
    EXPECT_EQ(shard_of(environment), (Shard{5, 12}));
}

TEST(Shard, IsRefusedWhereTheVariablesMakeNoSense) {
    std::string error = fabric::error_of(shard_of({{"OMPI_COMM_WORLD_RANK", "2"}}));
    EXPECT_EQ(error.find("OMPI_COMM_WORLD_SIZE=''"), 0U) << error;
    error =
        fabric::error_of(shard_of({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
    EXPECT_NE(error.find("none of"), std::string::npos) << error;
    for (const Environment& wrong :
         {array("7", "1", "1", "3"), array("0", "1", "1", "3"), array("2", "1", "2", "3"),
          array("x", "1", "1", "3"), array("1", "1", "0", "3")}) {
        error = fabric::error_of(shard_of(wrong));
        EXPECT_NE(error.find("--shard I/N"), std::string::npos) << error;
    }
}

}  // namespace
}  // namespace scenarios
