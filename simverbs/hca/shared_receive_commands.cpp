// Shared receive queues, XRC domains, and queue pairs that somebody else made there.
#include <algorithm>
#include <cerrno>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

// Why a shared receive queue cannot be made with these values; "" where it can.
std::string value_reason(const CreateSrq& command, const Personality& personality) {
    const DeviceLimits& limits = personality.limits;
    if (command.type > SrqType::kTag) {
        return fmt::format("srq_type {} is unknown", static_cast<unsigned>(command.type));
    }
    if (command.type == SrqType::kTag &&
        (command.tags == 0 || command.tags > limits.tag_matching.max_tags ||
         command.operations > limits.tag_matching.max_operations)) {
        return fmt::format("max_num_tags {} is none of 1 to {}, or max_ops {} is more than {}",
                           command.tags, limits.tag_matching.max_tags, command.operations,
                           limits.tag_matching.max_operations);
    }
    const std::uint32_t fewest = personality.srq_without_receives ? 0 : 1;
    if (command.requests < fewest || exceeds(command.requests, limits.max_srq_wr)) {
        return fmt::format("max_wr {} is none of {} to max_srq_wr {}", command.requests, fewest,
                           limits.max_srq_wr);
    }
    if (exceeds(command.segments, limits.max_srq_sge)) {
        return fmt::format("max_sge {} is more than max_srq_sge {}", command.segments,
                           limits.max_srq_sge);
    }
    return "";
}

}  // namespace

int DeviceContext::execute(const CreateSrq& command, CreateSrqReply& reply) {
    const Personality& personality = hca_.personality();
    const DeviceLimits& limits = personality.limits;
    ProtectionDomain* pd = find(pds_, command.pd);
    OpenedXrcDomain* xrcd = find(xrcds_, command.xrcd);
    CompletionQueue* cq = find(cqs_, command.cq);
    const bool xrc = command.type == SrqType::kXrc;
    const bool matches_tags = command.type == SrqType::kTag;
    if (matches_tags && limits.tag_matching.max_tags == 0) {
        return refuse(EOPNOTSUPP, "the device has no tag matching");
    }
    if (pd == nullptr) {
        return refuse_handle(ENOENT, "PD", command.pd);
    }
    if (xrc && xrcd == nullptr) {
        return refuse_handle(ENOENT, "XRC domain", command.xrcd);
    }
    if ((xrc || matches_tags) && cq == nullptr) {
        return refuse_handle(ENOENT, "CQ", command.cq);
    }
    if (const std::string why = value_reason(command, personality); !why.empty()) {
        return refuse(EINVAL, "{}", why);
    }
    if (exceeds(srqs_.size() + 1, limits.max_srq)) {
        return refuse(ENOMEM, "the context has max_srq {} SRQs", limits.max_srq);
    }
    const WorkQueueShape shape = receive_queue_shape(
        rounded(command.requests, personality.srq_rounding), std::max(1U, command.segments));
    const WorkQueueShape operations = tag_operation_shape(matches_tags ? command.operations : 0,
                                                          limits.tag_matching.max_segments);
    const RingMemory ring =
        matches_tags
            ? client_.make_ring(tag_matching_ring_bytes(shape, operations),
                                tag_operation_ring_at(shape) + sizeof(TagOperationRing))
            : client_.make_ring(shared_receive_ring_bytes(shape), sizeof(SharedReceiveRing));
    const auto number = ring.base == nullptr ? std::nullopt : hca_.srqs().reserve(handle_);
    if (!number) {
        if (ring.base != nullptr) {
            client_.release_ring(ring);
        }
        return refuse_ring();
    }
    auto srq = std::make_unique<SharedReceiveQueue>(
        *this, SharedReceiveQueueParts{.pd = *pd,
                                       .xrcd = xrc ? xrcd : nullptr,
                                       .cq = xrc || matches_tags ? cq : nullptr,
                                       .ring = ring,
                                       .shape = shape,
                                       .operations = operations,
                                       .tags = matches_tags ? command.tags : 0,
                                       .number = *number,
                                       .limit = 0});
    if (personality.srq_limit_at_creation) {
        srq->set_limit(command.limit);
    }
    hca_.srqs().assign(*number, *srq);
    srqs_.emplace(*number, std::move(srq));
    reply = {*number,
             shape.limit,
             shape.max_segments,
             matches_tags ? command.tags : 0,
             limits.tag_matching.max_segments,
             operations.limit,
             client_.ring_reply(ring)};
    return 0;
}

