// The part of a queue pair for datagrams and for receives that are shared.
#include <algorithm>
#include <array>
#include <utility>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/placement.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {
namespace {

using GlobalHeaderBytes = std::array<std::byte, kGrhBytes>;

constexpr std::uint8_t kIpv6Version = 6;
constexpr std::uint8_t kNextHeaderUdp = 17;
constexpr std::uint8_t kNextHeaderIba = 0x1B;

void put_word(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
    bytes[at] = static_cast<std::byte>(value >> 8U);
    bytes[at + 1] = static_cast<std::byte>(value);
}

// RoCE v2 over IPv4: its header in the last 20 bytes, in network order (IBA A17.4.5.2).
GlobalHeaderBytes ipv4_bytes(const fabric::Frame& frame) {
    constexpr std::size_t kIpv4Bytes = 20;
    constexpr std::size_t kChecksum = 10;
    constexpr std::uint32_t kDoNotFragment = 0x4000;
    GlobalHeaderBytes bytes{};
    const std::span<std::byte> header = std::span(bytes).last(kIpv4Bytes);
    const auto address = [](const fabric::Gid& gid) {
        return std::as_bytes(std::span(gid.bytes)).last(4);
    };
    header[0] = std::byte{0x45};  // version 4, five words
    header[1] = std::byte{frame.grh.traffic_class};
    put_word(header, 2, frame.payload_bytes);
    put_word(header, 6, kDoNotFragment);
    header[8] = std::byte{frame.grh.hop_limit};
    header[9] = std::byte{kNextHeaderUdp};
    std::ranges::copy(address(frame.grh.sgid), header.begin() + 12);
    std::ranges::copy(address(frame.grh.dgid), header.begin() + 16);
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < kIpv4Bytes; at += 2) {
        sum += std::to_integer<std::uint32_t>(header[at]) << 8U |
               std::to_integer<std::uint32_t>(header[at + 1]);
    }
    sum = (sum & 0xFFFF) + (sum >> 16U);
    put_word(header, kChecksum, ~((sum & 0xFFFF) + (sum >> 16U)));
    return bytes;
}

// IBA 8.3, or the IPv6 header of RoCE v2, in network order.
GlobalHeaderBytes grh_bytes(const fabric::Frame& frame, bool on_ethernet) {
    if (frame.over_udp && is_ipv4_mapped(frame.grh.dgid)) {
        return ipv4_bytes(frame);
    }
    GlobalHeaderBytes bytes{};
    const fabric::Grh& grh = frame.grh;
    const std::uint32_t first = std::uint32_t{kIpv6Version} << 28U |
                                std::uint32_t{grh.traffic_class} << 20U | grh.flow_label;
    // From after this header to the ICRC, which it includes.
    const std::uint32_t length = on_ethernet
                                     ? frame.payload_bytes - kGrhBytes
                                     : frame.wire_bytes - kLrhBytes - kGrhBytes - kVcrcBytes;
    put_word(bytes, 0, first >> 16U);
    put_word(bytes, 2, first);
    put_word(bytes, 4, length);
    bytes[6] = std::byte{frame.over_udp ? kNextHeaderUdp : kNextHeaderIba};
    bytes[7] = std::byte{grh.hop_limit};
    std::ranges::copy(std::as_bytes(std::span(grh.sgid.bytes)), bytes.begin() + 8);
    std::ranges::copy(std::as_bytes(std::span(grh.dgid.bytes)), bytes.begin() + 24);
    return bytes;
}

// Personality::packet_kind_in_sl.
std::uint8_t packet_kind(const fabric::Frame& frame) {
    constexpr std::uint8_t kUdp = 8;
    constexpr std::uint8_t kIpv6 = 1;
    constexpr std::uint8_t kIpv4 = 2;
    if (!frame.over_udp) {
        return 0;
    }
    return kUdp | (is_ipv4_mapped(frame.grh.dgid) ? kIpv4 : kIpv6);
}

fabric::Gid group_of(const AddressVector& path) {
    fabric::Gid gid;
    gid.bytes = path.dgid;
    return gid;
}

}  // namespace

AddressVerdict QueuePair::check_address(std::uint32_t address_handle) const {
    const AddressHandle* address = context_->find_address(address_handle);
    if (address == nullptr) {
        return AddressVerdict::kUnknown;
    }
    if (address->path.port != attributes_.port) {
        return AddressVerdict::kOtherPort;
    }
    return address->pd == pd_ ? AddressVerdict::kUsable : AddressVerdict::kOtherProtectionDomain;
}

