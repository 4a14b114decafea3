// Protection domains, and what extends them: thread domains and parent domains.
//
// A thread domain is the application's promise to use what is made in it from one thread at a time:
// those queues do without their locks. Custom allocators are accepted and never asked, as a
// provider may: rings belong to the device, which makes them itself. So is the leave to allocate
// memory that a confidential guest shares with its host: no device here needs any.
#include <cerrno>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include <infiniband/verbs.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

// A queue that was made with this very handle, not with another of the same domain: "QP 0x1". "":
// there is none.
std::string queue_in(Context& context, const ibv_pd* domain) {
    for (const QueuePair& qp : context.qps) {
        if (qp.c_handle()->pd == domain) {
            return fmt::format("QP {:#x}", qp.c_handle()->qp_num);
        }
    }
    for (const auto& [handle, cq] : context.cqs) {
        if (cq->parent_domain == domain) {
            return fmt::format("CQ {}", handle);
        }
    }
    return "";
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
        return context.refuse_use("ibv_dealloc_pd");
    }
    {
        const std::lock_guard lock(context.lock());
        const bool is_parent = domain.extends != nullptr;
        if (domain.uses > 0) {
            return refuse("ibv_dealloc_pd", EBUSY, "PD {} is used by {}", handle->handle,
                          fabric::counted(domain.uses, "parent domain"));
        }
        if (const std::string user = is_parent ? queue_in(context, handle) : ""; !user.empty()) {
            return refuse("ibv_dealloc_pd", EBUSY, "the parent domain of PD {} is used by {}",
                          handle->handle, user);
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

// Checks that the device has thread domains and parent domains; an errno, with its reason.
int check_domains(std::string_view verb, const Context& context) {
    if (!context.admits()) {
        return context.refuse_use(verb);
    }
    return context.personality().thread_domains
               ? 0
               : refuse(verb, EOPNOTSUPP,
                        "the device has neither thread domains nor parent domains");
}

}  // namespace

ibv_td* alloc_td(ibv_context* handle, ibv_td_init_attr* attr) {
    Context& context = as_object(handle);
    if (check_domains("ibv_alloc_td", context) != 0) {
        return nullptr;
    }
    if (attr->comp_mask != 0) {
        refuse("ibv_alloc_td", EINVAL, "comp_mask {:#x} has to be 0", attr->comp_mask);
        return nullptr;
    }
    return new ThreadDomain(context);
}

int dealloc_td(ibv_td* handle) {
    ThreadDomain& domain = as_object(handle);
    const std::lock_guard lock(as_object(handle->context).lock());
    if (domain.uses > 0) {
        return refuse("ibv_dealloc_td", EBUSY, "the thread domain is used by {}",
                      fabric::counted(domain.uses, "parent domain"));
    }
    delete &domain;
    return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* handle, ibv_parent_domain_init_attr* attr) {
    constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                                     kParentDomainAllowUnprotected;
    Context& context = as_object(handle);
    if (check_domains("ibv_alloc_parent_domain", context) != 0) {
        return nullptr;
    }
    if (attr->pd == nullptr || (attr->comp_mask & ~kKnown) != 0) {
        refuse("ibv_alloc_parent_domain", EINVAL, "{}",
               attr->pd == nullptr ? "pd is missing" : "comp_mask has unknown bits");
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
