// A host channel adapter: an end node of the fabric with contexts, keys and queue pairs.
//
// Single-threaded, like all below the driver: whoever calls holds the world.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/network.hpp"
#include "fabric/trace/bus.hpp"

#include "simverbs/hca/borrowed_bytes.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/flow_table.hpp"
#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/hca/hca_client.hpp"
#include "simverbs/hca/injected_fault.hpp"
#include "simverbs/hca/late_landing.hpp"
#include "simverbs/hca/loopback.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/hca/multicast_table.hpp"
#include "simverbs/hca/number_table.hpp"
#include "simverbs/hca/numbering.hpp"
#include "simverbs/hca/snapshot.hpp"
#include "simverbs/model/hw_counters.hpp"
#include "simverbs/model/packet_fate.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {

class Hca;
class QueuePair;

// The state that the devices of a world share; it outlives them and every frame.
struct HcaCommons {
    OwnMemory own_memory;
    SnapshotPool snapshots{Snapshot::kBytes};
    SnapshotPool train_snapshots{Snapshot::kTrainBytes};
    Borrowings borrowings{train_snapshots};
    std::vector<Hca*> by_node;  // nullptr: a switch, or a host without one
    EventBacklog events;
    std::size_t device_count = 0;      // that were made
    bool tells_speed_changes = false;  // programs know DEVICE_SPEED_CHANGE
    Numbering numbering;
    DeviceFaults* faults = nullptr;  // nobody has any
    // Tells if a subnet manager holds a port (PortInfo:CapabilityMask.IsSM); empty: nobody knows.
    std::function<bool(const fabric::Port&)> is_sm;
};

class Hca final : private fabric::EndNodeListener, private LoopbackListener {
  public:
    // All but the node's listener outlives the device.
    Hca(fabric::Network& network, fabric::EndNode& node, const Personality& personality,
        HcaCommons& commons);
    ~Hca();
    Hca(const Hca&) = delete;
    Hca& operator=(const Hca&) = delete;

    [[nodiscard]] fabric::NodeId node() const { return node_.id(); }
    // Returns true if a subnet manager holds the port (PortInfo:CapabilityMask.IsSM).
    [[nodiscard]] bool carries_sm(std::uint32_t port_number) const {
        return commons_.is_sm && commons_.is_sm(port(port_number));
    }
    [[nodiscard]] const std::string& host() const { return node_.host(); }
    // In the topology: the host's name where it has this HCA only.
    [[nodiscard]] const std::string& name() const { return node_.name(); }
    [[nodiscard]] fabric::Guid guid() const { return node_.guid(); }
    [[nodiscard]] std::uint16_t port_count() const { return node_.port_count(); }
    [[nodiscard]] bool has_port(std::uint32_t number) const {
        return number >= 1 && number <= node_.port_count();
    }
    [[nodiscard]] fabric::Port& port(std::uint32_t number) const {
        return node_.port(fabric::PortNumber(static_cast<std::uint16_t>(number)));
    }
    [[nodiscard]] const Personality& personality() const { return personality_; }
    [[nodiscard]] const fabric::Network& network() const { return network_; }
    [[nodiscard]] std::uint32_t bad_pkeys() const { return bad_pkeys_; }
    [[nodiscard]] std::uint32_t bad_qkeys() const { return bad_qkeys_; }
    void count_bad_qkey() { ++bad_qkeys_; }
    // `port` counts from 1.
    [[nodiscard]] HwCounters& hw_counters(std::uint32_t port) { return hw_counters_.at(port - 1); }
    [[nodiscard]] const HwCounters& hw_counters(std::uint32_t port) const {
        return hw_counters_.at(port - 1);
    }

