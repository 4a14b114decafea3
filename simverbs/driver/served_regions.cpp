#include "simverbs/driver/served_regions.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/driver/process_maps.hpp"

namespace simverbs::driver {
namespace {

constexpr std::uint64_t kPageSize = 4096;
// To share a region and take it back costs about as much as three messages of its size without
// that, so a program that registers again and again does not go on sharing.
constexpr std::uint64_t kMostBytesEver = std::uint64_t{256} << 20U;
// The calling thread may write to that much of its stack while it waits for the server.
constexpr std::uint64_t kStackBytes = 256 * std::uint64_t{1024};

// This process has shared memory: a fork has something to do.
std::atomic<bool> g_has_shared{false};

bool is_only_thread(unsigned own_threads) {
    struct stat tasks {};  // "." and ".." are links, too
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 2 + 1 + own_threads;
}

bool is_ours(const Mapping& mapping) {
    static constexpr std::string_view kStart = "/memfd:";
    const std::string_view name(mapping.name.data());
    return mapping.is_shared && name.substr(0, kStart.size()) == kStart &&
           name.substr(kStart.size(), std::strlen(kRegionMemoryName)) == kRegionMemoryName;
}

// The heap, or anonymous memory that was mapped, with a name of its program's (Linux 5.17) or none.
bool is_ordinary(const Mapping& mapping) {
    const std::string_view name(mapping.name.data());
    return mapping.readable && mapping.writable && !mapping.is_shared && mapping.inode == 0 &&
           (name.empty() || name == "[heap]" || name.substr(0, 6) == "[anon:");
}

bool may_be_shared(const PageRange& pages) {
    ProcessMaps maps;
    std::uint64_t reached = pages.begin;
    while (reached < pages.end) {
        const std::optional<Mapping> mapping = maps.at_or_after(reached);
        if (!mapping || mapping->from > reached || !(is_ordinary(*mapping) || is_ours(*mapping))) {
            return false;
        }
        reached = mapping->to;
    }
    return true;
}

// Copies what is shared of [begin, end), and may be read, to memory of this process's own, and puts
// it there.
void make_private(std::uint64_t begin, std::uint64_t end) {
    ProcessMaps maps;
    for (std::uint64_t at = begin; at < end;) {
        const std::optional<Mapping> mapping = maps.at_or_after(at);
        if (!mapping || mapping->from >= end) {
            return;
        }
        const std::uint64_t from = std::max(mapping->from, begin);
        at = std::min(mapping->to, end);
        if (!is_ours(*mapping) || !mapping->readable) {
            continue;
        }
        const std::uint64_t bytes = at - from;
        void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (copy == MAP_FAILED) {
            continue;  // it works as it is
        }
        void* const place = reinterpret_cast<void*>(from);
        std::memcpy(copy, place, bytes);
        if (!mapping->writable) {
            mprotect(copy, bytes, PROT_READ);
        }
        if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place) {
            munmap(copy, bytes);
        }
    }
}

// A forked child has its own memory before its parent goes on: it writes a byte then. Where it ends
// before that, or there is none, the parent reads the end of the pipe.
constinit thread_local int t_child_is_ready[2] = {-1, -1};

void before_fork() {
    if (!g_has_shared || pipe2(t_child_is_ready, O_CLOEXEC) != 0) {
        t_child_is_ready[0] = t_child_is_ready[1] = -1;
    }
}

void after_fork_in_child() {
    if (!g_has_shared.exchange(false)) {
        return;
    }
    make_private(0, std::numeric_limits<std::uint64_t>::max());
    if (t_child_is_ready[1] >= 0) {
        const char ready = 1;
        [[maybe_unused]] const ssize_t written = write(t_child_is_ready[1], &ready, 1);
        close(t_child_is_ready[0]);
        close(t_child_is_ready[1]);
    }
}

void after_fork_in_parent() {
    if (t_child_is_ready[0] < 0) {
        return;
    }
    const int error = errno;
    close(t_child_is_ready[1]);
    char ready = 0;
    while (read(t_child_is_ready[0], &ready, 1) < 0 && errno == EINTR) {
    }
    close(t_child_is_ready[0]);
    errno = error;
}

}  // namespace

// Some of the pages of another region are among `pages`, but not all of them.
bool ServedRegions::splits_another(const PageRange& pages) const {
    return std::any_of(pages_.begin(), pages_.end(), [&pages](const auto& entry) {
        const PageRange& other = entry.second;
        return other.begin < pages.end && pages.begin < other.end &&
               !(other.begin >= pages.begin && other.end <= pages.end);
    });
}

PageRange ServedRegions::shareable(std::uint64_t address, std::uint64_t length,
                                   unsigned own_threads) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - kPageSize;
    if (address > most || length > most - address) {
        return {};
    }
    const PageRange pages{(address + kPageSize - 1) & ~(kPageSize - 1),
                          (address + length) & ~(kPageSize - 1)};
    const auto stack = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
    const bool has_stack = pages.begin < stack + kStackBytes && stack < pages.end + kStackBytes;
    if (pages.begin >= pages.end || has_stack || pages.end - pages.begin > kMostSharedBytes ||
        bytes_mapped_ + (pages.end - pages.begin) > kMostBytesEver || splits_another(pages) ||
        !is_only_thread(own_threads) || !may_be_shared(pages)) {
        return {};
    }
    static std::once_flag prepared;
    std::call_once(prepared,
                   [] { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
    return pages;
}

bool ServedRegions::map(std::uint32_t context, std::uint32_t handle, const PageRange& pages,
                        int descriptor) {
    void* const place = reinterpret_cast<void*>(pages.begin);
    const std::uint64_t bytes = pages.end - pages.begin;
    const bool mapped = mmap(place, bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED | MAP_POPULATE, descriptor, 0) == place;
    close(descriptor);
    if (mapped) {
        std::erase_if(pages_, [&pages](const auto& other) {
            return other.second.begin >= pages.begin && other.second.end <= pages.end;
        });
        pages_[{context, handle}] = pages;
        bytes_mapped_ += bytes;
        g_has_shared = true;
    }
    return mapped;
}

// A process that has calls filtered may be killed for one that its filter does not know.
int ServedRegions::take_unmap_watch() {
    if (std::exchange(watch_was_taken_, true) || prctl(PR_GET_SECCOMP) != 0) {
        return -1;
    }
    const auto watch =
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    uffdio_api asked{};
    asked.api = UFFD_API;
    asked.features = UFFD_FEATURE_EVENT_UNMAP;
    if (watch >= 0 && ioctl(watch, UFFDIO_API, &asked) != 0) {
        close(watch);
        return -1;
    }
    return watch;
}

void ServedRegions::take_back(std::uint32_t context, std::uint32_t handle, unsigned own_threads) {
    const auto found = pages_.find({context, handle});
    if (found == pages_.end()) {
        return;
    }
    if (is_only_thread(own_threads)) {
        make_private(found->second.begin, found->second.end);
    }
    pages_.erase(found);
}

void ServedRegions::take_back_all_of(std::uint32_t context, unsigned own_threads) {
    while (true) {
        const auto found = pages_.lower_bound({context, 0});
        if (found == pages_.end() || found->first.first != context) {
            return;
        }
        take_back(context, found->first.second, own_threads);
    }
}

}  // namespace simverbs::driver
