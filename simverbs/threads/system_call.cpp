#include "simverbs/threads/system_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace simverbs {
namespace {

// So many descriptors of a call that waits for many are looked at.
constexpr std::size_t kMaxDescriptors = 64;

// The number of a system call and its arguments.
struct SystemCall {
    long number = -1;
    std::array<std::uint64_t, 6> arguments{};
};

std::optional<SystemCall> parse(std::string_view text) {
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return std::nullopt;  // "running", or "-1 ..." outside any call
    }
    SystemCall call;
    char* next = nullptr;
    call.number = std::strtol(text.data(), &next, 10);
    for (std::uint64_t& argument : call.arguments) {
        argument = std::strtoull(next, &next, 16);
    }
    return call;
}

// Returns true if the call returns by itself after a time.
bool has_time_limit(const SystemCall& call) {
    switch (call.number) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
            return true;
        case SYS_futex:
            return call.arguments[3] != 0;
#ifdef SYS_poll
        case SYS_poll:
            return static_cast<std::int32_t>(call.arguments[2]) >= 0;
        case SYS_select:
            return call.arguments[4] != 0;
        case SYS_epoll_wait:
#endif
        case SYS_epoll_pwait:
            return static_cast<std::int32_t>(call.arguments[3]) >= 0;
        case SYS_ppoll:
            return call.arguments[2] != 0;
        case SYS_pselect6:
            return call.arguments[4] != 0;
        case SYS_rt_sigtimedwait:
            return call.arguments[2] != 0;
        default:
            return false;
    }
}

bool waits_for_signal(const SystemCall& call) {
    switch (call.number) {
        case SYS_rt_sigtimedwait:
        case SYS_rt_sigsuspend:
#ifdef SYS_pause
        case SYS_pause:
#endif
            return true;
        default:
            return false;
    }
}

bool waits_for_child(const SystemCall& call) {
    return call.number == SYS_wait4 || call.number == SYS_waitid;
}

bool waits_for_no_descriptor(const SystemCall& call) {
    switch (call.number) {
        case SYS_futex:
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
            return true;
        default:
            return waits_for_signal(call) || waits_for_child(call);
    }
}

std::vector<int> of_poll(pid_t process, const SystemCall& call) {
    std::vector<pollfd> looks(std::min<std::size_t>(call.arguments[1], kMaxDescriptors));
    const iovec local{looks.data(), looks.size() * sizeof(pollfd)};
    const iovec remote{reinterpret_cast<void*>(call.arguments[0]), local.iov_len};
    std::vector<int> descriptors;
    if (process_vm_readv(process, &local, 1, &remote, 1, 0) ==
        static_cast<ssize_t>(local.iov_len)) {
        for (const pollfd& look : looks) {
            descriptors.push_back(look.fd);
        }
    }
    return descriptors;
}

std::vector<int> of_epoll(pid_t process, const SystemCall& call) {
    std::array<char, 8192> buffer;
    const int file = open(
        fmt::format("/proc/{}/fdinfo/{}", process, static_cast<std::int32_t>(call.arguments[0]))
            .c_str(),
        O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, buffer.data(), buffer.size());
    if (file >= 0) {
        close(file);
    }
    const std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    constexpr std::string_view kMember = "tfd:";
    std::vector<int> descriptors;
    for (std::size_t at = text.find(kMember);
         at != std::string_view::npos && descriptors.size() < kMaxDescriptors;
         at = text.find(kMember, at + 1)) {
        int& descriptor = descriptors.emplace_back(0);
        const char* number = text.data() + at + kMember.size();
        while (*number == ' ') {
            ++number;
        }
        std::from_chars(number, text.data() + text.size(), descriptor);
    }
    return descriptors;
}

std::vector<int> descriptors_of(pid_t process, const SystemCall& call) {
    switch (call.number) {
        case SYS_read:
        case SYS_readv:
            return {static_cast<std::int32_t>(call.arguments[0])};
#ifdef SYS_poll
        case SYS_poll:
#endif
        case SYS_ppoll:
            return of_poll(process, call);
#ifdef SYS_epoll_wait
        case SYS_epoll_wait:
#endif
        case SYS_epoll_pwait:
            return of_epoll(process, call);
        default:
            return {};
    }
}

bool is_of_kind(pid_t process, int descriptor, std::string_view kind) {
    std::array<char, 64> target;
    const ssize_t length = readlink(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(),
                                    target.data(), target.size());
    return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == kind;
}

}  // namespace

bool find_wake_ups(pid_t process, std::string_view text, WakeUps& found) {
    const std::optional<SystemCall> call = parse(text);
    if (!call) {
        return false;
    }
    found.by_time = has_time_limit(*call);
    found.by_signal = waits_for_signal(*call);
    found.by_child = waits_for_child(*call);
    found.by_descriptor = !waits_for_no_descriptor(*call);
    if (found.by_descriptor && !found.by_time) {
        const std::vector<int> descriptors = descriptors_of(process, *call);
        found.by_time = std::any_of(descriptors.begin(), descriptors.end(), [&](int descriptor) {
            return is_of_kind(process, descriptor, "anon_inode:[timerfd]");
        });
        found.by_signal = descriptors.size() == 1 &&
                          is_of_kind(process, descriptors.front(), "anon_inode:[signalfd]");
    }
    return true;
}

}  // namespace simverbs
