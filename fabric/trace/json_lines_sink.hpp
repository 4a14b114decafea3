// The canonical trace file: JSON Lines, the schema in the first line, integers and strings only, a
// fixed order of members. Two runs are compared with `cmp`. Refuses pretty-printing and floats.
#pragma once

#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <string>

#include "fabric/trace/bus.hpp"

namespace fabric::trace {

class JsonLinesSink final : public Sink {
  public:
    static constexpr int kSchemaVersion = 1;

    // Writes to a stream that outlives the sink.
    explicit JsonLinesSink(std::ostream& out);
    // Creates or truncates a file; ok() is false when that failed.
    explicit JsonLinesSink(const std::string& path);
    ~JsonLinesSink();
    JsonLinesSink(const JsonLinesSink&) = delete;
    JsonLinesSink& operator=(const JsonLinesSink&) = delete;

    void record(const TraceRecord& record) override;
    void flush();
    // From here on each record is with the operating system before record() returns: a program that
    // crashes leaves what led to it.
    void flush_each() { flushes_each_ = true; }

    // Every write so far has succeeded.
    [[nodiscard]] bool ok() const;
    // The errno of the first write that failed; 0: none has. Records after it are lost.
    [[nodiscard]] int error() const { return error_; }

  private:
    void write_schema();
    void note_error();

    std::ofstream file_;
    std::ostream& out_;
    bool flushes_each_ = false;
    int error_ = 0;
    std::string line_;  // kept for its capacity
};

// `text` as a JSON string with its quotes, appended to `out`. Bytes from 0x80 on pass as they are.
void append_json_string(std::string& out, std::string_view text);

}  // namespace fabric::trace
