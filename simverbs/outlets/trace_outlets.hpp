// Where the trace of a world goes while it lives: a JSON Lines file, a capture of its packets, a
// file of what it has reached, memory, and whoever wants each record.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/trace/bus.hpp"
#include "fabric/trace/json_lines_sink.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "simverbs/outlets/capture.hpp"
#include "simverbs/outlets/coverage_file.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class TraceOutlets {
  public:
    using Listener = std::function<void(const fabric::trace::TraceRecord&)>;

    // The simulation outlives the outlets.
    explicit TraceOutlets(Simulation& simulation);
    ~TraceOutlets();
    TraceOutlets(const TraceOutlets&) = delete;
    TraceOutlets& operator=(const TraceOutlets&) = delete;

    // Descriptions of the numbers in it come first. An errno: of creating or truncating the file;
    // EBUSY while one is open.
    int open_file(const std::string& path, bool flushes_each = false);
    // ENOENT when none is open, EIO when a write failed.
    int close_file();
    void flush();
    // A sentence for each file that is not complete since a write failed, the disk being full say.
    // flush() comes before it.
    [[nodiscard]] std::vector<std::string> incomplete() const;

    // The same of a capture file for Wireshark. While it is open packets are looked at one by one.
    int open_capture(const std::string& path);
    int close_capture();

    // A file in `folder` of what this world reaches, from now to its end. An errno.
    int open_coverage(const std::string& folder);

    // The last `records` stay in memory, from now on.
    void keep(std::size_t records);
    // nullptr: none are kept.
    [[nodiscard]] const fabric::trace::MemorySink* kept() const { return kept_.get(); }

    // Replaces the listener; an empty one ends it.
    void listen(Listener listener);
    // nullptr: there is none.
    [[nodiscard]] const Listener* listener() const;

  private:
    class ListenerSink;

    void stop_keeping();

    Simulation& simulation_;
    fabric::trace::Bus& bus_;
    std::unique_ptr<fabric::trace::JsonLinesSink> file_;
    std::string file_path_;
    std::unique_ptr<Capture> capture_;
    std::string capture_path_;
    std::unique_ptr<CoverageFile> coverage_;
    std::string coverage_folder_;
    std::unique_ptr<fabric::trace::MemorySink> kept_;
    std::unique_ptr<ListenerSink> listener_;
};

}  // namespace simverbs
