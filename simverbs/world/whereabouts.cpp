#include "simverbs/world/whereabouts.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs {
namespace {

std::optional<std::string> read_file(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return std::nullopt;
    }
    std::array<char, 4096> buffer;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    close(fd);
    if (got < 0) {
        return std::nullopt;
    }
    return std::string(buffer.data(), static_cast<std::size_t>(got));
}

std::uint64_t number_after(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) {
        return 0;
    }
    const char* begin = text.data() + at + key.size();
    return std::strtoull(begin, nullptr, 10);
}

// The number of a system call and its arguments, from /proc/.../syscall.
struct SystemCall {
    long number = -1;
    std::array<std::uint64_t, 6> arguments{};
};

std::optional<SystemCall> parse(const std::string& text) {
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return std::nullopt;  // "running", or "-1 ..." outside any call
    }
    SystemCall call;
    char* next = nullptr;
    call.number = std::strtol(text.c_str(), &next, 10);
    for (std::uint64_t& argument : call.arguments) {
        argument = std::strtoull(next, &next, 16);
    }
    return call;
}

// Whether the call returns by itself after a time.
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

Whereabouts asleep_in(const std::string& task) {
    const auto text = read_file(task + "/syscall");
    const auto call = text ? parse(*text) : std::nullopt;
    if (!call) {
        return Whereabouts::kOnCpu;
    }
    return has_time_limit(*call) ? Whereabouts::kAsleepForTime : Whereabouts::kAsleep;
}

}  // namespace

ThreadLook look_at_thread(pid_t process, pid_t thread) {
    const std::string task = fmt::format("/proc/{}/task/{}", process, thread);
    const auto status = read_file(task + "/status");
    ThreadLook look;
    if (!status) {
        look.where = access(task.c_str(), F_OK) == 0 ? Whereabouts::kOnCpu : Whereabouts::kEnded;
        return look;
    }
    look.switches = number_after(*status, "\nvoluntary_ctxt_switches:") +
                    number_after(*status, "\nnonvoluntary_ctxt_switches:");
    if (const auto schedule = read_file(task + "/schedstat")) {
        look.cpu_ns = static_cast<std::int64_t>(number_after(*schedule, ""));
    }
    const std::size_t state = status->find("\nState:\t");
    const char letter = state == std::string::npos ? 'R' : (*status)[state + 8];
    switch (letter) {
        case 'S':
        case 'D':
            look.where = asleep_in(task);
            break;
        case 'T':
        case 't':
            look.where = Whereabouts::kStopped;
            break;
        case 'Z':
        case 'X':
            look.where = Whereabouts::kEnded;
            break;
        default:
            look.where = Whereabouts::kOnCpu;
    }
    return look;
}

}  // namespace simverbs
