// Where the trace of a world goes while it lives: a JSON Lines file, and whoever wants each record.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fabric/trace/bus.hpp"
#include "fabric/trace/json_lines_sink.hpp"

namespace simverbs {

class TraceOutlets {
  public:
    using Listener = std::function<void(const fabric::trace::TraceRecord&)>;

    // The bus outlives the outlets.
    explicit TraceOutlets(fabric::trace::Bus& bus);
    ~TraceOutlets();
    TraceOutlets(const TraceOutlets&) = delete;
    TraceOutlets& operator=(const TraceOutlets&) = delete;

    // An errno: of creating or truncating the file; EBUSY while one is open.
    int open_file(const std::string& path);
    // ENOENT when none is open, EIO when a write failed.
    int close_file();
    void flush();

    // Replaces the listener; an empty one ends it.
    void listen(Listener listener);

  private:
    class ListenerSink;

    fabric::trace::Bus& bus_;
    std::unique_ptr<fabric::trace::JsonLinesSink> file_;
    std::unique_ptr<ListenerSink> listener_;
};

}  // namespace simverbs
