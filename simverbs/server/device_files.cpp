#include "simverbs/server/device_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/protocol/trusted_socket.hpp"
#include "simverbs/server/rdma_netlink.hpp"

namespace simverbs {
namespace {

// Each takes two or three descriptors of the server.
constexpr std::size_t kMaxFiles = 256;
// How long time waits for a program that has not read what has come for it. Programs that poll
// their completion queues look for events of rdma_cm now and then: libfabric every 10 ms.
constexpr std::int64_t kReadWithinNs = 5'000'000;
constexpr std::int64_t kTakeEventWithinNs = 100'000'000;

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
    return {field, strnlen(field, N)};
}

}  // namespace

DeviceFiles::DeviceFiles(Simulation& simulation, const WorldPlace& place)
    : simulation_(simulation), place_(place) {}

DeviceFiles::~DeviceFiles() {
    for (const auto& file : files_) {
        close_file(*file);
    }
}

DeviceTree* DeviceFiles::tree_of(const std::string& host) {
    if (const auto known = trees_.find(host); known != trees_.end()) {
        return known->second.get();
    }
    const std::vector<std::size_t> hcas = simulation_.hcas_of(host);
    if (hcas.empty()) {
        return nullptr;
    }
    auto tree = std::make_unique<DeviceTree>(simulation_, hcas);
    put_on_disk(*tree, host);
    return trees_.emplace(host, std::move(tree)).first->second.get();
}

// Attributes are empty files: a look at one is answered by the server. Devices are links to a
// character device, which is what a look at them shows.
void DeviceFiles::put_on_disk(const DeviceTree& tree, const std::string& host) const {
    tree.for_each_link([&](const std::string& path, const std::string& target) {
        place_.make_link(host + path, target);
    });
    tree.for_each_file([&](const std::string& path, bool is_device) {
        if (is_device) {
            place_.make_link(host + path, "/dev/null");
        } else {
            place_.make_file(host + path);
        }
    });
}

// "h0, h1", as far as `most` bytes go.
std::string DeviceFiles::names_of_hosts(std::size_t most) const {
    constexpr std::string_view kMore = ", ...";
    std::string names;
    std::string_view last;
    for (std::size_t i = 0; i < simulation_.hca_count(); ++i) {
        const std::string_view host = simulation_.hca(i).host();
        if (host == last) {
            continue;  // its next HCA
        }
        last = host;
        if (names.size() + host.size() + 2 + kMore.size() > most) {
            return names.append(kMore);
        }
        names.append(names.empty() ? "" : ", ").append(host);
    }
    return names;
}

PathReply DeviceFiles::tree(const DeviceRequest& request) {
    PathReply reply;
    const std::string host = text_of(request.host);
    const std::string path = place_.tree() + '/' + host;
    if (tree_of(host) == nullptr) {
        reply.error = ENOENT;
        const std::string hosts = names_of_hosts(sizeof reply.path - 1);
        std::memcpy(reply.path, hosts.c_str(), hosts.size() + 1);
    } else if (path.size() >= sizeof reply.path) {
        reply.error = ENAMETOOLONG;
    } else {
        std::memcpy(reply.path, path.c_str(), path.size() + 1);
    }
    return reply;
}

AttributeReply DeviceFiles::read(const DeviceRequest& request) {
    AttributeReply reply;
    const DeviceTree* tree = tree_of(text_of(request.host));
    const auto text = tree == nullptr ? std::nullopt : tree->text(text_of(request.path));
    if (!text) {
        reply.error = ENOENT;
        return reply;
    }
    reply.length = static_cast<std::uint32_t>(std::min(text->size(), sizeof reply.text));
    std::memcpy(reply.text, text->data(), reply.length);
    return reply;
}

OpenDeviceReply DeviceFiles::open(const DeviceRequest& request, int connection, pid_t process,
                                  int& descriptor) {
    const std::string host = text_of(request.host);
    const std::string path = text_of(request.path);
    const DeviceTree* tree = tree_of(host);
    const auto device = tree == nullptr ? std::nullopt : tree->device(path);
    auto file = std::make_unique<OpenFile>();
    file->process = process;
    int error = files_.size() < kMaxFiles ? 0 : ENFILE;
    if (error == 0 && tree != nullptr && path == kRdmaNetlinkName) {
        error = open_netlink(host, *file, descriptor);
    } else if (error == 0) {
        error = device ? open_device(*device, request.flags, *file, descriptor) : ENOENT;
    }
    if (error != 0) {
        return {static_cast<std::uint32_t>(error), 0};
    }
    file->number = ++last_file_;
    const std::uint64_t number = file->number;
    file->controls.push_back({connection, process});
    new_sockets_.push_back(connection);
    new_sockets_.push_back(file->socket);
    processes_.try_emplace(process, process);
    const auto place = std::find_if(files_.begin(), files_.end(),
                                    [&file](const auto& other) { return other->hca > file->hca; });
    files_.insert(place, std::move(file));
    return {0, number};
}

