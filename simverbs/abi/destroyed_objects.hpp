// Recognises objects that are destroyed a second time, or used after that, where mistakes are to be
// named (SIMVERBS_WARN=1): their memory is kept for a while, so that no new object has the same
// address, and the call is named and refused with EINVAL. Without SIMVERBS_WARN it reads freed
// memory, as with any provider.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include <infiniband/verbs.h>

namespace simverbs::abi {

// An object that has ended, as the application knows it.
struct DestroyedObject {
    const void* handle;          // that the application holds
    const ibv_context* context;  // the same for a context
    std::string_view kind;       // "queue pair"
    std::uint32_t number;        // 0: it has none
    // ibv_poll_cq(), ibv_post_send() and their like find their functions in the object's context,
    // its first member.
    bool is_queue = false;
};

// Frees the storage of an object whose destructor has run: at once, or where mistakes are to be
// named when many others have ended after it.
void release_storage(const DestroyedObject& object, void* storage);

template <class T>
void destroy(T& object, const DestroyedObject& description) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    object.~T();
    release_storage(description, &object);
}

// Returns true if `handle` was destroyed before, and names that; `caller` is where the call came
// from. To be asked before anything of the object is read.
bool was_destroyed(const void* handle, const void* caller);
// The same of a call that only uses the object.
bool is_used_after_destroy(const void* handle, const void* caller);

}  // namespace simverbs::abi
