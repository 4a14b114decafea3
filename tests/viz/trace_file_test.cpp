#include "viz/trace_file.hpp"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/outcome.hpp"
#include "viz/markup.hpp"

namespace simverbs::viz {
namespace {

constexpr const char* kSchema =
    R"({"schema":"simverbs-trace","version":1,"time_unit":"ps","members":[]})"
    "\n";
constexpr const char* kRecord =
    R"({"time":12,"seq":3,"node":1,"category":"state","name":"n","fields":{"b":true,"a":-4,)"
    R"("big":18446744073709551615,"t":"x"}})";

fabric::Outcome<Trace> read(const std::string& text) {
    std::istringstream in(text);
    return read_trace(in, "t");
}

TEST(TraceFile, GivesBackWhatWasWritten) {
    const auto trace = read(std::string(kSchema) + kRecord + "\n");
    ASSERT_TRUE(trace) << trace.error();
    ASSERT_EQ(trace->records.size(), 1U);
    const Record& record = trace->records[0];
    EXPECT_EQ(record.time, 12);
    EXPECT_EQ(record.seq, 3U);
    EXPECT_EQ(record.node, 1U);
    EXPECT_EQ(record.number("a"), -4);
    EXPECT_EQ(record.number("b"), 1);
    EXPECT_EQ(static_cast<std::uint64_t>(record.number("big")), UINT64_MAX);
    EXPECT_EQ(record.text("t"), "x");
    EXPECT_EQ(record.fields.front().name, "b") << "in the order of the file";
    EXPECT_EQ(record.find("absent"), nullptr);
}

TEST(TraceFile, NamesTheLineThatIsWrong) {
    EXPECT_EQ(fabric::error_of(read("{}\n")), "t:1: not a trace of simverbs, version 1");
    EXPECT_EQ(fabric::error_of(read(std::string(kSchema) + kRecord + "\n{\"time\":1}\n")),
              "t:3: not a record of a trace");
    EXPECT_EQ(fabric::error_of(read_trace("/nowhere/at/all")),
              "/nowhere/at/all: No such file or directory");
}

TEST(TraceFile, ALastLineWithoutItsEndIsLeftOut) {
    const auto trace = read(std::string(kSchema) + kRecord + "\n{\"time\":1,\"se");
    ASSERT_TRUE(trace) << trace.error();
    EXPECT_EQ(trace->records.size(), 1U);
    EXPECT_TRUE(trace->is_cut);
}

TEST(Markup, TimesAreExact) {
    EXPECT_EQ(time_text(0), "0 ps");
    EXPECT_EQ(time_text(999), "999 ps");
    EXPECT_EQ(time_text(1'050'000), "1.05 us");
    EXPECT_EQ(time_text(58'000'000'000'000), "58 s");
    EXPECT_EQ(time_text(-1'500), "-1.5 ns");
    EXPECT_EQ(rate_text(100'000'000'000), "100 Gb/s");
    EXPECT_EQ(rate_text(2'500'000'000), "2.5 Gb/s");
}

TEST(Markup, QuotesOfDotAreEscaped) {
    EXPECT_EQ(dot_quoted("a\"b\\"), "\"a\\\"b\\\\\"");
}

}  // namespace
}  // namespace simverbs::viz
