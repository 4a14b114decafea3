// Shared receive queues and XRC domains.
#include <cerrno>
#include <mutex>

#include <fcntl.h>
#include <sys/stat.h>

#include <infiniband/verbs.h>

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/event_acknowledgments.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/receive_request.hpp"
#include "simverbs/abi/refusal_reason.hpp"

namespace simverbs::abi {
namespace {

ibv_srq* create(ibv_context& handle, const CreateSrq& command, ibv_srq_init_attr_ex& init) {
    Context& context = as_object(&handle);
    CreateSrqReply reply;
    int descriptor = -1;
    if (const int error = context.execute(command, reply, descriptor); error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refuse_unmapped("ibv_create_srq");
        return nullptr;
    }
    auto* srq = new SharedReceiveQueue(context, reply, ring);
    srq->context = &handle;
    srq->srq_context = init.srq_context;
    srq->pd = init.pd;
    srq->handle = reply.handle;
    pthread_mutex_init(&srq->mutex, nullptr);
    pthread_cond_init(&srq->cond, nullptr);
    if (command.type != SrqType::kBasic) {
        srq->completions = &as_object(init.cq);
        srq->completions->queue.add(srq->queue);
    }
    if (as_object(init.pd).threads != nullptr) {
        srq->queue.receives().lock().elide();
        if (srq->queue.tags() != nullptr) {
            srq->queue.tags()->operations.lock().elide();
        }
    }
    if (context.personality().create_returns_rounded) {
        init.attr.max_wr = reply.requests;
    }
    init.attr.max_sge = reply.segments;
    const std::lock_guard lock(context.lock());
    context.srqs[reply.handle] = srq;
    return srq;
}

CreateSrq to_command(const ibv_srq_init_attr_ex& init) {
    CreateSrq command;
    command.pd = init.pd->handle;
    command.requests = init.attr.max_wr;
    command.segments = init.attr.max_sge;
    command.limit = init.attr.srq_limit;
    return command;
}

// The fields of its completions about the tag header can be read from an extended queue alone
// (mlx5).
bool has_tag_matching_needs(const ibv_srq_init_attr_ex& init) {
    constexpr std::uint32_t kNeeds = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    return (init.comp_mask & kNeeds) == kNeeds && init.cq != nullptr &&
           as_object(init.cq).is_extended && init.tm_cap.max_num_tags > 0;
}

// The device looks at the ring when a message comes: nobody has to be told.
int write_receives(SharedReceiveQueue& srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr,
                   WatchedReceives& watched) {
    driver::WorkQueue& queue = srq.queue.receives();
    const std::lock_guard guard(queue.lock());
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        error = put_receive(queue, *wr, watched);
        if (error != 0) {
            *bad_wr = wr;
            break;
        }
    }
    srq.queue.publish();
    return error;
}

}  // namespace