int DeviceFiles::open_device(const DeviceFile& device, int flags, OpenFile& file, int& descriptor) {
    file.hca = device.hca;
    if (device.kind == DeviceFileKind::kRdmaCm) {
        return open_rdma_cm(device, file, descriptor);
    }
    const Hca& hca = simulation_.hca(device.hca);
    fabric::ManagementPort* port = simulation_.managed_network().find_port(hca.node(), device.port);
    if (device.kind == DeviceFileKind::kUverbs || port == nullptr ||
        port->port().attributes().link_layer != fabric::LinkLayer::kInfiniband) {
        return ENXIO;
    }
    const bool is_held = std::any_of(files_.begin(), files_.end(),
                                     [port](const auto& other) { return other->sm_of == port; });
    if (device.kind == DeviceFileKind::kIssm && is_held) {
        return (flags & O_NONBLOCK) != 0 ? EAGAIN : EBUSY;  // the kernel would wait
    }
    if (const int error = make_socket_pair(file, descriptor); error != 0) {
        return error;
    }
    if (device.kind == DeviceFileKind::kIssm) {
        file.sm_of = port;
        port->hold_is_sm();
    } else {
        file.umad = std::make_unique<UmadFile>(*port, file.socket);
    }
    return 0;
}

int DeviceFiles::make_socket_pair(OpenFile& file, int& descriptor) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return errno;
    }
    file.socket = ends[0];
    descriptor = ends[1];
    return 0;
}

std::vector<int> DeviceFiles::take_new_sockets() {
    return std::exchange(new_sockets_, {});
}

bool DeviceFiles::serve(int socket) {
    for (const auto& file : files_) {
        if (file->socket == socket) {
            file->readable = true;
            return true;
        }
        const auto control =
            std::find_if(file->controls.begin(), file->controls.end(),
                         [socket](const auto& one) { return one.socket == socket; });
        if (control == file->controls.end()) {
            continue;
        }
        if (file->rdma_cm != nullptr) {
            control->is_readable = true;  // commands have their turn
        } else if (!answer(*file, *control)) {
            end_control(*file, socket);
        }
        return true;
    }
    return false;
}

// A process has ended, or become another program.
void DeviceFiles::end_control(OpenFile& file, int socket) {
    ::close(socket);
    std::erase_if(file.controls, [socket](const auto& one) { return one.socket == socket; });
}

bool DeviceFiles::answer(OpenFile& file, const Control& control) {
    ControlRequest request;
    std::array<int, 1> descriptors{};
    const ssize_t got = receive_message(
        control.socket, std::as_writable_bytes(std::span(&request, 1)), descriptors, false);
    if (descriptors[0] >= 0) {
        ::close(descriptors[0]);
    }
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    ControlReply reply;
    reply.error = ENOTTY;
    if (got == sizeof request && request.length <= sizeof request.bytes && file.umad != nullptr) {
        reply = file.umad->control(request);
    }
    send_message(control.socket, std::as_bytes(std::span(&reply, 1)), {}, false);
    return true;
}

bool DeviceFiles::take_written() {
    bool any = false;
    for (const auto& file : files_) {
        if (!file->readable) {
            continue;
        }
        file->readable = false;
        any = true;
        file->closed = !take_written(*file);
    }
    if (any) {
        tidy();  // a command may ask for what a file had that is closed
    }
    return execute_commands() || any;
}

bool DeviceFiles::take_written(OpenFile& file) {
    if (file.umad != nullptr) {
        return file.umad->take_written();
    }
    if (file.rdma_cm != nullptr) {
        return !file.rdma_cm->is_closed();
    }
    if (file.netlink != nullptr) {
        return file.netlink->take_written([this, &file](std::span<const std::byte> written) {
            return answer_netlink(simulation_.hca(file.hca).host(), written);
        });
    }
    char byte = 0;
    return recv(file.socket, &byte, 1, MSG_DONTWAIT) > 0;
}

int DeviceFiles::open_netlink(const std::string& host, OpenFile& file, int& descriptor) const {
    const int error = make_socket_pair(file, descriptor);
    if (error == 0) {
        file.hca = simulation_.hcas_of(host).front();
        file.netlink = std::make_unique<RdmaNetlinkFile>(file.socket);
    }
    return error;
}

std::vector<NetlinkBytes> DeviceFiles::answer_netlink(const std::string& host,
                                                      std::span<const std::byte> written) const {
    NetlinkHost asked{simulation_, simulation_.hcas_of(host), {}};
    for (const auto& file : files_) {
        if (file->rdma_cm != nullptr && simulation_.hca(file->hca).host() == host) {
            file->rdma_cm->for_each_id([&](std::uint32_t number, const rdma_cm::RdmaId& id) {
                asked.ids.push_back({file->process, number, &id});
            });
        }
    }
    return answer_rdma_netlink(asked, written);
}

