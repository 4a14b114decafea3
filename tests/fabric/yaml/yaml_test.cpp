// The part of reading YAML strictly that topologies and scenarios share.
#include <array>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/yaml/fields.hpp"
#include "fabric/yaml/quantities.hpp"
#include "fabric/yaml/value.hpp"

#include "tests/support/outcome.hpp"

namespace fabric::yaml {
namespace {

using testing::HasSubstr;

TEST(Quantities, AreANumberAndAUnit) {
    EXPECT_EQ(parse_duration("500ns").value(), SimDuration(500'000));
    EXPECT_EQ(parse_duration("1.5 us").value(), SimDuration(1'500'000));
    EXPECT_EQ(parse_duration("0.001ns").value(), SimDuration(1));
    EXPECT_EQ(parse_bytes("64KiB").value(), 65'536U);
    EXPECT_EQ(parse_bytes("1.5kB").value(), 1'500U);
    EXPECT_EQ(parse_bits_per_second("100Gb/s").value(), 100'000'000'000U);
}

TEST(Quantities, SayWhatIsMissing) {
    EXPECT_EQ(error_of(parse_duration("500")),
              "\"500\": a duration needs a unit, of ps, ns, us, ms, s, min, h");
    EXPECT_EQ(error_of(parse_duration("fast")),
              "\"fast\": expected a duration: a number and a unit, of ps, ns, us, ms, s, min, h");
    EXPECT_THAT(error_of(parse_duration("5 nanos")), HasSubstr("no unit of a duration is called "
                                                               "\"nanos\""));
    EXPECT_THAT(error_of(parse_duration("0.5ps")), HasSubstr("a whole number of ps"));
    EXPECT_THAT(error_of(parse_duration("99999999s")), HasSubstr("too large"));
    for (const auto* const text : {"-5ns", ".5us", "5.us", "", "99999999999999999999999s"}) {
        EXPECT_FALSE(parse_duration(text)) << text;
    }
}

TEST(Quantities, RatesOfLinksAreAWidthAndASpeed) {
    const LinkRate edr{LinkWidth::k4x, LinkSpeed::kEdr};
    EXPECT_EQ(parse_link_rate("4x EDR").value(), edr);
    EXPECT_EQ(parse_link_rate("4xEDR").value(), edr);
    EXPECT_EQ(parse_link_rate("100Gb/s").value(), edr);
    EXPECT_EQ(parse_link_rate("25Gb/s").value(), (LinkRate{LinkWidth::k1x, LinkSpeed::kEdr}));
    EXPECT_THAT(error_of(parse_link_rate("56Gb/s")), HasSubstr("no width and speed have this"));
    EXPECT_THAT(error_of(parse_link_rate("3x EDR")), HasSubstr("widths are 1x 2x 4x 8x 12x"));
    EXPECT_THAT(error_of(parse_link_rate("100")), HasSubstr("needs a unit"));
}

TEST(Quantities, ReadBackAsTheyAreWritten) {
    for (const std::int64_t count : {0LL, 1LL, 500'000LL, 1'500'000LL, 3'000'000'000'000LL}) {
        EXPECT_EQ(parse_duration(duration_text(SimDuration(count))).value(), SimDuration(count));
    }
    EXPECT_EQ(duration_text(SimDuration(500'000)), "500ns");
    EXPECT_EQ(bytes_text(65'536), "64KiB");
    EXPECT_EQ(bytes_text(1'500), "1500B");
}

// Errors of a document that must not be there.
std::string errors_of(std::string_view text) {
    Errors errors("f.yaml");
    const auto value = parse(text, errors);
    EXPECT_EQ(value.has_value(), errors.empty());
    return errors.text();
}

TEST(Value, KnowsWhereItWasWritten) {
    Errors errors("f.yaml");
    const auto document = parse("a:\n  - x\n  - {b: 1}\n", errors);
    ASSERT_TRUE(document);
    const Value& list = document->entries.at(0).value;
    EXPECT_EQ(list.items.at(1).entries.at(0).value.position.line, 3U);
    EXPECT_EQ(list.items.at(1).entries.at(0).value.position.column, 9U);
}

TEST(Value, RefusesWhatIsNoDocument) {
    EXPECT_THAT(errors_of("a: [1, 2"), HasSubstr("f.yaml:1:"));
    EXPECT_THAT(errors_of("---\na: 1\n---\nb: 2\n"), HasSubstr("a second document"));
    EXPECT_THAT(errors_of("{[1, 2]: 3}"), HasSubstr("a key is a word"));
    EXPECT_THAT(errors_of(std::string(100, '[') + std::string(100, ']')), HasSubstr("too deep"));
    EXPECT_THAT(errors_of("&a [x, *a]"), HasSubstr("f.yaml:1:8: an alias inside"));
}

// The parser makes an empty document of a comma, and another, and another.
TEST(Value, RefusesWhatNothingBeginsWith) {
    EXPECT_THAT(errors_of(","), HasSubstr("f.yaml:1:1: nothing begins with this"));
    EXPECT_THAT(errors_of("# text\n , what\n"), HasSubstr("f.yaml:2:2: nothing begins with this"));
    EXPECT_THAT(errors_of("]"), HasSubstr("f.yaml:1:1: "));
    EXPECT_THAT(errors_of("[x]\n, y"), HasSubstr("f.yaml:2:1: "));
    EXPECT_THAT(errors_of("- !+(.,.)"), HasSubstr("f.yaml:1:"));
}

TEST(Value, OfAnAliasIsACopy) {
    Errors errors("f.yaml");
    const auto document = parse("a: &x {b: [1, 2]}\nc: *x\n", errors);
    ASSERT_TRUE(document) << errors.text();
    EXPECT_EQ(document->entries.at(1).value.entries.at(0).value.items.at(1).text, "2");
    EXPECT_EQ(document->entries.at(1).value.position, (Position{1, 4}));
}

// Ten aliases of ten aliases of ...: 10^9 values from a few lines.
TEST(Value, RefusesOneThatGrowsWithoutBound) {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
        for (int j = 1; j < 10; ++j) {
            text += ", " + before;
        }
        text += "]\n";
    }
    EXPECT_THAT(errors_of(text), HasSubstr("too many values"));
    std::string large = "- &a " + std::string(8'000, 'x') + "\n";
    for (int i = 0; i < 8'000; ++i) {
        large += "- *a\n";
    }
    EXPECT_THAT(errors_of(large), HasSubstr("too much text"));
}

TEST(Value, IsQuotedWhereItWouldReadAsSomethingElse) {
    for (const std::string text :
         {"h0",      "null",      "~",   "",         "a: b", "- x", " x",
          "a\"b\\c", "line\nend", "a#b", "4x EDR",   "{x}",  "[x]", "@x",
          "\x01",    "100%",      "---", "\xC3\xA4", "true", "x:",  "a,b"}) {
        Errors errors("f");
        const auto list = parse("[" + quoted_if_needed(text) + "]", errors);
        ASSERT_TRUE(list) << text << ": " << errors.text();
        EXPECT_EQ(list->items.at(0).text, text);
    }
}

class StrictFields : public testing::Test {
  protected:
    Fields read(std::string_view text) {
        document_ = *parse(text, errors_);
        return {document_, kKeys, errors_};
    }
    static constexpr auto kKeys = std::to_array<std::string_view>({"latency", "count", "kind"});
    static constexpr auto kKinds = std::to_array<std::string_view>({"round", "square"});
    Errors errors_{"f.yaml"};
    Value document_;
};

TEST_F(StrictFields, GiveWhatIsThere) {
    const Fields fields = read("{latency: 5ns, kind: square}");
    EXPECT_EQ(fields.get("latency", duration_of), SimDuration(5'000));
    EXPECT_EQ(fields.get("count", number_of, std::uint64_t{0}, std::uint64_t{9}), std::nullopt);
    EXPECT_EQ(fields.choice("kind", kKinds), 1U);
    EXPECT_TRUE(errors_.empty()) << errors_.text();
}

TEST_F(StrictFields, ReadHexadecimalNumbers) {
    const Fields fields = read("latency: 5ns\ncount: 0x1F\n");
    EXPECT_EQ(fields.get("count", number_of, std::uint64_t{0}, std::uint64_t{99}), 31U);
    EXPECT_EQ(fields.get("count", number_of, std::uint64_t{0}, std::uint64_t{30}), std::nullopt);
    EXPECT_EQ(errors_.text(), "f.yaml:2:8: \"0x1F\": expected a number from 0 to 30");
}

TEST_F(StrictFields, NameEveryMistake) {
    const Fields fields = read("latncy: 5ns\ncount: 12\ncount: 3\nkind: sqare\nweight: 1\n");
    EXPECT_EQ(fields.get("count", number_of, std::uint64_t{0}, std::uint64_t{9}), std::nullopt);
    EXPECT_EQ(fields.choice("kind", kKinds), std::nullopt);
    EXPECT_EQ(errors_.text(),
              "f.yaml:1:1: unknown key \"latncy\": did you mean \"latency\"? valid: latency, "
              "count, kind\n"
              "f.yaml:3:1: \"count\" a second time\n"
              "f.yaml:5:1: unknown key \"weight\"; valid: latency, count, kind\n"
              "f.yaml:2:8: \"12\": expected a number from 0 to 9\n"
              "f.yaml:4:7: \"sqare\": did you mean \"square\"? valid: round, square");
}

TEST_F(StrictFields, RefuseOtherTypes) {
    const Fields fields = read("latency: [5ns]\ncount: 0x1g\nkind: {}\n");
    EXPECT_EQ(fields.get("latency", duration_of), std::nullopt);
    EXPECT_EQ(fields.get("count", number_of, std::uint64_t{0}, std::uint64_t{99}), std::nullopt);
    EXPECT_EQ(fields.choice("kind", kKinds), std::nullopt);
    EXPECT_EQ(errors_.text(),
              "f.yaml:1:10: expected a word or number, found a list\n"
              "f.yaml:2:8: \"0x1g\": expected a number from 0 to 99\n"
              "f.yaml:3:7: expected a word or number, found a mapping");
}

}  // namespace
}  // namespace fabric::yaml