// Most devices ignore the limit given here, as ibv_create_srq(3) has it.
SIMVERBS_ABI ibv_srq* simverbs_abi_ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
    ibv_srq_init_attr_ex init{};
    init.srq_context = attr->srq_context;
    init.attr = attr->attr;
    init.pd = pd;
    ibv_srq* srq = create(*pd->context, to_command(init), init);
    if (srq != nullptr) {
        attr->attr = init.attr;
    }
    return srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init) {
    constexpr std::uint32_t kXrcNeeds = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const bool typed = (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
    const ibv_srq_type type = typed ? init->srq_type : IBV_SRQT_BASIC;
    const bool has_pd = (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 && init->pd != nullptr;
    bool has_rest = true;
    if (type == IBV_SRQT_XRC) {
        has_rest = (init->comp_mask & kXrcNeeds) == kXrcNeeds && init->xrcd != nullptr &&
                   init->cq != nullptr;
    } else if (type == IBV_SRQT_TM) {
        has_rest = has_tag_matching_needs(*init);
    }
    if (!has_pd || !has_rest || type > IBV_SRQT_TM ||
        init->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) {
        refuse("ibv_create_srq_ex", EINVAL, "{}",
               !has_pd     ? "pd is missing (IBV_SRQ_INIT_ATTR_PD)"
               : !has_rest ? "what its type needs is missing: XRC takes xrcd and cq, tag matching "
                             "an extended cq and max_num_tags"
                           : "srq_type or comp_mask is unknown");
        return nullptr;
    }
    CreateSrq command = to_command(*init);
    if (type == IBV_SRQT_XRC) {
        command.type = SrqType::kXrc;
        command.xrcd = as_object(init->xrcd).number();
        command.cq = init->cq->handle;
    } else if (type == IBV_SRQT_TM) {
        command.type = SrqType::kTag;
        command.cq = init->cq->handle;
        command.tags = init->tm_cap.max_num_tags;
        command.operations = init->tm_cap.max_ops;
    }
    return create(*context, command, *init);
}

SIMVERBS_ABI int simverbs_abi_ibv_modify_srq(ibv_srq* handle, ibv_srq_attr* attr, int mask) {
    if (is_used_after_destroy(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    Context& context = as_object(handle->context);
    ModifySrq command;
    command.handle = handle->handle;
    command.mask = static_cast<std::uint32_t>(mask);
    command.requests = attr->max_wr;
    command.limit = attr->srq_limit;
    ModifySrqReply reply;
    int descriptor = -1;
    const int error = context.execute(command, reply, descriptor);
    if (error != 0 || (mask & IBV_SRQ_MAX_WR) == 0) {
        return error;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        return refuse_unmapped("ibv_modify_srq");
    }
    as_object(handle).queue.replace_ring(ring, reply);
    attr->max_wr = reply.requests;
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_srq(ibv_srq* handle, ibv_srq_attr* attr) {
    if (is_used_after_destroy(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    QuerySrq command;
    command.handle = handle->handle;
    QuerySrqReply reply;
    const int error = as_object(handle->context).execute(command, reply);
    if (error == 0) {
        *attr = {.max_wr = reply.requests, .max_sge = reply.segments, .srq_limit = reply.limit};
    }
    return error;
}

SIMVERBS_ABI int simverbs_abi_ibv_destroy_srq(ibv_srq* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    SharedReceiveQueue& srq = as_object(handle);
    Context& context = as_object(handle->context);
    DestroySrq command;
    command.handle = handle->handle;
    if (const int error = context.execute(command); error != 0) {
        return error;
    }
    {
        const std::lock_guard lock(context.lock());
        context.srqs.erase(handle->handle);
    }
    if (srq.completions != nullptr) {
        if (context.personality().purges_completions) {
            srq.completions->queue.purge(srq.queue);
        }
        srq.completions->queue.remove(srq.queue);
    }
    await_acknowledgments(context, *handle, handle->handle, "shared receive queue", [&srq, handle] {
        return EventBalance{srq.async_events.given, handle->events_completed};
    });
    if (context.watch() != nullptr) {
        context.watch()->forget({CompletedQueue::kShared, srq.queue.number()});
    }
    destroy(srq, {handle, handle->context, "shared receive queue", handle->handle, true});
    return 0;
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
    if (!as_object(srq->context).personality().limits.caps.contains(DeviceCap::kXrc)) {
        return refuse("ibv_get_srq_num", EOPNOTSUPP, "the device has no XRC");
    }
    if (as_object(srq).completions == nullptr) {
        return refuse("ibv_get_srq_num", EINVAL, "SRQ {:#x} is not of XRC", srq->handle);
    }
    *number = srq->handle;
    return 0;
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
    Context& context = as_object(handle->context);
    if (!context.admits_work()) {
        *bad_wr = wr;
        return context.refuse_use("ibv_post_srq_recv");
    }
    if (const int refused = context.refused_post<CommandCode::kPostSrqReceive>(handle->handle);
        refused != 0) [[unlikely]] {
        *bad_wr = wr;
        return refused;
    }
    SharedReceiveQueue& srq = as_object(handle);
    WatchedReceives watched{context.watch(), {CompletedQueue::kShared, srq.queue.number()}, {}};
    const int error = write_receives(srq, wr, bad_wr, watched);
    if (watched.mistake) [[unlikely]] {
        name_misuse(context, *watched.mistake, handle->handle, {});
    }
    if (error != 0) [[unlikely]] {
        explain_receive({.verb = "ibv_post_srq_recv",
                         .number = handle->handle,
                         .queue = srq.queue.receives().shape()},
                        **bad_wr, error);
    }
    return with_errno(error);
}

// By the file that the descriptor names, so that processes share a domain (ibv_open_xrcd(3)).
ibv_xrcd* open_xrcd(ibv_context* handle, ibv_xrcd_init_attr* init) {
    constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    OpenXrcd command;
    command.has_file = init->fd != -1;
    command.create = (init->oflags & O_CREAT) != 0;
    command.exclusive = (init->oflags & O_EXCL) != 0;
    struct stat file {};
    int error = 0;
    if ((init->comp_mask & kNeeded) != kNeeded || init->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED ||
        (init->oflags & ~(O_CREAT | O_EXCL)) != 0) {
        error = refuse("ibv_open_xrcd", EINVAL,
                       "fd and oflags (O_CREAT, O_EXCL) are needed, and nothing else");
    } else if (command.has_file && fstat(init->fd, &file) != 0) {
        error = refuse("ibv_open_xrcd", errno, "fd {} names no file", init->fd);
    }
    command.file_device = file.st_dev;
    command.file_number = file.st_ino;
    HandleReply reply;
    Context& context = as_object(handle);
    if (error == 0) {
        error = context.execute(command, reply);
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return new XrcDomain(context, reply.handle);
}

int close_xrcd(ibv_xrcd* handle) {
    XrcDomain& domain = as_object(handle);
    CloseXrcd command;
    command.handle = domain.number();
    const int error = as_object(domain.context).execute(command);
    if (error == 0) {
        delete &domain;
    }
    return error;
}

}  // namespace simverbs::abi
