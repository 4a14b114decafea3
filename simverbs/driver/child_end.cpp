#include "simverbs/driver/child_end.hpp"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simverbs::driver {

// The header of glibc 2.36 declares no function for C++.
ChildEnd::ChildEnd(pid_t child)
    : child_(child), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, child, 0))) {}

ChildEnd::~ChildEnd() {
    if (can_wait()) {
        close(descriptor_);
    }
}

bool ChildEnd::comes_within(std::chrono::milliseconds limit) const {
    pollfd wanted{descriptor_, POLLIN, 0};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
    sigset_t all;
    sigfillset(&all);
    return ppoll(&wanted, 1, &time, &all) != 0;
}

int ChildEnd::status() const {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

}  // namespace simverbs::driver
