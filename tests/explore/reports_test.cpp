// Lists of GoogleTest programs, and reports of explorations: JUnit XML, maps, pages.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/explore/explored.hpp"
#include "scenarios/explore/google_test.hpp"
#include "scenarios/explore/html_map.hpp"
#include "scenarios/explore/junit.hpp"
#include "scenarios/explore/map_data.hpp"

namespace scenarios {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(GoogleTest, ListsPlainTypedAndParameterisedTests) {
    EXPECT_THAT(tests_in("Running main() from gtest_main.cc\n"
                         "Echo.\n"
                         "  Once\n"
                         "  DISABLED_Twice\n"
                         "Typed/0.  # TypeParam = unsigned int\n"
                         "  Works\n"
                         "some words of the program\n"
                         "Sizes/Echo.\n"
                         "  OfBytes/0  # GetParam() = (1, \"a. # b\")\n"
                         "  OfBytes/1  # GetParam() = 64\r\n"),
                ElementsAre("Echo.Once", "Echo.DISABLED_Twice", "Typed/0.Works",
                            "Sizes/Echo.OfBytes/0", "Sizes/Echo.OfBytes/1"));
}

TEST(GoogleTest, OtherOutputIsNoList) {
    EXPECT_THAT(tests_in(""), IsEmpty());
    EXPECT_THAT(tests_in("usage: server [OPTIONS]\n  -p PORT\n"), IsEmpty());
    EXPECT_THAT(tests_in("  Once\n"), IsEmpty());
    EXPECT_THAT(tests_in("Connected.\nbytes 1\n  of 2 bytes\n"), IsEmpty());
}

TEST(GoogleTest, TestsAndSuitesCanBeDisabled) {
    EXPECT_TRUE(is_disabled("Echo.DISABLED_Once"));
    EXPECT_TRUE(is_disabled("DISABLED_Echo.Once/0"));
    EXPECT_TRUE(is_disabled("Sizes/DISABLED_Echo.Once/0"));
    EXPECT_FALSE(is_disabled("Echo.IsDISABLED_"));
}

TEST(GoogleTest, ATestRunsAloneAndWritesNoReport) {
    EXPECT_THAT(command_of_test({"./tests", "--gtest_filter=Echo.*", "-v", "--gtest_output=xml"},
                                "Echo.Once"),
                ElementsAre("./tests", "-v", "--gtest_filter=Echo.Once"));
}

TEST(GoogleTest, AProgramWithoutAListIsRefused) {
    const auto error_of = [](const std::vector<std::string>& command) {
        const auto tests = list_tests(command, "");
        return tests ? "" : tests.error();
    };
    EXPECT_THAT(error_of({"true"}), HasSubstr("true --gtest_list_tests: it printed no test; "
                                              "behind -- belongs a GoogleTest program"));
    EXPECT_THAT(error_of({"false"}), HasSubstr("it ended with 1; behind --"));
    EXPECT_THAT(error_of({"/no/such/program"}), HasSubstr("No such file or directory"));
    EXPECT_THAT(error_of({"true", "--gtest_filter=A.*"}),
                HasSubstr("it printed no test; --gtest_filter=A.* may match none"));
    EXPECT_THAT(error_of({"sh", "-c", "printf 'A.\\n  DISABLED_B\\n'"}),
                HasSubstr("1 test, and none is enabled; add --gtest_also_run_disabled_tests"));
    EXPECT_EQ(error_of({"sh", "-c", "printf 'A.\\n  DISABLED_B\\n'", "sh",
                        "--gtest_also_run_disabled_tests"}),
              "");
}

// A run of one packet and one call, with three faults of which one was found.
ExploreResult small_result() {
    ExploreResult result;
    result.packets = 1;
    result.calls = 1;
    result.places = {
        {.packet = {.host = "h0"}, .nth = 1, .call = "ibv_reg_mr"},
        {.packet = {.end = "h0/1", .psn = 1, .attempt = 1, .opcode = "SEND_ONLY", .host = "h0"},
         .nth = 1,
         .to = "h1"}};
    const auto choice = [&result](std::size_t place, ChoiceGroup group, std::string_view before,
                                  std::string_view behind) {
        return Choice{
            .place = place,
            .group = group,
            .name = std::string(before).append(place_text(result.places[place])).append(behind)};
    };
    result.tried = {
        {choice(0, ChoiceGroup::kCalls, "", " fails with ENOMEM"), Outcome::kCrashed, 0},
        {choice(1, ChoiceGroup::kPackets, "drop of ", ""), Outcome::kPassed, {}},
        {choice(1, ChoiceGroup::kHosts, "host_kill of h1 when ", " is sent"), {}, {}}};
    Finding finding{.choices = {result.tried[0].choice}, .branches = 1};
    finding.result.outcome = Outcome::kCrashed;
    finding.result.kind = "it died of \x1b[1m<Aborted>\xff";
    finding.scenario = "faults: [] # </script>\n";
    finding.kept = "./explore-3.yaml";
    finding.replay = "simverbs exec --scenario ./explore-3.yaml -- ./tests";
    result.findings = {finding};
    return result;
}

Explored small_exploration() {
    using std::chrono::milliseconds;
    ExploreResult fails;
    fails.unexplored = Unexplored::kFailsByItself;
    fails.failure = "it ended with 1";
    return {
        .subject = "./tests",
        .has_tests = true,
        .tests = {{.name = "A/Suite.Name/0",
                   .result = small_result(),
                   .took = milliseconds(1234),
                   .before = 2},
                  {.name = "Suite.Fails", .result = fails, .took = milliseconds(7), .before = 3}}};
}

TEST(Explored, CountsFindingsOfAllTests) {
    EXPECT_EQ(small_exploration().findings(), 3U);
    EXPECT_EQ(summary(small_exploration()),
              "2 tests: 1 with findings, 0 without, 1 not explored; 3 findings\n");
    EXPECT_EQ(report(small_exploration().tests[1]),
              "TEST Suite.Fails: fails without faults: it ended with 1\n");
}

TEST(JUnit, HasATestcaseForEachTest) {
    const std::string xml = junit(small_exploration());
    EXPECT_THAT(xml, HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\" "
                               "time=\"1.241\">"));
    EXPECT_THAT(xml, HasSubstr("<testcase classname=\"explore.A/Suite\" name=\"Name/0\" "
                               "time=\"1.234\">"));
    EXPECT_THAT(xml, HasSubstr("message=\"ibv_reg_mr 1 of h0 fails with ENOMEM: crashed (it died "
                               "of ?[1m&lt;Aborted&gt;\xEF\xBF\xBD)\">FINDING 3: crashed"));
    EXPECT_THAT(xml, HasSubstr("<skipped message=\"fails without faults: it ended with 1\"/>"));
}

