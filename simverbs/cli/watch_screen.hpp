// A world at two moments, as a screen of text: queue pairs and ports, what they have done, and how
// much of it a second, of virtual and of wall time. Pure: no terminal, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simverbs::cli {

struct WatchedQueuePair {
    std::string device;
    std::uint64_t qpn = 0;
    std::uint64_t peer = 0;
    std::string service;
    std::string state;
    std::uint64_t sends_outstanding = 0;
    std::uint64_t sends_done = 0;  // modulo 2^32, as `received`
    std::uint64_t received = 0;
    std::string waits;
};

struct WatchedPort {
    std::string name;
    std::string state;
    std::string rate;
    std::uint64_t sent_packets = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_packets = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t failed = 0;
    std::uint64_t retried = 0;
    std::uint64_t not_ready = 0;
};

// The last report on a world that `simverbs watch` got, and when.
struct Watched {
    std::string topology;
    std::int64_t time_ps = 0;
    std::int64_t wall_ns = 0;  // of any clock
    std::uint64_t events = 0;
    std::vector<WatchedQueuePair> queue_pairs;
    std::vector<WatchedPort> ports;
    std::string users;  // "opensm (process 7 of h0), ..."
};

// Nothing where `text` is not what simverbs/server/watch_report.hpp says.
std::optional<Watched> read_watched(const std::string& text, std::int64_t wall_ns);

struct ScreenSize {
    static constexpr std::size_t kEndless = ~std::size_t{0};
    std::size_t lines = kEndless;
    std::size_t columns = kEndless;
};

// Lines, each with its end. Without `before` there are no rates. Rows that do not fit are left out,
// the busy and the broken shown first, and their number told; columns that do not fit are left out.
// `keys`: what the terminal's keys do, in the first line.
std::string watch_screen(const Watched& now, const Watched* before, const ScreenSize& size,
                         std::string_view keys = {});

// Three digits: "0", "999", "1.23k", "45.6M".
std::string short_number(std::uint64_t number);

}  // namespace simverbs::cli
