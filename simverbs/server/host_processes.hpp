// The processes on the hosts of a served world, as faults stop and end them: by the signals
// SIGSTOP, SIGCONT and SIGKILL. Processes are those that have a device open, of verbs or of
// /dev/infiniband, at that moment.
//
// A process that is stopped goes on when its time is over, and when whoever watches it here ends;
// not when this process is killed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "simverbs/faults/host_programs.hpp"
#include "simverbs/server/device_files.hpp"
#include "simverbs/server/remote_client.hpp"

namespace simverbs {

class HostProcesses final : public HostPrograms {
  public:
    using Clients = std::vector<std::unique_ptr<RemoteClient>>;

    // All outlive it.
    HostProcesses(Simulation& simulation, const Clients& clients, const DeviceFiles& devices);
    ~HostProcesses();

    // Returns true if a fault has it stopped, or is about to: it is to be left alone.
    [[nodiscard]] bool holds(pid_t process) const;
    [[nodiscard]] std::vector<pid_t> held() const;
    // Returns true if the kernel has stopped every thread of each that is held.
    bool have_stopped();
    void let_all_go_on();

    // Kills those whose end has come, and waits until they are gone, with all that they had open.
    // Returns true if there were any since the last call.
    bool end_killed();

  private:
    // A descriptor of a process: signals through it reach no other.
    class Handle {
      public:
        Handle() = default;
        explicit Handle(int descriptor) : descriptor_(descriptor) {}
        Handle(Handle&& other) noexcept;
        Handle& operator=(Handle&& other) noexcept;
        ~Handle();
        [[nodiscard]] int descriptor() const { return descriptor_; }
        // An errno.
        [[nodiscard]] int signal(int number) const;

      private:
        int descriptor_ = -1;
    };
    struct Process {
        pid_t id;
        std::string host;
        Handle handle;
        bool has_stopped = false;
    };

    std::string_view halt(const std::string& host) override;
    void resume(const std::string& host) override;
    std::string_view end(const std::string& host, const std::string& why) override;
    // Those of a host, once each; why they cannot be signalled, or "".
    std::string_view find(const std::string& host, std::vector<Process>& found) const;
    void go_on(const Process& process);

    const Clients& clients_;
    const DeviceFiles& devices_;
    std::vector<Process> held_;
    std::vector<Process> doomed_;
};

}  // namespace simverbs
