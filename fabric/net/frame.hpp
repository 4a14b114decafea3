// A frame on the wire: the headers that the fabric itself reads, sizes, and a slot in which the
// transport keeps its own parsed headers. No bytes and no payload: the payload is whatever `cargo`
// refers to. The fabric never looks into the slot or the cargo.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"

namespace fabric {

struct Frame;
class FramePool;

// The part of a train that the transport keeps in its slot, for the fabric to cut. A train is
// `packets` consecutive frames written as one: alike but for what the transport counts on from one
// to the next, and the length of the last.
class TrainCutter {
  public:
    // The slot keeps the first `packets` of its frame's; or loses them.
    virtual void keep_first(Frame& frame, std::uint16_t packets) const = 0;
    virtual void drop_first(Frame& frame, std::uint16_t packets) const = 0;

  protected:
    ~TrainCutter() = default;
};

// Data that travels with a frame by reference. Told exactly once when the frame is gone, however it
// went.
class FrameCargo {
  public:
    virtual void release() = 0;
    // One more frame refers to it: it is told once more.
    virtual void retain() = 0;

  protected:
    ~FrameCargo() = default;
};

enum class Ecn : std::uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kCongested = 3 };

// Global route header (IBA 8.3), or the IP header of RoCE v2.
struct Grh {
    Gid sgid;
    Gid dgid;
    std::uint32_t flow_label = 0;  // 20 bits
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
};

struct Frame {
    static constexpr std::size_t kTransportBytes = 160;

    // The members that every hop reads come first, in one cache line.
    Frame* next = nullptr;  // in the queue that holds the frame
    SimTime arrival{};      // at the end of the link it is on; while it waits: when it may start
    FramePool* pool = nullptr;
    FrameCargo* cargo = nullptr;
    // Everything on the wire: all headers, payload, ICRC and VCRC. Of a train: of each but the
    // last.
    std::uint32_t wire_bytes = 0;
    std::uint32_t payload_bytes = 0;  // counts against the MTU of the link
    NodeId source;                    // node that made the frame
    std::uint32_t flow = 0;           // source queue pair number
    Lid slid;
    Lid dlid;
    std::uint16_t pkey = 0xFFFF;
    std::uint8_t sl = 0;
    std::uint8_t vl = 0;
    Ecn ecn : 2 = Ecn::kNotCapable;
    bool over_udp : 1 = false;  // RoCE v2: `grh` stands for the IP header
    bool is_raw : 1 = false;    // Ethernet: the cargo is the frame itself, as its sender made it
    bool is_management : 1 = false;    // a ManagementHeader in the slot, the datagram as cargo
    bool is_lost : 1 = false;          // a filter took it: it ends on the wire
    bool is_past_filters : 1 = false;  // of the direction that it is given to next
    bool is_ahead : 1 = false;         // has its place on the wire, and may lose it to another lane
    bool has_grh = false;              // otherwise `grh` means nothing
    std::uint16_t ingress = 0;         // port of this switch whose buffer it takes room in; 0: none
    std::uint8_t ingress_vl = 0;
    std::uint16_t packets = 1;  // more: a train, of which `arrival` is the first one's

    Grh grh;
    // Counts the frames of a queue pair, from 1; with `source` and `flow` a name of the frame, for
    // traces. 0: nobody counts. Whoever makes a frame sets it.
    std::uint32_t number;
    // Ethernet only.
    MacAddress source_mac;
    MacAddress destination_mac;
    std::uint16_t vlan;  // 0: none

    // Set for trains only. Parts of a train share its cargo.
    const TrainCutter* cutter = nullptr;
    std::uint32_t last_wire_bytes = 0;
    std::uint32_t last_payload_bytes = 0;

    alignas(16) std::array<std::byte, kTransportBytes> transport;

    // The transport's headers as a T. A new frame's slot is not initialised: assign all of T first.
    template <class T>
    [[nodiscard]] T& transport_as() {
        assert_fits<T>();
        return *std::launder(reinterpret_cast<T*>(transport.data()));
    }
    template <class T>
    [[nodiscard]] const T& transport_as() const {
        assert_fits<T>();
        return *std::launder(reinterpret_cast<const T*>(transport.data()));
    }

  private:
    template <class T>
    static constexpr void assert_fits() {
        static_assert(std::is_trivially_copyable_v<T>, "frames are recycled without destructors");
        static_assert(sizeof(T) <= kTransportBytes, "the transport slot is too small");
        static_assert(alignof(T) <= 16);
    }
};

// Everything on the wire of all packets of a train.
[[nodiscard]] inline std::uint64_t total_wire_bytes(const Frame& frame) {
    return frame.packets == 1
               ? frame.wire_bytes
               : std::uint64_t{frame.wire_bytes} * (frame.packets - 1U) + frame.last_wire_bytes;
}

// Gives a frame back to its pool and lets its cargo go.
struct FrameRecycler {
    void operator()(Frame* frame) const;
};
using FramePtr = std::unique_ptr<Frame, FrameRecycler>;

// Frames are recycled, so a steady state allocates nothing. Outlives its frames (asserted).
class FramePool {
  public:
    FramePool() = default;
    ~FramePool();
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    // Everything before `grh` is as in a default Frame; what comes after is left over.
    [[nodiscard]] FramePtr make() {
        if (free_ == nullptr) [[unlikely]] {
            add_slab();
        }
        Frame* const frame = free_;
        free_ = frame->next;
        reset(*frame);
        ++live_;
        return FramePtr(frame);
    }

    // Another frame like `frame`, with the same cargo.
    [[nodiscard]] FramePtr copy(const Frame& frame);

    // Takes the first packet out of a train; copies the first `packets` of one that has more.
    [[nodiscard]] FramePtr take_first(Frame& train);
    [[nodiscard]] FramePtr copy_first(const Frame& train, std::uint16_t packets);
    // Drops the first `packets` of a train that has more.
    static void drop_first(Frame& train, std::uint16_t packets);

    // Frames that somebody holds.
    [[nodiscard]] std::size_t live() const { return live_; }

  private:
    friend struct FrameRecycler;
    static constexpr std::size_t kSlabFrames = 256;

    static void reset(Frame& frame) {
        frame.next = nullptr;
        frame.wire_bytes = 0;
        frame.payload_bytes = 0;
        frame.source = NodeId{};
        frame.flow = 0;
        frame.slid = Lid{};
        frame.dlid = Lid{};
        frame.pkey = 0xFFFF;
        frame.sl = 0;
        frame.vl = 0;
        frame.ecn = Ecn::kNotCapable;
        frame.over_udp = false;
        frame.is_raw = false;
        frame.is_management = false;
        frame.is_lost = false;
        frame.is_past_filters = false;
        frame.is_ahead = false;
        frame.has_grh = false;
        frame.ingress = 0;
        frame.packets = 1;
    }
    void recycle(Frame* frame) {
        if (frame->cargo != nullptr) {
            FrameCargo* const cargo = frame->cargo;
            frame->cargo = nullptr;
            cargo->release();
        }
        frame->next = free_;
        free_ = frame;
        --live_;
    }
    void add_slab();

    Frame* free_ = nullptr;
    std::size_t live_ = 0;
    std::vector<std::unique_ptr<Frame[]>> slabs_;
};

inline void FrameRecycler::operator()(Frame* frame) const {
    frame->pool->recycle(frame);
}

}  // namespace fabric
