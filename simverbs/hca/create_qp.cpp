// The command that makes a queue pair: what it may ask for, and which objects it needs.
#include <algorithm>
#include <array>
#include <cerrno>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

// A value of ibv_qp_cap, and the limit of the device that it must not exceed.
struct CapacityBound {
    std::string_view field;
    std::uint32_t value;
    std::string_view limit;
    std::int64_t most;
};

// An object that a command names; 0: it names none.
struct NamedPart {
    std::string_view kind;
    std::uint32_t handle;
    const void* object;
};

}  // namespace

int DeviceContext::check_capacity(const CreateQp& command) const {
    const DeviceLimits& limits = hca_.personality().limits;
    const QpCapacity& asked = command.capacity;
    const auto bounds = std::to_array<CapacityBound>({
        {"max_send_wr", asked.send_requests, "max_qp_wr", limits.max_qp_wr},
        {"max_recv_wr", asked.receive_requests, "max_qp_wr", limits.max_qp_wr},
        {"max_send_sge", asked.send_segments, "max_sge", limits.max_sge},
        {"max_recv_sge", asked.receive_segments, "max_sge", limits.max_sge},
        {"max_inline_data", asked.inline_bytes, "the device's", limits.max_inline_bytes},
    });
    for (const CapacityBound& bound : bounds) {
        if (bound.value > bound.most) {
            return refuse(EINVAL, "cap.{} {} is more than {} {}", bound.field, bound.value,
                          bound.limit, bound.most);
        }
    }
    const bool xrc = command.service == Service::kXrcIni || command.service == Service::kXrcTgt;
    if (xrc && !limits.caps.contains(DeviceCap::kXrc)) {
        return refuse(EOPNOTSUPP, "the device has no XRC");
    }
    if (asked.tso_header_bytes > 0 && !limits.tso_services.contains(command.service)) {
        return refuse(EOPNOTSUPP, "the device has no segmentation (max_tso_header) for {}",
                      properties(command.service).name);
    }
    if (asked.tso_header_bytes > limits.max_inline_bytes) {
        return refuse(EINVAL, "max_tso_header {} is more than {}", asked.tso_header_bytes,
                      limits.max_inline_bytes);
    }
    const bool raw = command.service == Service::kRawPacket;
    if (raw && limits.max_raw_ethy_qp == 0) {
        return refuse(EOPNOTSUPP, "the device has no raw packets: they want a port on Ethernet");
    }
    const auto is_raw = [](const QueuePair& qp) {
        return qp.attributes().service == Service::kRawPacket;
    };
    if (raw && std::ranges::count_if(qps_, is_raw) >= limits.max_raw_ethy_qp) {
        return refuse(ENOMEM, "the context has max_raw_ethy_qp {} QPs for raw packets",
                      limits.max_raw_ethy_qp);
    }
    return exceeds(qps_.size() + 1, limits.max_qp)
               ? refuse(ENOMEM, "the context has max_qp {} QPs", limits.max_qp)
               : 0;
}

int DeviceContext::find_parts(const CreateQp& command, QueuePairParts& parts) const {
    const ServiceProperties& service = properties(command.service);
    parts.pd = find(pds_, command.pd);
    parts.send_cq = find(cqs_, command.send_cq);
    parts.receive_cq = find(cqs_, command.receive_cq);
    parts.srq = find(srqs_, command.srq);
    parts.xrcd = find(xrcds_, command.xrcd);
    parts.table = find(tables_, command.indirection_table);
    const auto named = std::to_array<NamedPart>({
        {"PD", command.pd, parts.pd},
        {"send CQ", command.send_cq, parts.send_cq},
        {"receive CQ", command.receive_cq, parts.receive_cq},
        {"SRQ", command.srq, parts.srq},
        {"XRC domain", command.xrcd, parts.xrcd},
    });
    for (const NamedPart& part : named) {
        if (part.handle != 0 && part.object == nullptr) {
            return refuse_handle(ENOENT, part.kind, part.handle);
        }
    }
    if (command.spreads) {
        parts.send_cq = parts.receive_cq = nullptr;
        parts.hash = command.hash;
        return parts.pd == nullptr ? refuse(EINVAL, "pd is missing")
                                   : check_spread(command, parts.table);
    }
    parts.table = nullptr;
    const bool has_all = service.srq_from_packet
                             ? parts.xrcd != nullptr
                             : parts.pd != nullptr && parts.send_cq != nullptr &&
                                   (parts.receive_cq != nullptr || !service.has_responder);
    const bool wrong_queue =
        parts.srq != nullptr && (!service.may_use_srq || parts.srq->domain() != nullptr);
    const bool no_tags = parts.srq != nullptr && parts.srq->tags() != nullptr &&
                         !hca_.personality().limits.tag_matching.services.contains(command.service);
    if (!has_all || wrong_queue || no_tags) {
        return refuse(EINVAL, "{} {}", service.name,
                      !has_all      ? (service.srq_from_packet ? "needs an XRC domain"
                                                               : "needs pd, send_cq and recv_cq")
                      : wrong_queue ? "does not take this SRQ"
                                    : "takes no SRQ with tag matching");
    }
    if (service.srq_from_packet) {
        parts.pd = nullptr;
        parts.send_cq = parts.receive_cq = nullptr;
    } else {
        parts.xrcd = nullptr;
    }
    if (!service.has_responder) {
        parts.receive_cq = nullptr;
    }
    return 0;
}

