#include "fabric/core/limited_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fabric {
namespace {

constexpr auto kTimeForReport = std::chrono::milliseconds(500);

// Returns false if the time is over before the process ends.
bool ends_within(int process, std::chrono::milliseconds limit) {
    pollfd wanted{process, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + limit;
    int ready = -1;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        ready = poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

}  // namespace

bool end_by(pid_t process, std::chrono::milliseconds limit) {
    if (limit == kNoTimeLimit) {
        return false;
    }
    // The header of glibc 2.36 declares no function for C++.
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (descriptor < 0) {
        return false;
    }
    const bool is_late = !ends_within(descriptor, limit);
    if (is_late) {
        kill(process, SIGUSR2);
        ends_within(descriptor, kTimeForReport);
        kill(process, SIGKILL);
    }
    close(descriptor);
    return is_late;
}

}  // namespace fabric
