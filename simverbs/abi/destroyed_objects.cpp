#include "simverbs/abi/destroyed_objects.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/abi/warnings.hpp"

namespace simverbs::abi {
namespace {

constexpr std::size_t kMostKept = 1024;

struct Kept {
    DestroyedObject object;
    void* storage;
};

struct KeptObjects {
    std::mutex lock;
    std::deque<Kept> objects;  // the oldest first
};

// Never destroyed: objects end in other static destructors, too.
KeptObjects& kept() {
    static auto* const kObjects = new KeptObjects;
    return *kObjects;
}

std::optional<DestroyedObject> find_destroyed(const void* handle) {
    const std::lock_guard lock(kept().lock);
    const auto found =
        std::find_if(kept().objects.begin(), kept().objects.end(),
                     [handle](const Kept& each) { return each.object.handle == handle; });
    return found == kept().objects.end() ? std::nullopt : std::optional(found->object);
}

// "; called from /home/ada/exercise+0x12ab", as addr2line takes it; "" where that is not known.
std::string place_of(const void* caller) {
    Dl_info info{};
    link_map* map = nullptr;
    if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
        return "";
    }
    // A return address lies behind the call.
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(caller) - map->l_addr - 1;
    return fmt::format("; called from {}+{:#x}", info.dli_fname, offset);
}

bool name_if_destroyed(Misuse misuse, const void* handle, const void* caller) {
    if (!warnings_wanted()) {
        return false;
    }
    const auto found = find_destroyed(handle);
    if (!found) {
        return false;
    }
    const std::string detail = fmt::format("{}{}", found->kind, place_of(caller));
    if (Context* const context = Process::current().find_open(found->context)) {
        name_misuse(*context, misuse, found->number, detail);
    } else {
        say_misuse(misuse, found->number, detail);
    }
    return true;
}

// The inline functions of <infiniband/verbs.h> call these for a queue that has ended.

int poll_destroyed(ibv_cq* cq, int /*entries*/, ibv_wc* /*wc*/) {
    is_used_after_destroy(cq, __builtin_return_address(0));
    return -1;
}
int arm_destroyed(ibv_cq* cq, int /*solicited*/) {
    is_used_after_destroy(cq, __builtin_return_address(0));
    return EINVAL;
}
int send_on_destroyed(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
    is_used_after_destroy(qp, __builtin_return_address(0));
    *bad = request;
    return EINVAL;
}
int receive_on_destroyed(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
    is_used_after_destroy(qp, __builtin_return_address(0));
    *bad = request;
    return EINVAL;
}
int share_on_destroyed(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
    is_used_after_destroy(srq, __builtin_return_address(0));
    *bad = request;
    return EINVAL;
}

ibv_context& context_of_destroyed() {
    static ibv_context context = [] {
        ibv_context made{};
        made.ops.poll_cq = poll_destroyed;
        made.ops.req_notify_cq = arm_destroyed;
        made.ops.post_send = send_on_destroyed;
        made.ops.post_recv = receive_on_destroyed;
        made.ops.post_srq_recv = share_on_destroyed;
        return made;
    }();
    return context;
}

}  // namespace

void release_storage(const DestroyedObject& object, void* storage) {
    if (!warnings_wanted()) {
        ::operator delete(storage);
        return;
    }
    if (object.is_queue) {
        *static_cast<ibv_context**>(const_cast<void*>(object.handle)) = &context_of_destroyed();
    }
    const std::lock_guard lock(kept().lock);
    kept().objects.push_back({object, storage});
    if (kept().objects.size() > kMostKept) {
        ::operator delete(kept().objects.front().storage);
        kept().objects.pop_front();
    }
}

bool was_destroyed(const void* handle, const void* caller) {
    return name_if_destroyed(Misuse::kDestroyedTwice, handle, caller);
}

bool is_used_after_destroy(const void* handle, const void* caller) {
    return name_if_destroyed(Misuse::kUsedAfterDestroy, handle, caller);
}

}  // namespace simverbs::abi
