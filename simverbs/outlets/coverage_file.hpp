// The parts of the model that a world has reached: the first record of each kind, as a trace of its
// own, so that many short runs together are a few kilobytes. Refuses to count: how often is a
// trace's to say.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "fabric/trace/bus.hpp"
#include "fabric/trace/json_lines_sink.hpp"

namespace simverbs {

class CoverageFile final : private fabric::trace::Sink {
  public:
    // Makes `folder` if it is missing and a file of its own in it, which no other world of any
    // process writes: PROGRAM-PROCESS-NUMBER.jsonl. nullptr with errno set where that fails. The
    // bus outlives it.
    static std::unique_ptr<CoverageFile> make(fabric::trace::Bus& bus, const std::string& folder);
    ~CoverageFile();
    CoverageFile(const CoverageFile&) = delete;
    CoverageFile& operator=(const CoverageFile&) = delete;

    // The errno of the first write that failed; 0: none has.
    [[nodiscard]] int error() const { return file_.error(); }

  private:
    using QpKey = std::pair<fabric::NodeId, std::uint64_t>;

    CoverageFile(fabric::trace::Bus& bus, const std::string& path);
    void record(const fabric::trace::TraceRecord& record) override;

    fabric::trace::Bus& bus_;
    fabric::trace::JsonLinesSink file_;
    std::map<QpKey, fabric::trace::TraceRecord> queue_pairs_;  // what their numbers stand for
    std::set<std::string> seen_;
};

}  // namespace simverbs
