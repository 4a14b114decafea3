// Documents made of several, and back to text.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scenarios/engine/format.hpp"
#include "scenarios/engine/verdict_json.hpp"
#include "tests/scenarios/scenario_text.hpp"
#include "tests/support/outcome.hpp"

namespace scenarios {
namespace {

class Files : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = testing::TempDir() + "scenario_files_" + std::to_string(getpid());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ + "/" + name) << text;
        return folder_ + "/" + name;
    }
    std::string folder_;
};

TEST_F(Files, IncludeOthersAndGoOverThem) {
    write("base.yaml", "run: {seed: 3, first_psn: 7}\nconnections: {c: {between: [h0, h1]}}\n");
    const std::string file =
        write("whole.yaml", "include: [base.yaml]\nrun: {seed: 4}\nconnections: {c: {mtu: 256}}\n");
    const auto scenario = load(file, {});
    ASSERT_TRUE(scenario) << scenario.error();
    EXPECT_EQ(scenario->at("run").number("seed"), 4U);
    EXPECT_EQ(scenario->at("run").number("first_psn"), 7U);
    EXPECT_EQ(scenario->at("connections").at("c").text("mtu"), "256");
}

TEST_F(Files, ThatIncludeThemselvesAreRefused) {
    const std::string file = write("loop.yaml", "include: [loop.yaml]\n");
    std::string errors = fabric::error_of(load(file, {}));
    EXPECT_NE(errors.find("includes itself"), std::string::npos) << errors;
    errors = fabric::error_of(load(write("missing.yaml", "include: [none.yaml]\n"), {}));
    EXPECT_NE(errors.find("none.yaml: cannot be read"), std::string::npos) << errors;
}

// Failures and mistakes have the place in the file that says them.
TEST_F(Files, AreNamedWhereTheySayWhatIsWrong) {
    write("base.yaml",
          "connections:\n  c: {between: [h0, h1]}\nexpect:\n  qp_states: {h0/c: ERR}\n");
    write("more.yaml", "run: {sede: 1}\n");
    const std::string file =
        write("whole.yaml", "include: [base.yaml]\nhosts: {h0: {do: [{sleep: 1us}]}}\n");
    const auto scenario = load(file, {});
    ASSERT_TRUE(scenario) << scenario.error();
    const Verdict verdict = run(*scenario);
    EXPECT_THAT(report(verdict, {}), testing::HasSubstr("\n" + folder_ + "/base.yaml:4:"));
    EXPECT_EQ(verdict_of({0, to_json(verdict).dump(), {}}, file).failures[0].position,
              verdict.failures[0].position);
    const std::string wrong =
        write("wrong.yaml", "include: [base.yaml, more.yaml]\nrun: {stop: 5}\n");
    EXPECT_THAT(fabric::error_of(load(wrong, {})),
                testing::AllOf(testing::HasSubstr(folder_ + "/more.yaml:1:7: unknown key"),
                               testing::HasSubstr(folder_ + "/wrong.yaml:2:13: \"5\"")));
}

TEST_F(Files, NameTopologiesBesideThem) {
    write("fabric.yaml", "generator: star:3\n");
    const auto scenario =
        load(write("whole.yaml", "fabric: {file: fabric.yaml}\nhosts: {h2: {}}\n"), {});
    ASSERT_TRUE(scenario) << scenario.error();
    EXPECT_EQ(scenario->hosts().size(), 3U);
    EXPECT_TRUE(run(*scenario).passed());
}

TEST(Fabric, MayStandInTheScenario) {
    const Verdict verdict = run_text(R"(
fabric:
  hosts: {a: , b: }
  links: [{ends: [a, b], latency: 1ms}]
connections: {c: {between: [a, b]}}
hosts: {a: {do: [{write: {qp: c, id: 1}}, {poll: {qp: c, status: SUCCESS}}]}}
expect: {time: {at_least: 2ms, at_most: 3ms}}
)");
    EXPECT_TRUE(verdict.passed()) << report(verdict, {});
    EXPECT_NE(errors_of("fabric:\n  hosts: {a: , b: }\n  lnks: []\n").find("test.yaml:3:3"),
              std::string::npos);
}

