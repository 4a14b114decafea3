#include "simverbs/abi/open_contexts.hpp"

#include <mutex>
#include <set>

#include <pthread.h>

namespace simverbs::abi {
namespace {

struct OpenContexts {
    std::mutex lock;
    std::set<const ibv_context*> handles;
};

// Never destroyed: programs close devices in static destructors, too. The lock is held over a fork,
// so that a child finds it free.
OpenContexts& open_contexts() {
    static auto* const kContexts = [] {
        pthread_atfork([] { open_contexts().lock.lock(); }, [] { open_contexts().lock.unlock(); },
                       [] { open_contexts().lock.unlock(); });
        return new OpenContexts;
    }();
    return *kContexts;
}

}  // namespace

void add_open_context(const ibv_context* handle) {
    OpenContexts& open = open_contexts();
    const std::lock_guard lock(open.lock);
    open.handles.insert(handle);
}

bool take_open_context(const ibv_context* handle) {
    OpenContexts& open = open_contexts();
    const std::lock_guard lock(open.lock);
    return open.handles.erase(handle) > 0;
}

}  // namespace simverbs::abi
