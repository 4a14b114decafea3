// Protection domains, and what extends them: thread domains and parent domains.
//
// A thread domain is the application's promise to use what is made in it from one thread at a time:
// those queues do without their locks. Custom allocators are accepted and never asked, as a
// provider may: rings belong to the device, which makes them itself. So is the leave to allocate
// memory that a confidential guest shares with its host: no device here needs any.
#include <algorithm>
#include <cerrno>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

// Queues that were made with this very handle, not with another of the same domain.
bool has_queues(Context& context, const ibv_pd* domain) {
    return std::any_of(context.qps.begin(), context.qps.end(),
                       [domain](const QueuePair& qp) { return qp.c_handle()->pd == domain; }) ||
           std::any_of(context.cqs.begin(), context.cqs.end(), [domain](const auto& entry) {
               return entry.second->parent_domain == domain;
           });
}

}  // namespace

SIMVERBS_ABI ibv_pd* simverbs_abi_ibv_alloc_pd(ibv_context* handle) {
    Context& context = as_object(handle);
    HandleReply reply;
    if (const int error = context.execute(AllocatePd{}, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    return new ProtectionDomain(context, reply.handle);
}

// Frees a parent domain, too; the domain that it was made on stays.
SIMVERBS_ABI int simverbs_abi_ibv_dealloc_pd(ibv_pd* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    ProtectionDomain& domain = as_object(handle);
    Context& context = as_object(handle->context);
    if (!context.admits()) {
        return with_errno(EIO);
    }
    {
        const std::lock_guard lock(context.lock());
        const bool is_parent = domain.extends != nullptr;
        if (domain.uses > 0 || (is_parent && has_queues(context, handle))) {
            return with_errno(EBUSY);
        }
        if (is_parent) {
            --domain.extends->uses;
        }
        if (domain.threads != nullptr) {
            --domain.threads->uses;
        }
    }
    if (domain.extends == nullptr) {
        DeallocatePd command;
        command.handle = handle->handle;
        if (const int error = context.execute(command); error != 0) {
            return error;
        }
    }
    destroy(domain, {handle, handle->context, "protection domain", handle->handle});
    return 0;
}

namespace {

// Checks that the device has thread domains and parent domains; an errno.
int check_domains(const Context& context) {
    if (!context.admits()) {
        return EIO;
    }
    return context.personality().thread_domains ? 0 : EOPNOTSUPP;
}

}  // namespace

ibv_td* alloc_td(ibv_context* handle, ibv_td_init_attr* attr) {
    Context& context = as_object(handle);
    if (const int error = check_domains(context); error != 0 || attr->comp_mask != 0) {
        errno = error != 0 ? error : EINVAL;
        return nullptr;
    }
    return new ThreadDomain(context);
}

int dealloc_td(ibv_td* handle) {
    ThreadDomain& domain = as_object(handle);
    const std::lock_guard lock(as_object(handle->context).lock());
    if (domain.uses > 0) {
        return with_errno(EBUSY);
    }
    delete &domain;
    return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* handle, ibv_parent_domain_init_attr* attr) {
    constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                                     kParentDomainAllowUnprotected;
    Context& context = as_object(handle);
    if (const int error = check_domains(context);
        error != 0 || attr->pd == nullptr || (attr->comp_mask & ~kKnown) != 0) {
        errno = error != 0 ? error : EINVAL;
        return nullptr;
    }
    ProtectionDomain& original = as_object(attr->pd);
    ThreadDomain* threads = attr->td == nullptr ? nullptr : &as_object(attr->td);
    const std::lock_guard lock(context.lock());
    ++original.uses;
    if (threads != nullptr) {
        ++threads->uses;
    }
    return new ProtectionDomain(original, threads);
}

}  // namespace simverbs::abi