TEST(Settings, ChangeAndAddKeysAndItems) {
    constexpr std::string_view kText = R"(
connections: {c: {between: [h0, h1]}}
faults: [{name: lost, action: drop, when: {nth: 1}}]
)";
    const std::vector<std::string> settings = {"run.seed=9", "faults.0.when.nth=5",
                                               "connections.c.ends.h0={mtu: 256}"};
    const auto scenario = parse(kText, "test.yaml", settings);
    ASSERT_TRUE(scenario) << scenario.error();
    EXPECT_EQ(scenario->at("run").number("seed"), 9U);
    EXPECT_EQ(Checked(scenario->at("faults").items()[0]).at("when").number("nth"), 5U);
    EXPECT_EQ(scenario->at("connections").at("c").at("ends").at("h0").text("mtu"), "256");
    for (const char* const wrong : {"run", "=1", "faults.7.name=x", "run.seed.x=1", "run.sed=1"}) {
        const std::vector<std::string> one = {
            wrong == std::string("run.seed.x=1") ? "faults.0.name.x=1" : wrong};
        EXPECT_FALSE(parse(kText, "test.yaml", one)) << wrong;
    }
}

TEST(Numbers, MayBeHexadecimal) {
    const auto scenario = parse(R"(
connections: {c: {between: [h0, h1], type: UD, qkey: 0x11111111}}
hosts: {h0: {do: [{send: {qp: c, length: 0x40, imm: 0xBEEF}}]}}
faults: [{action: pkey, node: h1, value: 0x8001, when: {at: 20us}}]
)",
                                "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    const Checked root(scenario->root);
    EXPECT_EQ(root.at("connections").at("c").number("qkey"), 0x1111'1111U);
    EXPECT_EQ(Checked(root.at("faults").items()[0]).number("value"), 0x8001U);
    const Checked operation(root.at("hosts").at("h0").at("do").items()[0]);
    EXPECT_EQ(operation.at("send").size("length"), 64U);
    EXPECT_EQ(operation.at("send").number("imm"), 0xBEEFU);
}

TEST(Defaults, HoldForConnectionsThatDoNotSayOtherwise) {
    const auto scenario = parse(
        "defaults: {connection: {timeout: 9, retries: 1}}\nconnections: "
        "{a: {between: [h0, h1]}, b: {between: [h0, h1], retries: 2}}\n",
        "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    EXPECT_EQ(scenario->at("connections").at("a").number("retries"), 1U);
    EXPECT_EQ(scenario->at("connections").at("b").number("retries"), 2U);
    EXPECT_EQ(scenario->at("connections").at("b").number("timeout"), 9U);
}

TEST(Printing, ReadsBackAsTheSameRun) {
    constexpr std::string_view kText = R"(
fabric: star:3
run: {seed: 5}
workloads: {s: {stream: {from: h0, to: h1, messages: 5}}, k: {key_value: {server: h2}}}
faults: [{name: "odd name: #1", action: drop, when: {chance: 1/9}}]
)";
    const auto scenario = parse(kText, "test.yaml", {});
    ASSERT_TRUE(scenario) << scenario.error();
    const std::string printed = to_text(*scenario);
    const auto again = parse(printed, "printed.yaml", {});
    ASSERT_TRUE(again) << again.error() << printed;
    EXPECT_EQ(to_text(*again), printed);
    EXPECT_EQ(run(*again).digest, run(*scenario).digest);
}

TEST(Schema, IsJsonAndKnowsEveryKey) {
    const auto schema = nlohmann::json::parse(json_schema(format::kScenario, "scenario"));
    EXPECT_EQ(schema.at("type"), "object");
    for (const Key& key : format::kScenario.keys) {
        const auto& property = schema.at("properties").at(std::string(key.name));
        EXPECT_EQ(property.at("description"), key.what);
    }
    EXPECT_TRUE(schema.at("$defs").at("operation").at("properties").contains("poll"));
    EXPECT_EQ(schema.at("additionalProperties"), false);
}

TEST(DefaultFabric, GivesTheNamesOfAScenarioWithoutFabric) {
    constexpr std::string_view kLink = "faults: [{action: link_down, link: h3-s0}]\n";
    constexpr std::string_view kHost =
        "faults: [{action: process_stop, node: h3, duration: 1ms}]\n";
    for (const std::string_view faults : {kLink, kHost}) {
        const auto loads = [faults](const DefaultFabric& otherwise, const std::string& fabric) {
            return parse(fabric + std::string(faults), "test.yaml", {}, otherwise).has_value();
        };
        EXPECT_FALSE(loads({}, "")) << faults;
        EXPECT_TRUE(loads({.topology = "star:4"}, "")) << faults;
        EXPECT_FALSE(loads({.topology = "star:4"}, "fabric: star:2\n")) << faults;
        EXPECT_TRUE(loads({.is_certain = false}, "")) << faults;
        EXPECT_FALSE(loads({.is_certain = false}, "fabric: star:2\n")) << faults;
    }
}

}  // namespace
}  // namespace scenarios
