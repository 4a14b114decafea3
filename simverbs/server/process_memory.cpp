#include "simverbs/server/process_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simverbs/server/thread_states.hpp"
#include "simverbs/threads/thread_watch.hpp"

namespace simverbs {
namespace {

// Looks at a client that copies on request before it is asked whether it still lives.
constexpr int kLooksPerCheck = 256;
// An answer within this time is no late one.
constexpr std::int64_t kPromptNs = 2'000'000;
constexpr std::int64_t kRegainShare = 50;
// Between two questions whether who has not answered sleeps.
constexpr std::int64_t kAskGapNs = 1'000'000;
// One answer, if this thread has run for a while meanwhile; and on a machine that is so busy that
// neither side runs.
constexpr std::int64_t kAnswerNs = 250'000'000;
constexpr std::int64_t kRanMeanwhileNs = 20'000'000;
constexpr std::int64_t kAnswerWhenBusyNs = 1'000'000'000;
// How old the answer may be that a client is still there. The kernel gives a program that calls
// exec its new memory a little before it closes its socket, so no look is exact.
constexpr std::int64_t kLookNs = 20'000;
// The same where memory is written to that a next program does not have.
constexpr std::int64_t kLookAtSharedNs = 100'000;

std::int64_t thread_cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

bool ProcessMemory::read(std::uint64_t address, std::byte* bytes, std::size_t length) {
    if (gone_) {
        return false;
    }
    if (!by_client_) {
        return by_kernel(false, address, bytes, length);
    }
    for (std::size_t done = 0; done < length;) {
        const std::size_t part = std::min<std::size_t>(length - done, area_.copied.size());
        if (!ask_client(CopyWord::kRead, address + done, static_cast<std::uint32_t>(part))) {
            return false;
        }
        std::memcpy(bytes + done, area_.copied.data(), part);
        done += part;
    }
    return true;
}

// Nothing is written to a process that has become another program since.
bool ProcessMemory::write(std::uint64_t address, const std::byte* bytes, std::size_t length) {
    if (!is_there(kLookNs)) {
        return false;
    }
    if (!by_client_) {
        return by_kernel(true, address, const_cast<std::byte*>(bytes), length);
    }
    for (std::size_t done = 0; done < length;) {
        const std::size_t part = std::min<std::size_t>(length - done, area_.copied.size());
        std::memcpy(area_.copied.data(), bytes + done, part);
        if (!ask_client(CopyWord::kWrite, address + done, static_cast<std::uint32_t>(part))) {
            return false;
        }
        done += part;
    }
    return true;
}

std::byte* ProcessMemory::reach(std::uint64_t address, std::uint64_t length) {
    SharedRegions::Region* const region = shared_.find(address, length);
    if (region == nullptr || gone_ || !is_mapped_still(*region)) {
        return nullptr;
    }
    region->moved += length;
    return region->segment->base() + (address - region->pages.begin);
}

// The program may have unmapped it meanwhile. Where that is not reported, a look costs as much as
// the copy of a packet.
bool ProcessMemory::is_mapped_still(SharedRegions::Region& region) {
    if (region.seen == acts_) {
        return true;
    }
    if (shared_.is_as_watched(region)) {
        region.seen = is_there(kLookAtSharedNs) ? acts_ : SharedRegions::kNotSeen;
    } else {
        shared_.watch(region);  // first: between the two nothing goes unnoticed
        region.seen = has_ends(region.pages) ? acts_ : SharedRegions::kNotSeen;
        if (region.seen == SharedRegions::kNotSeen) {
            shared_.stop_watching(region);
        }
    }
    return region.seen == acts_;
}

bool ProcessMemory::has_ends(const PageRange& pages) {
    std::array<std::byte, 2> bytes{};
    if (by_client_) {
        return read(pages.begin, bytes.data(), 1) && read(pages.end - 1, bytes.data(), 1);
    }
    const iovec local{bytes.data(), bytes.size()};
    const std::array<iovec, 2> remote{
        {{reinterpret_cast<void*>(pages.begin), 1}, {reinterpret_cast<void*>(pages.end - 1), 1}}};
    if (process_vm_readv(process_, &local, 1, remote.data(), remote.size(), 0) == 2) {
        return true;
    }
    look();
    return false;
}

bool ProcessMemory::by_kernel(bool write, std::uint64_t address, std::byte* bytes,
                              std::size_t length) {
    const iovec local{bytes, length};
    const iovec remote{reinterpret_cast<void*>(address), length};
    const ssize_t done = write ? process_vm_writev(process_, &local, 1, &remote, 1, 0)
                               : process_vm_readv(process_, &local, 1, &remote, 1, 0);
    if (done == static_cast<ssize_t>(length)) {
        return true;
    }
    // A process that ends loses its memory first; then its socket.
    gone_ = gone_ || (done < 0 && errno == ESRCH);
    look();
    return false;
}

bool ProcessMemory::is_there(std::int64_t interval_ns) {
    const std::int64_t now = wall_ns();
    if (!gone_ && now - looked_at_ns_ >= interval_ns) {
        looked_at_ns_ = now;
        look();
    }
    return !gone_;
}

void ProcessMemory::look() {
    pollfd socket{socket_, POLLRDHUP, 0};
    gone_ = gone_ ||
            (poll(&socket, 1, 0) > 0 && (socket.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

bool ProcessMemory::probe(std::uint64_t address, std::uint64_t value) {
    std::uint64_t found = 0;
    return read(address, reinterpret_cast<std::byte*>(&found), sizeof found) && found == value;
}

bool ProcessMemory::ask_client(CopyWord what, std::uint64_t address, std::uint32_t length) {
    CopyRequest& request = area_.copy;
    request.address = address;
    request.length = length;
    request.state.store(static_cast<std::uint32_t>(what), std::memory_order_release);
    syscall(SYS_futex, &request.state, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    if (!await_answer()) {
        return false;
    }
    const auto state = static_cast<CopyWord>(request.state.load(std::memory_order_acquire));
    request.state.store(static_cast<std::uint32_t>(CopyWord::kIdle));
    return state == CopyWord::kDone;
}

bool ProcessMemory::has_answered() const {
    const auto state = static_cast<CopyWord>(area_.copy.state.load(std::memory_order_acquire));
    return state == CopyWord::kDone || state == CopyWord::kFault;
}

// Counts what this thread spends on waiting, not what passes on the wall: a client that is willing
// and finds no free processor takes it from this thread, which yields. One that sleeps is not
// willing.
bool ProcessMemory::await_answer() {
    // Each look may take as long as others run whom this thread yields to.
    const auto answers_at_once = [this] {
        const std::int64_t until = wall_ns() + kAskGapNs;
        for (int looks = 0; !has_answered() && looks < kLooksPerCheck; ++looks) {
            sched_yield();
            if (wall_ns() >= until) {
                break;
            }
        }
        return has_answered();
    };
    const std::int64_t began = thread_cpu_ns();
    const std::int64_t began_on_wall = wall_ns();
    if (answers_at_once()) {
        return true;
    }
    patience_ns_ =
        std::min(kPatienceNs, patience_ns_ + (began_on_wall - answered_late_at_ns_) / kRegainShare);
    std::int64_t slept = 0;
    std::int64_t asked_at = wall_ns() + kPromptNs;  // whether it sleeps
    while (true) {
        const bool answered = answers_at_once();
        const std::int64_t now = wall_ns();
        if (!answered && now - asked_at >= kAskGapNs) {
            slept += all_threads_are(kSleepingStates, process_) ? now - asked_at : 0;
            asked_at = now;
        }
        const std::int64_t late =
            std::max({std::int64_t{0}, thread_cpu_ns() - began - kPromptNs, slept});
        if (answered) {
            patience_ns_ -= late;
            answered_late_at_ns_ = now;
            return true;
        }
        look();
        const std::int64_t passed = now - began_on_wall;
        if (!gone_ && (late > patience_ns_ || (passed > kAnswerNs && late > kRanMeanwhileNs) ||
                       passed > kAnswerWhenBusyNs)) {
            shutdown(socket_, SHUT_RDWR);  // it is not to disturb the others: its verbs say EIO
            gone_ = too_slow_ = true;
        }
        if (gone_) {
            return false;
        }
    }
}

}  // namespace simverbs
