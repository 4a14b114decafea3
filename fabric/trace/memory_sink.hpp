// Keeps the last records in memory, for tests and for explaining a failure. Bounded: the oldest go
// first, and how many went is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "fabric/trace/bus.hpp"

namespace fabric::trace {

class MemorySink final : public Sink {
  public:
    static constexpr std::size_t kDefaultCapacity = 65'536;

    explicit MemorySink(std::size_t capacity = kDefaultCapacity) : capacity_(capacity) {}

    void record(const TraceRecord& record) override;

    [[nodiscard]] const std::deque<TraceRecord>& records() const { return records_; }

    // In order of time. The pointers hold until the next record.
    [[nodiscard]] std::vector<const TraceRecord*> named(std::string_view name) const;
    [[nodiscard]] std::size_t count(std::string_view name) const;

    // Records that had to make room.
    [[nodiscard]] std::uint64_t forgotten() const { return forgotten_; }

    void clear();

  private:
    std::size_t capacity_;
    std::deque<TraceRecord> records_;
    std::uint64_t forgotten_ = 0;
};

}  // namespace fabric::trace