void DeviceFiles::close_file(OpenFile& file) {
    for (const Control& control : file.controls) {
        ::close(control.socket);
    }
    if (file.sm_of != nullptr) {
        file.sm_of->release_is_sm();
        ::close(file.socket);
    }
    if (file.umad != nullptr) {
        deliveries_of_closed_ += file.umad->deliveries();
    }
    if (file.rdma_cm != nullptr) {
        deliveries_of_closed_ += file.rdma_cm->deliveries();
    }
    if (file.netlink != nullptr) {
        deliveries_of_closed_ += file.netlink->deliveries();
    }
    file.umad.reset();
    file.rdma_cm.reset();
    file.netlink.reset();
}

void DeviceFiles::tidy() {
    for (const auto& file : files_) {
        if (file->umad != nullptr) {
            file->umad->flush();
        }
        if (file->rdma_cm != nullptr) {
            file->rdma_cm->update_pipe();
        }
        if (file->netlink != nullptr) {
            file->netlink->flush();
        }
    }
    const auto gone = std::stable_partition(files_.begin(), files_.end(),
                                            [](const auto& file) { return !file->closed; });
    if (gone == files_.end()) {
        return;
    }
    std::for_each(gone, files_.end(), [this](const auto& file) { close_file(*file); });
    files_.erase(gone, files_.end());
    std::erase_if(processes_, [this](const auto& entry) {
        return std::none_of(files_.begin(), files_.end(),
                            [&entry](const auto& file) { return is_used_by(*file, entry.first); });
    });
}

bool DeviceFiles::is_used_by(const OpenFile& file, pid_t process) {
    return file.process == process ||
           std::any_of(file.controls.begin(), file.controls.end(),
                       [process](const auto& control) { return control.process == process; });
}

std::uint64_t DeviceFiles::deliveries() const {
    std::uint64_t sum = deliveries_of_closed_;
    for (const auto& file : files_) {
        sum += file->umad == nullptr ? 0 : file->umad->deliveries();
        sum += file->rdma_cm == nullptr ? 0 : file->rdma_cm->deliveries();
        sum += file->netlink == nullptr ? 0 : file->netlink->deliveries();
    }
    return sum;
}

std::vector<pid_t> DeviceFiles::processes_of(const std::string& host) const {
    std::vector<pid_t> processes;
    for (const auto& file : files_) {
        if (simulation_.hca(file->hca).host() == host) {
            processes.push_back(file->process);
            for (const Control& control : file->controls) {
                processes.push_back(control.process);
            }
        }
    }
    return processes;
}

// The socket of a process that has just ended may not have been looked at yet.
std::set<pid_t> DeviceFiles::users_of(const std::string& host) const {
    std::set<pid_t> users;
    for (const pid_t process : processes_of(host)) {
        const char state = state_of_process(process);
        if (state != 'Z' && state != 'X' && state != '?') {
            users.insert(process);
        }
    }
    return users;
}

void DeviceFiles::add_processes(std::vector<pid_t>& processes) const {
    for (const auto& [process, watched] : processes_) {
        processes.push_back(process);
    }
}

bool DeviceFiles::everyone_waits(const std::vector<pid_t>& actors, const std::vector<pid_t>& held,
                                 bool canonical, ThreadLook& look) {
    const auto is_among = [](const std::vector<pid_t>& processes, pid_t process) {
        return std::find(processes.begin(), processes.end(), process) != processes.end();
    };
    bool all = true;
    for (const auto& file : files_) {
        const bool has_unread = (file->umad != nullptr && file->umad->has_unread()) ||
                                (file->rdma_cm != nullptr && file->rdma_cm->has_event()) ||
                                (file->netlink != nullptr && file->netlink->has_unread());
        if (!has_unread || is_among(held, file->process)) {
            file->unread_since_ns = 0;
            continue;
        }
        const std::int64_t now = wall_ns();
        if (file->unread_since_ns == 0) {
            file->unread_since_ns = now;
        }
        // Many programs leave the last events of rdma_cm unread.
        const bool has_event = file->rdma_cm != nullptr;
        const std::int64_t patience = has_event ? kTakeEventWithinNs : kReadWithinNs;
        const bool may_stay_unread = canonical || has_event;
        if (!may_stay_unread || now - file->unread_since_ns < patience) {
            processes_.at(file->process).expect_wake();
            all = false;
        }
    }
    if (!all) {
        return false;
    }
    return std::all_of(processes_.begin(), processes_.end(), [&](auto& entry) {
        return is_among(held, entry.first) || entry.second.sleeps(actors, look);
    });
}

}  // namespace simverbs
