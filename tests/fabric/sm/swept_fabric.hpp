// A fabric that a sweeping subnet manager at the first host has brought up, by datagrams alone.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/sm/sa_records.hpp"
#include "fabric/sm/sweeping_sm.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric::test {

class SweptFabric : public ManagedFabric {
  public:
    explicit SweptFabric(std::string_view spec, SubnetPolicy policy = {})
        : SweptFabric(topology_of(spec), std::move(policy)) {}
    explicit SweptFabric(Topology topology, SubnetPolicy policy = {})
        : ManagedFabric(std::move(topology)) {
        bus.attach(trace, trace::CategorySet::all());
        managed.send_traps();
        sm = std::make_unique<SweepingSm>(port(0), loop, bus, std::move(policy));
        sm->start();
        settle();
    }
    ~SweptFabric() { bus.detach(trace); }

    // Until the subnet manager has nothing to do, which a mistake might put off for ever.
    void settle(SweepingSm& which) {
        for (int steps = 0; !which.is_settled() && steps < 1'000'000 && !loop.empty(); ++steps) {
            loop.run_instant();
        }
        EXPECT_TRUE(which.is_settled());
    }
    void settle() { settle(*sm); }

    // A number from one host to another, by LIDs as they are.
    void send(std::size_t from, std::size_t to, std::uint32_t number) {
        send_to_lid(from, port_of(to).attributes().lid, number);
    }
    void send_to_lid(std::size_t from, Lid lid, std::uint32_t number) {
        FramePtr frame = network.frames().make();
        frame->source = network.host(from).id();
        frame->slid = port_of(from).attributes().lid;
        frame->dlid = lid;
        frame->wire_bytes = 1024;
        frame->payload_bytes = 1024;
        frame->transport_as<std::uint32_t>() = number;
        port_of(from).send(std::move(frame));
    }

    trace::MemorySink trace;
    std::unique_ptr<SweepingSm> sm;
};

// Two leaves of two hosts each under two spines: there are two ways between leaves.
inline Topology two_levels() {
    Topology topology;
    const auto add = [&topology](const char* name, NodeKind kind, std::uint16_t ports) {
        topology.nodes.push_back({name, kind, ports});
    };
    const auto link = [&topology](const char* a, std::uint16_t port_a, const char* b,
                                  std::uint16_t port_b) {
        LinkSpec spec;
        spec.a = {a, PortNumber{port_a}};
        spec.b = {b, PortNumber{port_b}};
        topology.links.push_back(spec);
    };
    for (const char* host : {"h0", "h1", "h2", "h3"}) {
        add(host, NodeKind::kHca, 1);
    }
    for (const char* leaf : {"s0", "s1"}) {
        add(leaf, NodeKind::kSwitch, 4);
    }
    for (const char* spine : {"s2", "s3"}) {
        add(spine, NodeKind::kSwitch, 2);
    }
    link("h0", 1, "s0", 1);
    link("h1", 1, "s0", 2);
    link("h2", 1, "s1", 1);
    link("h3", 1, "s1", 2);
    link("s0", 3, "s2", 1);
    link("s0", 4, "s3", 1);
    link("s1", 3, "s2", 2);
    link("s1", 4, "s3", 2);
    return topology;
}

}  // namespace fabric::test
