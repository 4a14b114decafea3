// Packets of a world as a capture file: what the ports of HCAs send and get, and what is lost
// wherever that is, with the reason as a comment.
//
// Each packet is built anew from its frame, its payload as it is in memory when the packet arrives;
// what cannot be read is cut off. Refuses packets that a device sends to itself: they are on no
// wire.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/net/frame_observer.hpp"
#include "fabric/trace/bus.hpp"
#include "fabric/trace/pcapng_file.hpp"

#include "simverbs/wire/packet_bytes.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class Capture final : private fabric::FrameObserver, private fabric::trace::Sink {
  public:
    // One at a time. The simulation outlives it.
    Capture(Simulation& simulation, const std::string& path);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    // Writes out what it holds back to order it by time.
    void flush();
    // Every write so far has succeeded.
    [[nodiscard]] bool ok() const { return file_.ok(); }
    // The errno of the first write that failed; 0: none has.
    [[nodiscard]] int error() const { return file_.error(); }

  private:
    // Source, flow and number of a frame.
    using FrameName = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
    struct Held {
        std::uint32_t interface;
        bool inbound;
        Bytes bytes;
        std::uint32_t wire_bytes;
        std::string comment;
    };

    void filtered(const fabric::Frame& frame) override;
    void delivered(const fabric::LinkDirection& direction, const fabric::Frame& frame,
                   fabric::SimTime start) override;
    void dropped(const fabric::Port& port, const fabric::Frame& frame,
                 fabric::DropReason reason) override;
    void record(const fabric::trace::TraceRecord& record) override;

    [[nodiscard]] Bytes build(const fabric::Frame& frame, fabric::LinkLayer layer,
                              std::uint32_t& wire_bytes);
    void add(const fabric::Port& port, bool inbound, fabric::SimTime time,
             const fabric::Frame& frame, std::string comment);
    [[nodiscard]] std::uint32_t interface_of(const fabric::Port& port);
    [[nodiscard]] std::string note_on(const fabric::Frame& frame);
    void write_until(fabric::SimTime time);

    Simulation& simulation_;
    fabric::trace::PcapngFile file_;
    fabric::SimDuration longest_hop_{};
    std::map<std::uint64_t, std::string> fault_names_;
    std::string fired_;  // the fault that has hit the frame which is being filtered
    std::map<FrameName, std::string> notes_;
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint32_t> interfaces_;
    std::map<std::pair<fabric::SimTime, std::uint64_t>, Held> held_;
    std::uint64_t added_ = 0;
};

}  // namespace simverbs