    [[nodiscard]] fabric::EventLoop& loop() const { return network_.loop(); }
    [[nodiscard]] fabric::FramePool& frames() { return network_.frames(); }
    [[nodiscard]] SnapshotPool& snapshots() { return commons_.snapshots; }
    [[nodiscard]] SnapshotPool& train_snapshots() { return commons_.train_snapshots; }
    [[nodiscard]] OwnMemory& own_memory() { return commons_.own_memory; }
    [[nodiscard]] EventBacklog& event_backlog() { return commons_.events; }
    // nullptr: nobody is to be asked.
    [[nodiscard]] DeviceFaults* faults() const { return commons_.faults; }
    [[nodiscard]] const Numbering& numbering() const { return commons_.numbering; }
    [[nodiscard]] KeyTable& keys() { return keys_; }
    [[nodiscard]] FlowTable& flows() { return flows_; }
    [[nodiscard]] FlowTable& egress_flows() { return egress_flows_; }
    [[nodiscard]] FlowTable& table_of(const FlowRule& rule) {
        return rule.egress ? egress_flows_ : flows_;
    }
    [[nodiscard]] NumberTable<QueuePair>& qps() { return qps_; }
    [[nodiscard]] NumberTable<SharedReceiveQueue>& srqs() { return srqs_; }
    [[nodiscard]] NumberTable<ReceiveWorkQueue>& wqs() { return wqs_; }
    [[nodiscard]] MulticastTable& multicast() { return multicast_; }
    // Domains of files that somebody has open.
    [[nodiscard]] std::map<XrcFile, std::weak_ptr<XrcDomain>>& xrc_files() { return xrc_files_; }
    [[nodiscard]] std::size_t queue_pair_count() const;
    // Counts a new queue pair; returns its place in the order of all, from 1.
    [[nodiscard]] std::uint32_t count_queue_pair() { return ++queue_pairs_made_; }
    // nullptr for a number that names none.
    [[nodiscard]] QueuePair* find_qp(std::uint32_t qpn) const { return qps_.find(qpn); }
    // The `ordinal`-th that was made, or nullptr.
    [[nodiscard]] QueuePair* find_made(std::uint32_t ordinal) const;
    // A live context's queue of that handle; the first context's that has one.
    [[nodiscard]] CompletionQueue* find_cq(std::uint32_t handle) const;
    template <class F>
    void for_each_qp(F&& visit) const {
        for (const auto& [handle, context] : contexts_) {
            context->for_each_qp(visit);
        }
    }
    template <class F>
    void for_each_context(F&& visit) const {
        for (const auto& [handle, context] : contexts_) {
            visit(*context);
        }
    }
    template <class F>
    void for_each_cq(F&& visit) const {
        for (const auto& [handle, context] : contexts_) {
            context->for_each_cq(visit);
        }
    }

    // nullptr when the device has no number block left. Closing returns false for an unknown one.
    DeviceContext* open(Client& client);
    bool close(std::uint32_t context);
    [[nodiscard]] DeviceContext* find_context(std::uint32_t handle) const;

    void send(std::uint32_t port, fabric::FramePtr frame);
    // To this device alone, whatever its destination.
    void loop_back(std::uint32_t port, fabric::FramePtr frame);
    // The frame whose packet is being delivered; only while one is.
    [[nodiscard]] const fabric::Frame& arriving() const { return *arriving_; }
    // By how much the payload of the packet under way reaches memory late.
    [[nodiscard]] fabric::SimDuration landing_delay() const {
        return arriving_ == nullptr ? fabric::SimDuration{}
                                    : arriving_->transport_as<Packet>().landing_delay;
    }
    // Returns true if the packet under way is to find no receive.
    [[nodiscard]] bool withholds_receive() const {
        return arriving_ != nullptr && !arriving_->is_raw && !arriving_->is_management &&
               arriving_->transport_as<Packet>().finds_no_receive;
    }
    [[nodiscard]] LateLandings& late_landings() { return late_landings_; }
    [[nodiscard]] fabric::SimTime transmitter_free_at(std::uint32_t port,
                                                      const AddressVector& path) const;
    // When the transmitters of the link and of the loopback are free.
    [[nodiscard]] fabric::SimTime transmitters_free_at(std::uint32_t port) const;

    // DEVICE_FATAL, once: from now on nothing completes, nothing is sent and what arrives is lost.
    // `why` is kept for reports on its contexts.
    void die(std::string_view why = "its device failed (DEVICE_FATAL)");
    // The same without an event: its host has lost power.
    void lose_power(std::string_view why = "its host lost power");
    [[nodiscard]] bool has_power() const { return has_power_; }
    // It works again, for contexts that are opened from now on.
    void restart();
    // The program that has opened it is no more, without a word: the same for that context alone.
    // Its packets on the wire arrive.
    void abandon(DeviceContext& context, std::string_view why = "its process has ended");
    void abandon_all(std::string_view why);
    // Returns true if a program has it open, and nothing has ended that.
    [[nodiscard]] bool is_in_use() const;
    [[nodiscard]] bool is_dead() const { return is_dead_; }
    // Returns true if it is plugged in, and listed.
    [[nodiscard]] bool is_present() const { return is_present_; }
    void set_present(bool present) { is_present_ = present; }
    // nullptr, as at first: there is none. It outlives the device, or takes itself back.
    void set_client(HcaClient* client) { client_ = client; }

