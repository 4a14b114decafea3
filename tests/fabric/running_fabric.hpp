// A fabric for tests: built, brought up, with every host's arrivals and port events written down.
// Knows no transport: frames carry a number in their slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/startup_sm.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/trace/bus.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "tests/support/outcome.hpp"

namespace fabric::test {

// LRH, BTH, ICRC and VCRC.
inline constexpr std::uint32_t kHeaderBytes = 26;

struct Arrival {
    SimTime time;
    std::uint32_t number;

    friend bool operator==(const Arrival&, const Arrival&) = default;
};

class RecordingHost final : public EndNodeListener {
  public:
    explicit RecordingHost(EventLoop& loop) : loop_(loop) {}

    void frame_arrived(Port& /*port*/, FramePtr frame) override {
        arrivals.push_back({loop_.now(), frame->transport_as<std::uint32_t>()});
    }
    void port_event(Port& /*port*/, PortEvent event) override { events.push_back(event); }

    std::vector<Arrival> arrivals;
    std::vector<PortEvent> events;

  private:
    EventLoop& loop_;
};

inline Topology topology_of(std::string_view spec) {
    Outcome<Topology> result = generate_topology(spec);
    EXPECT_TRUE(result) << error_of(result);
    return std::move(*result);
}

class RunningFabric {
  public:
    explicit RunningFabric(std::string_view spec) : RunningFabric(topology_of(spec)) {}
    explicit RunningFabric(Topology topology)
        : network(loop, bus, std::move(topology)), sm(network) {
        bus.attach(trace, trace::CategorySet::all());
        for (std::size_t i = 0; i < network.host_count(); ++i) {
            hosts.push_back(std::make_unique<RecordingHost>(loop));
            network.host(i).set_listener(hosts.back().get());
        }
        sm.bring_up();
    }

    [[nodiscard]] Port& port_of(std::size_t host) const {
        return network.host(host).port(PortNumber{1});
    }

    void send(std::size_t from, std::size_t to, std::uint32_t number,
              std::uint32_t wire_bytes = 1024, std::uint8_t sl = 0) {
        FramePtr frame = network.frames().make();
        frame->source = network.host(from).id();
        frame->slid = port_of(from).attributes().lid;
        frame->dlid = port_of(to).attributes().lid;
        frame->wire_bytes = wire_bytes;
        frame->payload_bytes = wire_bytes - std::min(wire_bytes, kHeaderBytes);
        frame->sl = sl;
        frame->transport_as<std::uint32_t>() = number;
        port_of(from).send(std::move(frame));
    }

    void run() { loop.run_until(SimTime::max()); }

    EventLoop loop;
    trace::Bus bus;
    trace::MemorySink trace;
    Network network;
    StartupSm sm;
    std::vector<std::unique_ptr<RecordingHost>> hosts;
};

}  // namespace fabric::test