int DeviceContext::execute(const ModifySrq& command, ModifySrqReply& reply) {
    SharedReceiveQueue* srq = find(srqs_, command.handle);
    if (srq == nullptr) {
        return refuse_handle(ENOENT, "SRQ", command.handle);
    }
    const Personality& personality = hca_.personality();
    const auto given = SrqAttrs::from_bits(command.mask);
    const bool resizes = given.contains(SrqAttr::kMaxRequests);
    const bool sets_limit = given.contains(SrqAttr::kLimit);
    const bool known = (SrqAttr::kMaxRequests | SrqAttr::kLimit).contains(given) && !given.empty();
    const QuerySrqReply now = srq->query();
    const std::uint32_t size =
        resizes ? rounded(command.requests, personality.srq_rounding) : now.requests;
    if (personality.checks_srq_attr_mask && !known) {
        return refuse(EINVAL, "mask {:#x} is neither IBV_SRQ_MAX_WR, nor IBV_SRQ_LIMIT, nor both",
                      command.mask);
    }
    if (sets_limit && command.limit > size) {
        return refuse(EINVAL, "srq_limit {} is more than max_wr {}", command.limit, size);
    }
    if (resizes && !sets_limit && now.limit > command.requests) {
        return refuse(EINVAL, "max_wr {} is less than the srq_limit {} that is set",
                      command.requests, now.limit);
    }
    if (resizes) {
        if (!personality.limits.caps.contains(DeviceCap::kSrqResize) || srq->tags() != nullptr) {
            return refuse(EOPNOTSUPP, "{} resize{}",
                          srq->tags() != nullptr ? "an SRQ with tag matching does not"
                                                 : "the device does not",
                          srq->tags() != nullptr ? "" : " SRQs");
        }
        if (command.requests == 0 || command.requests < srq->waiting() ||
            exceeds(command.requests, personality.limits.max_srq_wr)) {
            return refuse(EINVAL, "max_wr {} is none of {} (receives that wait) to max_srq_wr {}",
                          command.requests, std::max(1U, srq->waiting()),
                          personality.limits.max_srq_wr);
        }
        const WorkQueueShape shape = receive_queue_shape(
            rounded(command.requests, personality.srq_rounding), srq->max_segments());
        const RingMemory ring =
            client_.make_ring(shared_receive_ring_bytes(shape), sizeof(SharedReceiveRing));
        if (ring.base == nullptr) {
            return refuse_ring();
        }
        reply.first = srq->replace_ring(ring, shape);
        reply.requests = shape.limit;
        reply.ring = client_.ring_reply(ring);
    }
    if (sets_limit) {
        srq->set_limit(command.limit);
    }
    return 0;
}

int DeviceContext::execute(const QuerySrq& command, QuerySrqReply& reply) {
    const SharedReceiveQueue* srq = find(srqs_, command.handle);
    if (srq == nullptr) {
        return refuse_handle(ENOENT, "SRQ", command.handle);
    }
    reply = srq->query();
    return 0;
}

int DeviceContext::execute(const DestroySrq& command, EmptyReply& /*reply*/) {
    const SharedReceiveQueue* srq = find(srqs_, command.handle);
    if (srq == nullptr) {
        return refuse_handle(ENOENT, "SRQ", command.handle);
    }
    if (srq->in_use()) {
        return refuse_use(*srq);
    }
    drop_srq(command.handle);
    return 0;
}

// XRC targets name it by number alone: none of them may go on with it.
void DeviceContext::drop_srq(std::uint32_t handle) {
    const auto found = srqs_.find(handle);
    hca_.srqs().erase(handle);
    if (found->second->domain() != nullptr) {
        hca_.for_each_qp([&found](QueuePair& qp) { qp.forget(*found->second); });
    }
    srqs_.erase(found);
}

