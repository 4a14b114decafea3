#include "fabric/trace/json_lines_sink.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/fabric/trace/sample_events.hpp"

namespace fabric::trace {
namespace {

using test::Called;
using test::Colour;

constexpr std::string_view kSchema =
    R"({"schema":"simverbs-trace","version":1,"time_unit":"ps",)"
    R"("members":["time","seq","node","category","name","fields"]})"
    "\n";

TEST(JsonLinesSink, WritesTheSchemaThenALineARecord) {
    std::ostringstream out;
    JsonLinesSink sink(out);
    Bus bus;
    bus.attach(sink, CategorySet::all());
    bus.emit(kSimStart + 5_ns,
             Called{.node = NodeId{3}, .returned = -22, .colour = Colour::kBlue, .verb = "a\"b"});
    bus.emit(kSimStart + 5_ns, Called{.node = kNoNode, .blocking = true});
    EXPECT_EQ(out.str(),
              std::string(kSchema) +
                  R"({"time":5000,"seq":0,"node":3,"category":"call","name":"called","fields":)"
                  R"({"returned":-22,"colour":"blue","verb":"a\"b","blocking":false}})"
                  "\n"
                  R"({"time":5000,"seq":1,"node":null,"category":"call","name":"called","fields":)"
                  R"({"returned":0,"colour":"red","verb":"poll","blocking":true}})"
                  "\n");
}

// The lines of a file, while its sink lives.
std::size_t lines_written(bool flushes_each) {
    const std::string path = testing::TempDir() + std::to_string(getpid()) + "_flushed.jsonl";
    JsonLinesSink sink(path);
    if (flushes_each) {
        sink.flush_each();
    }
    Bus bus;
    bus.attach(sink, CategorySet::all());
    bus.emit(kSimStart, Called{.node = NodeId{3}});
    std::ifstream in(path);
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);) {
        ++lines;
    }
    std::remove(path.c_str());
    return lines;
}

TEST(JsonLinesSink, LeavesEachRecordBehindWhenAskedTo) {
    EXPECT_EQ(lines_written(false), 0U);
    EXPECT_EQ(lines_written(true), 2U);
}

TEST(JsonLinesSink, WritesAFile) {
    const std::string path = testing::TempDir() + std::to_string(getpid()) + "_sink.jsonl";
    {
        const JsonLinesSink sink(path);
        EXPECT_TRUE(sink.ok());
    }
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    EXPECT_EQ(content.str(), kSchema);
    std::remove(path.c_str());
}

TEST(JsonLinesSink, SaysThatAFileCannotBeWritten) {
    EXPECT_FALSE(JsonLinesSink(std::string("/nonexistent/trace.jsonl")).ok());
}

TEST(JsonString, EscapesWhatMustBe) {
    std::string out;
    append_json_string(out, "\"\\\n\t\x01\x7F \xC3\xA9");
    EXPECT_EQ(out, "\"\\\"\\\\\\n\\t\\u0001\\u007f \xC3\xA9\"");
}

}  // namespace
}  // namespace fabric::trace
