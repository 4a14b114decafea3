// The faults that a swarm mixes into a scenario: the same for a seed, within its budget, over when
// it says.
#include "scenarios/search/swarm.hpp"

#include <set>

#include <gtest/gtest.h>

#include "scenarios/engine/compose.hpp"
#include "tests/support/outcome.hpp"

namespace scenarios {
namespace {

constexpr std::int64_t kUsual = 10'000'000;  // 10 us

Scenario read(const std::string& text) {
    auto scenario = parse(text, "test.yaml", {});
    EXPECT_TRUE(scenario) << scenario.error();
    return scenario ? *scenario : Scenario{};
}

Scenario stream() {
    return read("fabric: star:3\nworkloads: {s: {stream: {from: h0, to: h1}}}\n");
}

Swarm swarm_of(const Scenario& scenario, const SwarmOptions& options = {}) {
    auto swarm = Swarm::make(scenario, options, kUsual);
    EXPECT_TRUE(swarm) << swarm.error();
    return *swarm;
}

std::string refusal(const std::string& text, const SwarmOptions& options = {}) {
    return fabric::error_of(Swarm::make(read(text), options, kUsual));
}

TEST(Swarm, MakesTheSameOfASeedAndSomethingElseOfAnother) {
    const Swarm swarm = swarm_of(stream());
    EXPECT_EQ(to_text(swarm.scenario(7)), to_text(swarm.scenario(7)));
    std::set<std::string> different;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        different.insert(to_text(swarm.scenario(seed)));
    }
    EXPECT_EQ(different.size(), 100U);
}

TEST(Swarm, MakesScenariosThatMeanSomething) {
    const Swarm swarm = swarm_of(stream(), {.faults = 7, .heal_ps = 3'000'000'000});
    std::set<std::string> actions;
    std::set<std::size_t> counts;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Scenario made = read(to_text(swarm.scenario(seed)));
        EXPECT_EQ(made.at("run").number("seed"), seed);
        const auto faults = made.at("faults").items();
        counts.insert(faults.size());
        for (const fabric::yaml::Value& fault : faults) {
            actions.insert(Checked(fault).text("action"));
        }
    }
    EXPECT_EQ(counts, (std::set<std::size_t>{1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(actions, (std::set<std::string>{"corrupt", "delay", "drop", "duplicate", "hold",
                                              "link_down", "link_flap", "pause", "reorder"}));
}

TEST(Swarm, IsOverAtItsTime) {
    constexpr std::int64_t kHeal = 2'000'000'000;
    const Swarm swarm = swarm_of(stream(), {.heal_ps = kHeal});
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Scenario made = swarm.scenario(seed);
        for (const fabric::yaml::Value& value : made.at("faults").items()) {
            const Checked fault(value);
            const Checked when = fault.at("when");
            const std::int64_t times = fault.text("action") == "link_flap" ? 4 : 1;
            const std::int64_t last = when.duration("until", when.duration("at"));
            EXPECT_LE(last + times * fault.duration("duration"), kHeal) << to_text(value);
            EXPECT_NE(fault.text("link"), "h2-s0") << "of a host without connections";
        }
    }
}

TEST(Swarm, DemandsWhatHoldsHoweverItWent) {
    Scenario scenario = read(
        "connections: {c: {between: [h0, h1]}}\n"
        "hosts: {h0: {do: [{poll: {qp: c, within: 1us, exactly: false, status: WR_FLUSH_ERR}}]}}\n"
        "expect:\n"
        "  time: {at_most: 1us}\n"
        "  counters: {h0: {retransmissions: 0}}\n"
        "  completions: {h0/c: [{id: 1, at_most: 1us}]}\n"
        "  qp_states: {h0/c: RTS}\n");
    demand_completion(scenario.root);
    const Checked expect = scenario.at("expect");
    EXPECT_FALSE(expect.has("time"));
    EXPECT_FALSE(expect.has("counters"));
    EXPECT_TRUE(expect.has("qp_states"));
    const Checked item(expect.at("completions").at("h0/c").items()[0]);
    EXPECT_EQ(item.number("id"), 1U);
    EXPECT_FALSE(item.has("at_most"));
    std::set<std::string> never;
    for (const fabric::yaml::Value& clause : expect.at("never").items()) {
        never.insert(Checked(clause).text("status"));
    }
    EXPECT_TRUE(never.contains("RETRY_EXC_ERR"));
    EXPECT_FALSE(never.contains("SUCCESS"));
    EXPECT_FALSE(never.contains("WR_FLUSH_ERR")) << "the scenario names it";
}

TEST(Swarm, IsRefusedWhereNothingMustComplete) {
    EXPECT_NE(refusal("fabric: star:2\n").find("no connections"), std::string::npos);
    EXPECT_NE(refusal("connections: {c: {between: [h0, h1], type: UD}}\n").find("c is UD"),
              std::string::npos);
    EXPECT_NE(refusal("connections: {c: {between: [h0, h1], timeout: 0}}\n").find("no time-out"),
              std::string::npos);
    EXPECT_NE(refusal("connections: {c: {between: [h0, h1], retries: 4}}\n").find("4 times"),
              std::string::npos);
}

TEST(Swarm, HealsSoonerWhereConnectionsAreImpatient) {
    const auto with_timeout = [](const char* code) {
        return swarm_of(read(std::string("connections: {c: {between: [h0, h1], timeout: ") + code +
                             "}}\n"))
            .heal_ps();
    };
    EXPECT_EQ(with_timeout("5"), std::int64_t{4'096'000} * 32 * 8 / 4);
    EXPECT_EQ(with_timeout("20"), 20'000'000'000);
}

}  // namespace
}  // namespace scenarios
