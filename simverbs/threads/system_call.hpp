// The events that end the system call that a thread sleeps in, from what /proc says of it.
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/types.h>

namespace simverbs {

struct WakeUps {
    bool by_time = false;        // a time limit of the call, or a timer among its descriptors
    bool by_signal = false;      // the call waits for nothing but a signal
    bool by_descriptor = false;  // something that is written to a descriptor
    bool by_child = false;       // the call waits for nothing but the end of a child process
};

// `text`: /proc/PID/task/TID/syscall of a thread of that process. False: the thread is in no call.
bool find_wake_ups(pid_t process, std::string_view text, WakeUps& found);

}  // namespace simverbs