    // Returns true if any device of this world has, or once had, a queue pair of this number.
    [[nodiscard]] bool was_ever(std::uint32_t qpn) const;
    // The payload that the packet under way refers to is gone: its sender is told.
    void report_source_fault(const Packet& packet);

    // Gives the frame payload bytes of its own, if it refers to others'.
    void keep_payload(fabric::Frame& frame);
    // Gives frames in flight for which `concerns` is true payload bytes of their own.
    template <class F>
    void keep_payloads(F&& concerns) {
        const auto keep = [this, &concerns](fabric::Frame& frame) {
            if (frame.source == node() && frame.cargo == nullptr && concerns(frame)) {
                keep_payload(frame);
            }
        };
        commons_.borrowings.settle();
        network_.for_each_frame_in_flight(keep);
        for (const auto& loopback : loopbacks_) {
            loopback->for_each_frame_in_flight(keep);
        }
    }

    [[nodiscard]] bool traces(fabric::trace::Category category) const {
        return network_.bus().wants(category);
    }
    template <fabric::trace::TraceEvent E>
    void trace(const E& event) {
        network_.bus().emit(network_.loop().now(), event);
    }
    // Leaves the bytes of a READ response where they are. nullptr: they are to be copied at once.
    [[nodiscard]] BorrowedBytes* borrow(const Payload& payload) {
        return commons_.borrowings.borrow(payload, network_.deferred_arrivals());
    }
    // Before other bytes of `space` are read, or anything else happens that its process could see.
    void take_borrowed_of(const AddressSpace& space) {
        if (commons_.borrowings.has_some_of(space)) [[unlikely]] {
            commons_.borrowings.settle();
        }
    }
    // Takes what has arrived of deferred trains that change what the queue pair's responder reads.
    void settle_for_reads_of(const QueuePair& qp);
    // Records that a packet was not taken.
    void discard(const Packet& packet, PacketFate fate);

  private:
    void frame_arrived(fabric::Port& port, fabric::FramePtr frame) override;
    bool take_ahead(fabric::Port& port, fabric::Frame& train) override;
    bool would_take(fabric::Port& port, const fabric::Frame& train, fabric::SimTime last,
                    fabric::TouchedMemories& touched) override;
    [[nodiscard]] QueuePair* takes_train(fabric::Port& port, const fabric::Frame& train);
    [[nodiscard]] fabric::TouchedMemory whole(const AddressSpace& memory) const;
    [[nodiscard]] fabric::TouchedMemory part_of(const AddressSpace& memory,
                                                std::span<const MemorySpan> spans) const;
    [[nodiscard]] fabric::TouchedMemory read_by(const Packet& packet) const;
    void settle_for(const QueuePair& qp, const Packet& packet);
    void port_event(fabric::Port& port, fabric::PortEvent event) override;
    void looped_back(fabric::Port& port, fabric::FramePtr frame) override;
    void stop_contexts(std::string_view why);
    [[nodiscard]] bool is_of_dead_context(std::uint32_t qpn) const;
    void deliver(fabric::Port& port, const fabric::Frame& frame);
    void deliver_to(QueuePair& qp, const fabric::Port& port, const fabric::Frame& frame);
    void discard_corrupted(fabric::Port& port, const Packet& packet);
    void steer(const fabric::Port& port, const fabric::Frame& frame);

    fabric::Network& network_;
    fabric::EndNode& node_;
    const Personality& personality_;
    HcaCommons& commons_;
    std::vector<std::unique_ptr<Loopback>> loopbacks_;  // by port number - 1
    std::vector<HwCounters> hw_counters_;               // by port number - 1
    const std::size_t index_;                           // among the devices of the world
    KeyTable keys_;
    NumberTable<QueuePair> qps_;
    NumberTable<SharedReceiveQueue> srqs_;
    NumberTable<ReceiveWorkQueue> wqs_;
    MulticastTable multicast_;
    std::map<XrcFile, std::weak_ptr<XrcDomain>> xrc_files_;
    FlowTable flows_;         // for what arrives
    FlowTable egress_flows_;  // for what is sent
    const fabric::Frame* arriving_ = nullptr;
    std::uint32_t bad_pkeys_ = 0;
    std::uint32_t bad_qkeys_ = 0;
    std::uint32_t queue_pairs_made_ = 0;
    HcaClient* client_ = nullptr;
    bool is_dead_ = false;
    bool has_power_ = true;
    std::atomic<bool> is_present_ = true;  // also read without the world
    bool has_dead_contexts_ = false;
    LateLandings late_landings_{*this};
    std::map<std::uint32_t, std::unique_ptr<DeviceContext>> contexts_;
};

}  // namespace simverbs
