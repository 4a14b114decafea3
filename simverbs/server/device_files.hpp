// The server's side of /sys/class/infiniband* and /dev/infiniband (simverbs/devices is the
// program's): attributes read, devices opened, and the processes that have them open as actors,
// since time does not jump past one that is about to read a datagram or an event.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "simverbs/host_rdma_cm/host_rdma_cm.hpp"
#include "simverbs/server/rdma_cm_file.hpp"
#include "simverbs/server/rdma_netlink_file.hpp"
#include "simverbs/server/umad_file.hpp"
#include "simverbs/server/watched_process.hpp"
#include "simverbs/server/world_place.hpp"
#include "simverbs/world/device_tree.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class DeviceFiles {
  public:
    // The tree of a host is made at `place` when it is first needed.
    DeviceFiles(Simulation& simulation, const WorldPlace& place);
    ~DeviceFiles();
    DeviceFiles(const DeviceFiles&) = delete;
    DeviceFiles& operator=(const DeviceFiles&) = delete;

    PathReply tree(const DeviceRequest& request);
    AttributeReply read(const DeviceRequest& request);
    // On success the connection is the file's own, and `descriptor` is the program's end, to be
    // sent and closed by the caller.
    OpenDeviceReply open(const DeviceRequest& request, int connection, pid_t process,
                         int& descriptor);

    // Another process that has an open file of rdma_cm, after fork(2) say. On success the
    // connection is the file's own.
    OpenDeviceReply share(const DeviceRequest& request, int connection, pid_t process);

    // Sockets whose readiness is to be told by serve(): of files that have come since the last
    // call.
    std::vector<int> take_new_sockets();
    // False: it is no socket of an open file.
    bool serve(int socket);
    // Sends datagrams and executes commands that programs have written; in the order of hosts, then
    // of opening. Whether there was anything.
    bool take_written();
    // Returns how many commands of rdma_cm have been executed that did something.
    [[nodiscard]] std::uint64_t commands_executed() const { return commands_executed_; }
    // Takes the processes whose commands of rdma_cm have been executed since the last call.
    std::set<pid_t> take_commanders() { return std::exchange(commanders_, {}); }
    // Returns true if two threads or processes of one host have given commands to rdma_cm at once.
    [[nodiscard]] bool commands_raced() const { return commands_raced_; }
    // Hands over what sockets had no room for, and closes files that programs have closed.
    void tidy();

    [[nodiscard]] bool empty() const { return files_.empty(); }
    [[nodiscard]] std::uint64_t deliveries() const;
    // Returns true if nobody is about to act on what it was sent: threads in `actors` (ascending)
    // are judged elsewhere. Programs that do not read datagrams hold a world in canonical order for
    // 5 ms at most, those that do not read events of rdma_cm in any; those that are `held` do not.
    bool everyone_waits(const std::vector<pid_t>& actors, const std::vector<pid_t>& held,
                        bool canonical, ThreadLook& look);
    // That have a device of the host open; one may be named several times.
    [[nodiscard]] std::vector<pid_t> processes_of(const std::string& host) const;
    // The processes that have a device of the host open, each once, in the order of their numbers.
    [[nodiscard]] std::set<pid_t> users_of(const std::string& host) const;
    // Adds every process that has a device open.
    void add_processes(std::vector<pid_t>& processes) const;

  private:
    [[nodiscard]] std::string names_of_hosts(std::size_t most) const;
    // A connection on which a process calls ioctl(2) of umad and write(2) of rdma_cm.
    struct Control {
        int socket;
        pid_t process;
        bool is_readable = false;
    };
    struct OpenFile {
        std::uint64_t number = 0;
        pid_t process = 0;  // that opened it
        std::size_t hca = 0;
        std::vector<Control> controls;
        int socket = -1;  // of rdma_cm a pipe
        std::unique_ptr<UmadFile> umad;
        std::unique_ptr<RdmaCmFile> rdma_cm;
        std::unique_ptr<RdmaNetlinkFile> netlink;
        fabric::ManagementPort* sm_of = nullptr;  // held as /dev/infiniband/issmN
        bool readable = false;
        bool closed = false;
        std::int64_t unread_since_ns = 0;
    };

    DeviceTree* tree_of(const std::string& host);
    int open_device(const DeviceFile& device, int flags, OpenFile& file, int& descriptor);
    int open_rdma_cm(const DeviceFile& device, OpenFile& file, int& descriptor);
    int open_netlink(const std::string& host, OpenFile& file, int& descriptor) const;
    // Takes what a program has written; false: it has closed the file.
    bool take_written(OpenFile& file);
    [[nodiscard]] std::vector<NetlinkBytes> answer_netlink(
        const std::string& host, std::span<const std::byte> written) const;
    static int make_socket_pair(OpenFile& file, int& descriptor);
    // False: it has closed.
    bool answer(OpenFile& file, const Control& control);
    bool execute_command(OpenFile& file, const Control& control);
    bool execute_commands();
    static void end_control(OpenFile& file, int socket);
    [[nodiscard]] OpenFile* find_rdma_cm(std::uint64_t number) const;
    [[nodiscard]] static bool is_used_by(const OpenFile& file, pid_t process);
    void close_file(OpenFile& file);
    void put_on_disk(const DeviceTree& tree, const std::string& host) const;

    Simulation& simulation_;
    const WorldPlace& place_;
    std::map<std::string, std::unique_ptr<DeviceTree>> trees_;
    std::unique_ptr<rdma_cm::RdmaCmHosts> rdma_cm_;  // when a program first asks for it
    std::uint64_t last_file_ = 0;
    std::vector<std::byte> command_;  // kept for its storage
    std::vector<std::unique_ptr<OpenFile>> files_;
    std::map<pid_t, WatchedProcess> processes_;
    std::vector<int> new_sockets_;
    std::uint64_t deliveries_of_closed_ = 0;
    std::uint64_t commands_executed_ = 0;
    std::set<pid_t> commanders_;
    bool commands_raced_ = false;
};

}  // namespace simverbs
