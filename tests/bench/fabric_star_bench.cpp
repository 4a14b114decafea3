// Raw fabric: N hosts on one switch, 100 Gb/s, 500 ns, packets of 1024 bytes; host i sends to host
// i+1 mod N one packet every transmission time. Items are packets received; set-up is excluded.
// Bare: without flow control; otherwise with credits and buffers as usual. Counters always.
// fabric_ns3_star.cpp is the same load in ns-3.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/startup_sm.hpp"
#include "fabric/topology/generators.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {
namespace {

constexpr std::uint32_t kPacketBytes = 1024;

class StreamingHost final : public EndNodeListener, public EventHandler {
  public:
    StreamingHost(Network& network, std::size_t index)
        : network_(network),
          host_(network.host(index)),
          port_(host_.port(PortNumber{1})),
          period_(port_.link()->rate().transmission_time(kPacketBytes)) {
        host_.set_listener(this);
    }

    void start(Lid destination) {
        destination_ = destination;
        const EventKey key(EventClass::kApplication, host_.id(), PortNumber{1}, 0);
        network_.loop().schedule({network_.loop().now(), key, this, 0});
    }

    void handle(const Event& event) override {
        FramePtr frame = network_.frames().make();
        frame->source = host_.id();
        frame->slid = port_.attributes().lid;
        frame->dlid = destination_;
        frame->wire_bytes = kPacketBytes;
        frame->payload_bytes = kPacketBytes;
        port_.send(std::move(frame));
        network_.loop().schedule({event.time + period_, event.key, this, 0});
    }

    void frame_arrived(Port& /*port*/, FramePtr /*frame*/) override { ++received_; }
    void port_event(Port& /*port*/, PortEvent /*event*/) override {}

    [[nodiscard]] std::uint64_t received() const { return received_; }

  private:
    Network& network_;
    EndNode& host_;
    Port& port_;
    SimDuration period_;
    Lid destination_;
    std::uint64_t received_ = 0;
};

Topology make_loaded_star(std::uint32_t hosts, std::uint32_t buffer_bytes) {
    Topology topology = make_star(hosts);
    for (LinkSpec& link : topology.links) {
        link.buffer_bytes = buffer_bytes;
    }
    return topology;
}

void star(benchmark::State& state, std::uint32_t buffer_bytes) {
    const auto host_count = static_cast<std::uint32_t>(state.range(0));
    EventLoop loop;
    trace::Bus bus;
    Network network(loop, bus, make_loaded_star(host_count, buffer_bytes));
    StartupSm sm(network);
    sm.bring_up();
    std::vector<std::unique_ptr<StreamingHost>> hosts;
    for (std::uint32_t i = 0; i < host_count; ++i) {
        hosts.push_back(std::make_unique<StreamingHost>(network, i));
    }
    for (std::uint32_t i = 0; i < host_count; ++i) {
        const EndNode& next = network.host((i + 1) % host_count);
        hosts[i]->start(next.port(PortNumber{1}).attributes().lid);
    }
    loop.run_until(kSimStart + 2_us);  // until every queue has its steady length

    const auto received = [&hosts] {
        std::uint64_t sum = 0;
        for (const auto& host : hosts) {
            sum += host->received();
        }
        return sum;
    };
    const std::uint64_t before = received();
    const SimDuration slice = 10'000'000_ps;
    SimTime limit = loop.now();
    for (auto _ : state) {
        limit += slice;
        loop.run_until(limit);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(received() - before));
}
BENCHMARK_CAPTURE(star, bare, 0)->Arg(16)->Arg(128)->Arg(1024)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(star, with_credits, kMaxBufferBytes)
    ->Arg(16)
    ->Arg(128)
    ->Arg(1024)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fabric
