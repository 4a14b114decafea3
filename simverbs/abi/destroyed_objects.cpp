#include "simverbs/abi/destroyed_objects.hpp"

#include <algorithm>
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

}  // namespace

void release_storage(const DestroyedObject& object, void* storage) {
    if (!warnings_wanted()) {
        ::operator delete(storage);
        return;
    }
    const std::lock_guard lock(kept().lock);
    kept().objects.push_back({object, storage});
    if (kept().objects.size() > kMostKept) {
        ::operator delete(kept().objects.front().storage);
        kept().objects.pop_front();
    }
}

bool was_destroyed(const void* handle, const void* caller) {
    if (!warnings_wanted()) {
        return false;
    }
    const auto found = find_destroyed(handle);
    if (!found) {
        return false;
    }
    const std::string detail = fmt::format("{}{}", found->kind, place_of(caller));
    if (Context* const context = Process::current().find_open(found->context)) {
        name_misuse(*context, Misuse::kDestroyedTwice, found->number, detail);
    } else {
        say_misuse(Misuse::kDestroyedTwice, found->number, detail);
    }
    return true;
}

}  // namespace simverbs::abi
