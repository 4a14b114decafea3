#include "simverbs/outlets/capture.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "fabric/mad/datagram_pool.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"

#include "simverbs/hca/placement.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {
namespace {

using fabric::trace::Category;
using fabric::trace::LinkType;

constexpr fabric::trace::CategorySet kLookedAt{Category::kPacket, Category::kFault,
                                               Category::kObject};
constexpr std::uint32_t kLongestFrame = 16'384;

bool is_hca(const fabric::Port& port) {
    return port.node().kind() == fabric::NodeKind::kHca;
}

fabric::LinkLayer layer_of(const fabric::Port& port) {
    return port.attributes().link_layer;
}

}  // namespace

Capture::Capture(Simulation& simulation, const std::string& path)
    : simulation_(simulation), file_(path) {
    fabric::Network& network = simulation_.network();
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        const fabric::Link& link = network.link(i);
        longest_hop_ =
            std::max(longest_hop_, link.latency() + link.rate().transmission_time(kLongestFrame));
    }
    for (std::size_t i = 0; i < network.host_count(); ++i) {
        fabric::EndNode& host = network.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            const fabric::Port& port = host.port(fabric::PortNumber{number});
            if (port.link() != nullptr) {
                static_cast<void>(interface_of(port));
            }
        }
    }
    network.set_frame_observer(this);
    simulation_.bus().attach(*this, kLookedAt);
}

Capture::~Capture() {
    simulation_.bus().detach(*this);
    simulation_.network().set_frame_observer(nullptr);
    flush();
}

void Capture::flush() {
    write_until(fabric::SimTime::max());
    file_.flush();
}

// Records of packets are wanted for what comes with them: frames that are looked at one by one.
void Capture::record(const fabric::trace::TraceRecord& record) {
    if (record.category == Category::kObject && record.name == "fault") {
        fault_names_[record.number("fault")] = fmt::format("\"{}\"", record.text("name"));
    } else if (record.category == Category::kFault) {
        const std::uint64_t number = record.number("fault");
        const auto named = fault_names_.find(number);
        fired_ = fmt::format("fault {}: {}",
                             named == fault_names_.end() ? std::to_string(number) : named->second,
                             record.text("action"));
    }
}

void Capture::filtered(const fabric::Frame& frame) {
    if (!fired_.empty()) {
        notes_[{frame.source.value(), frame.flow, frame.number}] = std::move(fired_);
        fired_.clear();
    }
}

std::string Capture::note_on(const fabric::Frame& frame) {
    const auto found = notes_.find({frame.source.value(), frame.flow, frame.number});
    return found == notes_.end() ? std::string() : found->second;
}

void Capture::delivered(const fabric::LinkDirection& direction, const fabric::Frame& frame,
                        fabric::SimTime start) {
    if (is_hca(direction.from())) {
        add(direction.from(), false, start, frame, note_on(frame));
    }
    if (is_hca(direction.to())) {
        add(direction.to(), true, simulation_.loop().now(), frame, note_on(frame));
        notes_.erase({frame.source.value(), frame.flow, frame.number});
    }
}

void Capture::dropped(const fabric::Port& port, const fabric::Frame& frame,
                      fabric::DropReason reason) {
    std::string comment = fmt::format("dropped at {} port {}: {}", port.node().name(),
                                      port.number().value(), to_string(reason));
    if (const std::string note = note_on(frame); !note.empty()) {
        comment += ", " + note;
        notes_.erase({frame.source.value(), frame.flow, frame.number});
    }
    const fabric::SimTime time =
        reason == fabric::DropReason::kFault ? frame.arrival : simulation_.loop().now();
    add(port, false, time, frame, std::move(comment));
}

Bytes Capture::build(const fabric::Frame& frame, fabric::LinkLayer layer,
                     std::uint32_t& wire_bytes) {
    Bytes bytes;
    if (frame.is_management) {
        const auto& cargo = *static_cast<const fabric::DatagramCargo*>(frame.cargo);
        append_datagram(bytes, frame, layer, std::as_bytes(std::span(cargo.datagram.bytes)));
    } else {
        const Packet& packet = frame.transport_as<Packet>();
        Bytes payload(packet.payload.length);
        const bool readable =
            gather_payload(packet.payload, payload.data()) == CopyOutcome::kCopied;
        if (frame.is_raw) {
            bytes = std::move(payload);
        } else {
            append_packet(bytes, frame, layer, payload);
            if (!readable) {
                wire_bytes = static_cast<std::uint32_t>(bytes.size());
                bytes.resize(bytes.size() - kIcrcBytes - padded(packet.payload.length) -
                             (layer == fabric::LinkLayer::kInfiniband ? kVcrcBytes : 0));
                return bytes;
            }
        }
    }
    wire_bytes = static_cast<std::uint32_t>(bytes.size());
    return bytes;
}

void Capture::add(const fabric::Port& port, bool inbound, fabric::SimTime time,
                  const fabric::Frame& frame, std::string comment) {
    Held held{.interface = interface_of(port),
              .inbound = inbound,
              .bytes = {},
              .wire_bytes = 0,
              .comment = std::move(comment)};
    held.bytes = build(frame, layer_of(port), held.wire_bytes);
    held_.emplace(std::pair(time, added_++), std::move(held));
    write_until(simulation_.loop().now() - longest_hop_);
}

std::uint32_t Capture::interface_of(const fabric::Port& port) {
    const auto [place, is_new] =
        interfaces_.try_emplace({port.node().id().value(), port.number().value()}, 0);
    if (is_new) {
        place->second = file_.add_interface(
            fmt::format("{}:{}", port.node().name(), port.number().value()),
            layer_of(port) == fabric::LinkLayer::kEthernet ? LinkType::kEthernet
                                                           : LinkType::kInfiniband,
            port.link() == nullptr ? 0 : port.link()->rate().bits_per_second());
    }
    return place->second;
}

void Capture::write_until(fabric::SimTime time) {
    while (!held_.empty() && held_.begin()->first.first < time) {
        const auto& [key, held] = *held_.begin();
        file_.write(
            {held.interface, key.first, held.inbound, held.bytes, held.wire_bytes, held.comment});
        held_.erase(held_.begin());
    }
}

}  // namespace simverbs