int DeviceContext::execute(const OpenXrcd& command, HandleReply& reply) {
    const DeviceLimits& limits = hca_.personality().limits;
    if (!limits.caps.contains(DeviceCap::kXrc)) {
        return refuse(EOPNOTSUPP, "the device has no XRC");
    }
    if (exceeds(xrcds_.size() + 1, limits.max_xrcd)) {
        return refuse(ENOMEM, "the context has max_xrcd {} XRC domains", limits.max_xrcd);
    }
    auto opened = std::make_unique<OpenedXrcDomain>();
    if (command.has_file) {
        auto& files = hca_.xrc_files();
        std::erase_if(files, [](const auto& file) { return file.second.expired(); });
        std::weak_ptr<XrcDomain>& known = files[{command.file_device, command.file_number}];
        opened->domain = known.lock();
        const bool exists = opened->domain != nullptr;
        if (exists ? command.create && command.exclusive : !command.create) {
            return refuse(EINVAL, "{}",
                          exists
                              ? "the domain of this file exists, and oflags has O_EXCL"
                              : "the domain of this file does not exist, and oflags lacks O_CREAT");
        }
        if (!exists) {
            opened->domain = std::make_shared<XrcDomain>();
            known = opened->domain;
        }
    } else if (!command.create) {
        return refuse(EINVAL, "a domain without a file (fd -1) needs O_CREAT in oflags");
    } else {
        opened->domain = std::make_shared<XrcDomain>();
    }
    reply.handle = ++last_xrcd_;
    xrcds_.emplace(reply.handle, std::move(opened));
    return 0;
}

int DeviceContext::execute(const CloseXrcd& command, EmptyReply& /*reply*/) {
    const OpenedXrcDomain* opened = find(xrcds_, command.handle);
    if (opened == nullptr) {
        return refuse_handle(ENOENT, "XRC domain", command.handle);
    }
    if (opened->uses > 0) {
        return refuse_use(command.handle, *opened);
    }
    xrcds_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const OpenQp& command, HandleReply& reply) {
    OpenedXrcDomain* opened = find(xrcds_, command.xrcd);
    QueuePair* qp = hca_.qps().find(command.qpn);
    if (opened == nullptr) {
        return refuse_handle(ENOENT, "XRC domain", command.xrcd);
    }
    if (qp == nullptr || qp->domain() != opened->domain.get()) {
        return refuse(EINVAL, "QP {:#x} is none of this XRC domain", command.qpn);
    }
    // As often as wanted, by its maker too: ib_open_qp() of Linux does not look who asks.
    reply.handle = kLargestNumber + ++last_opening_;
    qp->add_opening({this, reply.handle, opened});
    ++opened->uses;
    opened_qps_[reply.handle] = qp;
    return 0;
}

// One handle on a queue pair goes. An XRC target lives on while there is another.
void DeviceContext::leave(QueuePair& qp, std::uint32_t handle) {
    opened_qps_.erase(handle);
    if (&qp.context() != this || qp.handle() != handle) {
        const auto openings = qp.openings();
        const auto opening = std::find_if(
            openings.begin(), openings.end(), [this, handle](const QpOpening& candidate) {
                return candidate.context == this && candidate.handle == handle;
            });
        --opening->xrcd->uses;
        qp.remove_opening(*this, handle);
        return;
    }
    qps_.erase(qps_.iterator_to(qp));
    std::unique_ptr<QueuePair> kept(&qp);
    if (qp.transfer_ownership()) {
        qp.context().qps_.insert(*kept.release());
        return;
    }
    kept->give_up_tags();
    for (const QpOpening& opening : qp.openings()) {  // no memory for any of them
        --opening.xrcd->uses;
        opening.context->opened_qps_.erase(opening.handle);
    }
    hca_.multicast().forget(qp);
    hca_.qps().erase(qp.qpn());
}

}  // namespace simverbs