// As Linux mlx5 (process_create_flags, create_rss_raw_qp_tir): what is done to frames is for raw
// packets, padding for all; a queue pair that spreads frames leaves both to its work queues.
int DeviceContext::check_offloads(const CreateQp& command) const {
    const FrameOffloads asked = FrameOffloads::from_bits(command.offloads);
    if (command.spreads) {
        return asked.empty()
                   ? 0
                   : refuse(EINVAL, "create_flags belong to the work queues of the table");
    }
    FrameOffloads offered = offered_offloads(hca_.personality().limits);
    if (command.service != Service::kRawPacket) {
        offered = offered & FrameOffload::kPciWriteEndPadding;
    }
    return offered.contains(asked) ? 0
                                   : refuse(EOPNOTSUPP, "{} has none of these create_flags here",
                                            properties(command.service).name);
}

int DeviceContext::execute(const CreateQp& command, CreateQpReply& reply) {
    const Personality& personality = hca_.personality();
    if (find_service(properties(command.service).ibv_qp_type) == nullptr ||
        properties(command.service).service != command.service) {
        return refuse(EINVAL, "qp_type is none that the device has");
    }
    QueuePairParts parts{.service = command.service};
    if (const int error = find_parts(command, parts); error != 0) {
        return error;
    }
    if (const int error = check_capacity(command); error != 0) {
        return error;
    }
    const ServiceProperties& service = properties(command.service);
    if (command.blocks_own_multicast && (!service.multicast || command.spreads)) {
        return refuse(EINVAL, "BLOCK_SELF_MCAST_LB is for services with multicast, not for {}",
                      service.name);
    }
    if (command.blocks_own_multicast && !personality.blocks_own_multicast) {
        return refuse(EOPNOTSUPP, "the device has no BLOCK_SELF_MCAST_LB");
    }
    parts.blocks_own_multicast = command.blocks_own_multicast;
    if (const int error = check_offloads(command); error != 0) {
        return error;
    }
    parts.offloads = FrameOffloads::from_bits(command.offloads);
    QpCapacity& granted = parts.capacity;
    granted = command.capacity;
    if (!service.has_requester) {
        granted.send_requests = granted.send_segments = granted.inline_bytes = 0;
    }
    if (!service.has_receive_queue || parts.srq != nullptr) {
        granted.receive_requests = granted.receive_segments = 0;
    }
    granted.send_requests = rounded(granted.send_requests, personality.send_queue_rounding);
    granted.receive_requests =
        rounded(granted.receive_requests, personality.receive_queue_rounding);
    if (const std::uint32_t bytes = personality.inline_bytes_per_sge; bytes > 0) {
        const std::uint32_t needed = (granted.inline_bytes + bytes - 1) / bytes;
        granted.send_segments = std::max(granted.send_segments, needed);
        granted.inline_bytes = bytes * granted.send_segments;
    }
    if (personality.inline_fills_block && granted.send_requests > 0) {
        granted.inline_bytes = inline_bytes_in_blocks(
            send_header_bytes(command.service, command.operations),
            {granted.send_segments, granted.inline_bytes, granted.tso_header_bytes});
    }
    parts.send = send_shape(granted);
    parts.receive = receive_queue_shape(granted.receive_requests, granted.receive_segments);
    parts.ring =
        client_.make_ring(queue_pair_ring_bytes(parts.send, parts.receive), sizeof(QueuePairRings));
    if (parts.ring.base == nullptr) {
        return refuse_ring();
    }
    const auto qpn = hca_.qps().reserve(handle_);
    if (!qpn) {
        client_.release_ring(parts.ring);
        return refuse(ENOMEM, "the context has no queue pair number left");
    }
    parts.qpn = *qpn;
    auto* const qp = new QueuePair(hca_, *this, parts);
    hca_.qps().assign(*qpn, *qp);
    qp->describe();
    qps_.insert(*qp);
    reply = {*qpn, *qpn, granted, client_.ring_reply(parts.ring)};
    return 0;
}

}  // namespace simverbs