TEST(Map, HasARowForEachPlaceAndAColumnForEachFault) {
    MapRoom room;
    const nlohmann::ordered_json map = map_of(small_exploration().tests[0], room);
    EXPECT_THAT(map.at("columns").dump(),
                "[[\"drop\",\"packets\",\"drop of @\"],"
                "[\"fails with ENOMEM\",\"calls\",\"@ fails with ENOMEM\"],"
                "[\"host_kill of h1\",\"hosts\",\"host_kill of h1 when @ is sent\"]]");
    EXPECT_EQ(map.at("hosts").dump(), "[\"h0\",\"h1\"]");
    ASSERT_EQ(map.at("rows").size(), 2U);
    EXPECT_EQ(map.at("rows")[0].dump(), "[1,\"ibv_reg_mr 1 of h0\",2,0,-1,\" C \",[[1,3]]]");
    EXPECT_EQ(map.at("rows")[1].dump(),
              "[2,\"SEND_ONLY, PSN 1 of h0/1, transmission 1\",0,0,1,\". ?\",[]]");
    EXPECT_EQ(map.at("rest"), "");
}

TEST(Map, SumsUpRowsForWhichThereIsNoRoom) {
    MapRoom room{.rows = 0, .rows_with_findings = 1};
    const nlohmann::ordered_json map = map_of(small_exploration().tests[0], room);
    ASSERT_EQ(map.at("rows").size(), 1U);
    EXPECT_EQ(map.at("rows")[0][0], 1);  // the one with a finding
    EXPECT_EQ(map.at("rest"),
              "1 more row is not drawn, for which this page has no room. Their choices: 1 not "
              "tried, 1 passed.");
}

TEST(Page, CarriesAnyBytesOfAProgram) {
    const std::string page = html(small_exploration());
    EXPECT_THAT(page, HasSubstr("<details id=\"finding-3\">"));
    EXPECT_THAT(page, HasSubstr("faults: [] # &lt;/script&gt;"));
    EXPECT_THAT(page, HasSubstr("&lt;Aborted&gt;"));
    EXPECT_THAT(page, Not(HasSubstr("\x1b")));
    EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
}

}  // namespace
}  // namespace scenarios