CopyOutcome QueuePair::transmit_datagram(const Packet& packet, std::uint32_t address_handle) {
    const AddressHandle* address = context_->find_address(address_handle);
    if (address == nullptr) {
        return CopyOutcome::kSourceFault;
    }
    fabric::FramePtr frame;
    const CopyOutcome outcome = make_snapshot_frame(packet, address->path, frame);
    if (outcome == CopyOutcome::kCopied) {
        if (packet.dest_qpn == kMulticastQpn) {
            loop_back_multicast(packet, address->path);
        }
        put_on_wire(std::move(frame), packet);
    }
    return outcome;
}

// A group's members on the sender's own device get a copy, the sender included (IBA 10.5.2).
void QueuePair::loop_back_multicast(const Packet& packet, const AddressVector& path) {
    const bool has_members =
        !hca_.multicast().members({group_of(path), fabric::Lid(path.dlid)}).empty();
    fabric::FramePtr frame;
    if (hca_.personality().multicast_loopback && has_members &&
        make_snapshot_frame(packet, path, frame) == CopyOutcome::kCopied) {
        hca_.loop_back(attributes_.port, std::move(frame));
    }
}

CopyOutcome QueuePair::place_grh(std::span<const MemorySpan> spans, bool& had_one) {
    const fabric::Frame& frame = hca_.arriving();
    had_one = frame.has_grh;
    if (!had_one) {
        return CopyOutcome::kCopied;
    }
    const GlobalHeaderBytes bytes = grh_bytes(
        frame, hca_.port(attributes_.port).attributes().link_layer == fabric::LinkLayer::kEthernet);
    const MemorySpan source{reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size()};
    return place_payload({&hca_.own_memory(), &source, 0, kGrhBytes, 1}, memory(kNoSrq), spans, 0);
}

void QueuePair::describe_datagram(const ReceiveCompletion& completion, Cqe& entry) const {
    entry.source_qpn = completion.source_qpn;
    if (completion.status != WcStatus::kSuccess) {
        return;
    }
    const fabric::Frame& frame = hca_.arriving();
    const auto path_bits_mask = (1U << hca_.port(attributes_.port).attributes().lmc) - 1;
    entry.slid = frame.slid.value();
    if (hca_.port(attributes_.port).attributes().link_layer == fabric::LinkLayer::kEthernet) {
        entry.sl = hca_.personality().packet_kind_in_sl ? packet_kind(frame) : std::uint8_t{0};
    } else {
        entry.sl = frame.sl;
    }
    entry.dlid_path_bits = static_cast<std::uint8_t>(frame.dlid.value() & path_bits_mask);
    entry.wc_flags |= completion.has_grh ? static_cast<std::uint32_t>(WcFlag::kGrh) : 0;
}

void QueuePair::forget(const SharedReceiveQueue& srq) {
    if (receives_.xrc_domain() != nullptr && engine_ != nullptr) {
        engine_->forget_receive(SrqNumber(srq.number()));
    }
}

void QueuePair::add_opening(const QpOpening& opening) {
    if (openings_ == nullptr) {
        openings_ = std::make_unique<std::vector<QpOpening>>();
    }
    openings_->push_back(opening);
}

void QueuePair::remove_opening(const DeviceContext& context, std::uint32_t handle) {
    std::erase_if(*openings_, [&context, handle](const QpOpening& opening) {
        return opening.context == &context && opening.handle == handle;
    });
}

bool QueuePair::transfer_ownership() {
    if (openings().empty()) {
        return false;
    }
    const QpOpening heir = openings_->front();
    const RingMemory ring = heir.context->client().make_ring(ring_.bytes, sizeof(QueuePairRings));
    if (ring.base == nullptr) {
        return false;
    }
    openings_->erase(openings_->begin());
    counters_.reset();
    context_->client().release_ring(ring_);
    --receives_.xrc_domain()->uses;
    ring_ = ring;
    context_ = heir.context;
    handle_ = heir.handle;
    receives_.move_domain(*heir.xrcd);
    if (engine_ != nullptr) {
        engine_->move_memory(engine_memory());
    }
    rings().state.value.store(static_cast<std::uint32_t>(attributes_.state),
                              std::memory_order_seq_cst);
    return true;
}

void QueuePair::discarded(const Packet& packet, FaultCause cause) {
    if (cause == FaultCause::kWrongQkey) {
        hca_.count_bad_qkey();
    }
    ++dropped_;
    drop_cause_ = cause;
    hca_.trace(MessageDropped{hca_.node(), attributes_.qpn, packet.psn.value(), cause});
}

void QueuePair::discarded(const Packet& packet, PacketFate fate) {
    hca_.discard(packet, fate);
}

}  // namespace simverbs
