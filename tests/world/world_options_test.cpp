// Settings become options: what stands in the table is what a world gets.
#include "simverbs/world/world_options.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simverbs {
namespace {

using testing::HasSubstr;

TEST(WorldOptions, BeginWithTheDefaultsOfTheTable) {
    const WorldOptions fresh;
    EXPECT_EQ(fresh.simulation.topology, row_of(Setting::kTopology).by_default);
    EXPECT_EQ(fresh.simulation.personality, row_of(Setting::kPersonality).by_default);
    EXPECT_EQ(std::to_string(fresh.simulation.seed), row_of(Setting::kSeed).by_default);
    EXPECT_EQ(std::to_string(fresh.simulation.first_psn), row_of(Setting::kFirstPsn).by_default);
    EXPECT_EQ(std::to_string(fresh.simulation.first_qpn), row_of(Setting::kFirstQpn).by_default);
    EXPECT_EQ(fresh.simulation.random_keys ? "random" : "sequential",
              row_of(Setting::kKeys).by_default);
    EXPECT_EQ(to_string(fresh.simulation.subnet_management), row_of(Setting::kSm).by_default);
    EXPECT_FALSE(fresh.simulation.routing);
    EXPECT_EQ(fresh.time.schedule, Schedule::kCanonical);
    EXPECT_EQ(row_of(Setting::kSchedule).by_default, "canonical");
    EXPECT_EQ(std::to_string(fresh.time.spin_limit.count()), row_of(Setting::kSpinMs).by_default);
    EXPECT_EQ(fresh.time.helper_thread ? "on" : "off", row_of(Setting::kHelperThread).by_default);
    EXPECT_FALSE(fresh.time.warn);
}

TEST(WorldOptions, TakeNumbersInBothNotations) {
    WorldOptions options;
    EXPECT_EQ(set(options, Setting::kFirstPsn, "16777208"), "");
    EXPECT_EQ(options.simulation.first_psn, 0xFFFFF8U);
    EXPECT_EQ(set(options, Setting::kFirstPsn, "0xFFfff0"), "");
    EXPECT_EQ(options.simulation.first_psn, 0xFFFFF0U);
    EXPECT_EQ(set(options, Setting::kSeed, "18446744073709551615"), "");
    EXPECT_EQ(options.simulation.seed, ~std::uint64_t{0});
}

TEST(WorldOptions, RefuseOtherNumbersAndKeepWhatTheyHad) {
    WorldOptions options;
    ASSERT_EQ(set(options, Setting::kFirstQpn, "65535"), "");
    for (const char* const wrong :
         {"65536", "-1", "", "0x", "x", "1 ", " 1", "1.5", "+1", "1e3", "99999999999999999999"}) {
        EXPECT_THAT(set(options, Setting::kFirstQpn, wrong),
                    HasSubstr("is not a number from 0 to 65535"))
            << wrong;
    }
    EXPECT_EQ(options.simulation.first_qpn, 65535U);
    EXPECT_THAT(set(options, Setting::kSeed, "18446744073709551616"), HasSubstr("0 to 2^64-1"));
}

TEST(WorldOptions, TakeEveryWordOfTheTable) {
    WorldOptions options;
    for (const std::string_view word : row_of(Setting::kSm).words) {
        EXPECT_EQ(set(options, Setting::kSm, word), "");
        EXPECT_EQ(to_string(options.simulation.subnet_management), word);
    }
    for (const std::string_view word : row_of(Setting::kRouting).words) {
        EXPECT_EQ(set(options, Setting::kRouting, word), "");
        EXPECT_EQ(to_string(*options.simulation.routing), word);
    }
    for (const std::string_view word : row_of(Setting::kPersonality).words) {
        EXPECT_EQ(set(options, Setting::kPersonality, word), "");
        EXPECT_NE(find_personality(options.simulation.personality), nullptr);
    }
    EXPECT_EQ(set(options, Setting::kKeys, "random"), "");
    EXPECT_TRUE(options.simulation.random_keys);
    EXPECT_EQ(set(options, Setting::kSchedule, "serial"), "");
    EXPECT_EQ(options.time.schedule, Schedule::kSerial);
    EXPECT_EQ(set(options, Setting::kSchedule, "free"), "");
    EXPECT_EQ(options.time.schedule, Schedule::kFree);
    EXPECT_FALSE(options.time.order);
    EXPECT_EQ(set(options, Setting::kOrder, "7"), "");
    EXPECT_EQ(options.time.order, 7U);
    EXPECT_EQ(set(options, Setting::kOrder, "h1"), "'h1' is not a number from 0 to 2^64-1");
}

TEST(WorldOptions, NameTheWordThatWasMeant) {
    WorldOptions options;
    EXPECT_EQ(set(options, Setting::kSm, "swep"),
              "'swep' is none of startup, sweep, none: did you mean \"sweep\"?");
    EXPECT_EQ(options.simulation.subnet_management, SubnetManagement::kStartup);
    EXPECT_THAT(describe_wrong_value(row_of(Setting::kMemlock), "all"),
                HasSubstr("is neither a number of bytes nor rlimit"));
    EXPECT_EQ(describe_wrong_value(row_of(Setting::kMemlock), "rlimit"), "");
    EXPECT_EQ(describe_wrong_value(row_of(Setting::kMemlock), "65536"), "");
}

TEST(Settings, AreFoundByTheirNames) {
    for (const SettingRow& row : kSettings) {
        EXPECT_EQ(find_setting(name_of(row)), &row) << row.variable;
        EXPECT_TRUE(row.key.empty() || row.key == name_of(row)) << row.variable;
    }
    for (const char* const unknown : {"", "SEED", "first-psn", "simverbs_seed", "seeds", "see"}) {
        EXPECT_EQ(find_setting(unknown), nullptr) << unknown;
    }
}

}  // namespace
}  // namespace simverbs
