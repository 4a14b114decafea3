#include "simverbs/server/host_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/server/thread_states.hpp"

namespace simverbs {
namespace {

// How long the world stands still for a process that is being killed: one that is busy in the
// kernel ends when that lets it.
constexpr int kEndsWithinMs = 1000;

bool is_over(int descriptor) {
    pollfd ended{descriptor, POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
}

}  // namespace

HostProcesses::Handle::Handle(Handle&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

HostProcesses::Handle& HostProcesses::Handle::operator=(Handle&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

HostProcesses::Handle::~Handle() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

int HostProcesses::Handle::signal(int number) const {
    return syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0) == 0 ? 0 : errno;
}

HostProcesses::HostProcesses(Simulation& simulation, const Clients& clients,
                             const DeviceFiles& devices)
    : HostPrograms(simulation), clients_(clients), devices_(devices) {
    HostPrograms& programs = *this;
    simulation.set_programs(&programs);
}

HostProcesses::~HostProcesses() {
    let_all_go_on();
}

bool HostProcesses::holds(pid_t process) const {
    return std::any_of(held_.begin(), held_.end(),
                       [process](const Process& each) { return each.id == process; });
}

std::vector<pid_t> HostProcesses::held() const {
    std::vector<pid_t> all;
    for (const Process& process : held_) {
        all.push_back(process.id);
    }
    return all;
}

bool HostProcesses::have_stopped() {
    for (Process& process : held_) {
        process.has_stopped = process.has_stopped || is_over(process.handle.descriptor()) ||
                              all_threads_are(kStoppedStates, process.id);
        if (!process.has_stopped) {
            return false;
        }
    }
    return true;
}

// Its threads run from now on, until a look finds otherwise.
void HostProcesses::go_on(const Process& process) {
    static_cast<void>(process.handle.signal(SIGCONT));
    for (const auto& client : clients_) {
        for (std::uint32_t actor = 0;
             client->process() == process.id && actor < client->actor_count(); ++actor) {
            client->watch(actor).forget();
        }
    }
}

void HostProcesses::let_all_go_on() {
    for (const Process& process : held_) {
        go_on(process);
    }
    held_.clear();
}

std::string_view HostProcesses::find(const std::string& host, std::vector<Process>& found) const {
    std::string_view reason;
    const auto add = [&](pid_t id, Handle handle) {
        const bool known = std::any_of(found.begin(), found.end(),
                                       [id](const Process& each) { return each.id == id; });
        if (known || handle.descriptor() < 0 || is_over(handle.descriptor())) {
            return;
        }
        if (id == getpid()) {
            reason = "a program of it runs in the server's process";
        } else if (handle.signal(0) == EPERM) {
            reason = "a process of it belongs to somebody else";
        }
        found.push_back({id, host, std::move(handle)});
    };
    for (const auto& client : clients_) {
        if (client->host() == host) {
            add(client->process(), Handle(fcntl(client->process_descriptor(), F_DUPFD_CLOEXEC, 0)));
        }
    }
    for (const pid_t process : devices_.processes_of(host)) {
        add(process, Handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0))));
    }
    return found.empty() ? "no process of it has a device open" : reason;
}

std::string_view HostProcesses::halt(const std::string& host) {
    std::vector<Process> found;
    if (const std::string_view reason = find(host, found); !reason.empty()) {
        return reason;
    }
    for (const auto& client : clients_) {
        if (client->host() == host && client->process_memory().is_copied_by_client()) {
            return "a process of it copies for the server, which may not reach its memory";
        }
    }
    for (Process& process : found) {
        static_cast<void>(process.handle.signal(SIGSTOP));
        held_.push_back(std::move(process));
    }
    return {};
}

void HostProcesses::resume(const std::string& host) {
    const auto of_host = std::stable_partition(
        held_.begin(), held_.end(), [&host](const Process& each) { return each.host != host; });
    std::for_each(of_host, held_.end(), [this](const Process& each) { go_on(each); });
    held_.erase(of_host, held_.end());
}

// Their open objects are dead at once, so that nothing depends on how soon the kernel ends them.
// Who is stopped never goes on.
std::string_view HostProcesses::end(const std::string& host, const std::string& /*why*/) {
    std::vector<Process> found;
    if (const std::string_view reason = find(host, found); !reason.empty()) {
        return reason;
    }
    for (const auto& client : clients_) {
        if (client->host() == host) {
            client->abandon();
        }
    }
    std::erase_if(held_, [&found](const Process& held) {
        return std::any_of(found.begin(), found.end(),
                           [&held](const Process& each) { return each.id == held.id; });
    });
    std::move(found.begin(), found.end(), std::back_inserter(doomed_));
    return {};
}

bool HostProcesses::end_killed() {
    if (doomed_.empty()) {
        return false;
    }
    for (const Process& process : doomed_) {
        static_cast<void>(process.handle.signal(SIGKILL));
    }
    for (const Process& process : doomed_) {
        pollfd ended{process.handle.descriptor(), POLLIN, 0};
        poll(&ended, 1, kEndsWithinMs);
    }
    doomed_.clear();
    return true;
}

}  // namespace simverbs
