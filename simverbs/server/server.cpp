// The clients of a served world; how its time moves is in time.cpp.
#include "simverbs/server/server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "simverbs/faults/fault_request.hpp"
#include "simverbs/server/source_address.hpp"

namespace simverbs {
namespace {

constexpr int kMaxUnattached = 64;

template <std::size_t N>
void copy_text(std::array<char, N>& to, std::string_view from) {
    const std::size_t length = std::min(from.size(), N - 1);
    std::memcpy(to.data(), from.data(), length);
    to[length] = '\0';
}

// Never waits: a client that does not read its replies is hung up on.
template <class T>
bool send_struct(int socket, const T& message, std::span<const int> descriptors = {}) {
    const bool sent =
        send_message(socket, std::as_bytes(std::span(&message, 1)), descriptors, false);
    if (!sent) {
        shutdown(socket, SHUT_RDWR);
    }
    return sent;
}

pid_t peer_of(int socket) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 ? credentials.pid
                                                                                   : -1;
}

}  // namespace

fabric::Outcome<std::unique_ptr<Server>> Server::make(const ServerOptions& options) {
    auto simulation = Simulation::make(options.simulation);
    if (!simulation) {
        return fabric::Failure(std::move(simulation.error()));
    }
    auto place = WorldPlace::listen_at(options.socket);
    if (!place) {
        return fabric::Failure(std::move(place.error()));
    }
    std::unique_ptr<Server> server(new Server(options, std::move(*simulation), std::move(*place)));
    if (std::string wrong = server->open_outlets(); !wrong.empty()) {
        return fabric::Failure(std::move(wrong));
    }
    if (const std::string other = server->simulation_->describe_other_routing(); !other.empty()) {
        fmt::print(stderr, "simverbs: {}\n", other);
    }
    return server;
}

Server::Server(const ServerOptions& options, std::unique_ptr<Simulation> simulation,
               std::unique_ptr<WorldPlace> place)
    : options_(options),
      simulation_(std::move(simulation)),
      traces_(*simulation_),
      faults_(*simulation_),
      place_(std::move(place)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      devices_(*simulation_, *place_),
      processes_(*simulation_, clients_, devices_),
      calls_(simulation_->bus()),
      fabric_(
          *simulation_, marks_, [this] { return name_users(); },
          [this] { return status_as_json(); }) {
    if (is_free()) {
        marks_.set(Mark::kScheduledFree);
    }
    events_at_rest_ = simulation_->loop().events_run();
    epoll_event event{.events = EPOLLIN, .data = {.fd = place_->listener()}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, place_->listener(), &event);
    watch_wake_ups(wake_);
}

// Each write is one event, and nobody reads: a client could take the count away, or the flag that
// keeps a read from blocking.
void Server::watch_wake_ups(int descriptor) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = descriptor}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

Server::~Server() {
    processes_.let_all_go_on();
    clients_.clear();
    for (const int socket : unattached_) {
        close(socket);
    }
    place_->leave();
    close(epoll_);
    close(wake_);
    if (spare_ >= 0) {
        close(spare_);
    }
}

void Server::stop() {
    stop_.store(true, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

std::string Server::inject(const simverbs_fault& fault, std::uint32_t& id) {
    FaultRequest request(*simulation_, faults_, fault);
    if (request.read() != 0) {
        return request.why();
    }
    id = faults_.inject(request.spec()).value();
    return {};
}

std::optional<std::uint64_t> Server::fault_matched(std::uint32_t id) const {
    return faults_.matched(fabric::FaultId(id));
}

std::string Server::summary() const {
    return fmt::format("{}, {}", simulation_->summary(), marks_.describe());
}

bool Server::serve_sockets(int timeout_ms) {
    if (!is_free() && devices_.commands_raced()) {
        marks_.set(Mark::kUnnamedActorsRaced);
    }
    turns_without_look_ = 0;
    std::array<epoll_event, 64> ready;
    const int count = epoll_wait(epoll_, ready.data(), ready.size(), timeout_ms);
    bool news = count == static_cast<int>(ready.size());  // others may be ready
    bool someone_may_be_gone = false;
    for (int i = 0; i < count; ++i) {
        const int descriptor = ready[static_cast<std::size_t>(i)].data.fd;
        if (descriptor == place_->listener()) {
            news = accept_client() || news;
            continue;
        }
        const auto client =
            std::find_if(clients_.begin(), clients_.end(), [descriptor](const auto& candidate) {
                return candidate->socket() == descriptor ||
                       candidate->wake_descriptor() == descriptor ||
                       candidate->unmap_descriptor() == descriptor;
            });
        if (client != clients_.end() && (*client)->socket() != descriptor) {
            (*client)->note_ready(descriptor);
            continue;
        }
        someone_may_be_gone = true;
        if (client != clients_.end()) {
            news = serve_client(**client) || news;
        } else if (std::find(unattached_.begin(), unattached_.end(), descriptor) !=
                   unattached_.end()) {
            greet(descriptor);
            news = true;
        } else {
            news = devices_.serve(descriptor) || news;
        }  // else one of the server itself
    }
    devices_.tidy();
    watch_sockets_of_devices();
    if (someone_may_be_gone || someone_gone_) {  // a client's end makes a descriptor of it ready
        remove_gone();
    }
    if (spare_ < 0) {
        spare_ = fcntl(wake_, F_DUPFD_CLOEXEC, 0);
    }
    return news;
}

bool Server::accept_client() {
    int socket = accept4(place_->listener(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0 && (errno == EMFILE || errno == ENFILE)) {
        socket = accept_by_spare();
    }
    if (socket < 0) {
        return false;
    }
    ucred peer{};
    if (!is_trusted_peer(socket, peer)) {
        complain(fmt::format("process {} of user {} was refused: a world serves its own user",
                             peer.pid, peer.uid));
        close(socket);
        return false;
    }
    if (unattached_.size() >= kMaxUnattached) {
        close(unattached_.front());  // the oldest
        unattached_.erase(unattached_.begin());
    }
    unattached_.push_back(socket);
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = socket}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    return true;
}

// Where no descriptor is left, one who asks is told so, and not left without an answer.
int Server::accept_by_spare() {
    if (!unattached_.empty()) {
        close(unattached_.front());
        unattached_.erase(unattached_.begin());
    } else if (spare_ >= 0) {
        close(std::exchange(spare_, -1));
    }
    return accept4(place_->listener(), nullptr, nullptr, SOCK_CLOEXEC);
}

// On stderr, and not without end, whoever provokes it.
void Server::complain(const std::string& what) {
    if (complaints_left_ > 0) {
        --complaints_left_;
        fmt::print(stderr, "simverbs: {}\n", what);
    }
}

// The first message of a connection says what it wants.
void Server::greet(int socket) {
    std::erase(unattached_, socket);
    std::array<std::byte,
               std::max({sizeof(AttachRequest), sizeof(DeviceRequest), sizeof(FabricRequest)})>
        bytes;
    const ssize_t got = receive_message(socket, bytes, {}, false);
    RequestHead head;
    if (got >= static_cast<ssize_t>(sizeof head)) {
        std::memcpy(&head, bytes.data(), sizeof head);
    }
    if (head.version != kProtocolVersion) {
        complain(fmt::format("process {} speaks version {} of the protocol, this world version {}",
                             peer_of(socket), head.version, kProtocolVersion));
        send_struct(socket, VersionRefusal());
        close(socket);
        return;
    }
    if (has_hung_up(socket)) {  // its command has said that it failed
        close(socket);
        return;
    }
    const bool understood = got >= static_cast<ssize_t>(sizeof head);
    const RequestKind kind = head.kind;
    if (understood && kind == RequestKind::kAttach && got == sizeof(AttachRequest)) {
        AttachRequest request;
        std::memcpy(&request, bytes.data(), sizeof request);
        attach(socket, request);
        return;
    }
    if (understood && kind == RequestKind::kFabric && got == sizeof(FabricRequest)) {
        FabricRequest request;
        std::memcpy(&request, bytes.data(), sizeof request);
        fabric_.serve(socket, request, !is_free());
        return;
    }
    if (understood && got == sizeof(DeviceRequest)) {
        DeviceRequest request;
        std::memcpy(&request, bytes.data(), sizeof request);
        serve_device(socket, request);
        return;
    }
    if (understood && kind == RequestKind::kShutdown && got == sizeof(ShutdownRequest)) {
        ShutdownRequest request;
        std::memcpy(&request, bytes.data(), sizeof request);
        shut_down(socket, request);
    } else if (understood && (kind == RequestKind::kStatus || kind == RequestKind::kReport)) {
        TextReply reply;
        copy_text(reply.text, status(kind == RequestKind::kReport));
        send_struct(socket, reply);
    }
    close(socket);
}

void Server::shut_down(int socket, const ShutdownRequest& request) {
    ShutdownReply reply;
    if (const std::string names = name_users(); request.force == 0 && !names.empty()) {
        reply.error = EBUSY;
        copy_text(reply.text, names);
        send_struct(socket, reply);
        return;
    }
    place_->leave();
    traces_.flush();
    std::string text;
    for (const std::string& file : incomplete_files()) {
        reply.error = EIO;
        text += file + '\n';
    }
    copy_text(reply.text, text + summary());
    send_struct(socket, reply);
    stop();
}

// Where a device is opened, the connection stays for ioctl(2).
void Server::serve_device(int socket, const DeviceRequest& request) {
    if (request.head.kind == RequestKind::kOpenDevice) {
        int descriptor = -1;
        const OpenDeviceReply reply = devices_.open(request, socket, peer_of(socket), descriptor);
        const std::array<int, 1> descriptors{descriptor};
        send_struct(socket, reply, std::span(descriptors).first(descriptor >= 0 ? 1 : 0));
        if (descriptor >= 0) {
            close(descriptor);
        } else {
            close(socket);
        }
        return;
    }
    if (request.head.kind == RequestKind::kShareDevice) {
        const OpenDeviceReply reply = devices_.share(request, socket, peer_of(socket));
        send_struct(socket, reply);
        if (reply.error != 0) {
            close(socket);
        }
        return;
    }
    if (request.head.kind == RequestKind::kDeviceTree) {
        send_struct(socket, devices_.tree(request));
    } else if (request.head.kind == RequestKind::kReadAttribute) {
        send_struct(socket, devices_.read(request));
    } else if (request.head.kind == RequestKind::kSourceAddress) {
        send_struct(socket, source_address(*simulation_, request));
    } else if (request.head.kind == RequestKind::kHostAddresses) {
        send_struct(socket, host_addresses(*simulation_, request));
    }
    close(socket);
}

void Server::watch_sockets_of_devices() {
    for (const int socket : devices_.take_new_sockets()) {
        epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.fd = socket}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    }
}

void Server::attach(int socket, const AttachRequest& request) {
    AttachReply reply;
    const auto refuse = [socket, &reply](int error, const std::string& reason) {
        reply.error = static_cast<std::uint32_t>(error);
        copy_text(reply.reason, reason);
        send_struct(socket, reply);
        close(socket);
    };
    const std::string host(request.host.data(), strnlen(request.host.data(), request.host.size()));
    const fabric::EndNode* node = simulation_->network().find_host(host);
    if (node == nullptr) {
        refuse(ENOENT,
               fmt::format("topology '{}' has no host '{}'", simulation_->topology(), host));
        return;
    }
    ExpectedPrograms::Arrival arrival = expected_.attaches(peer_of(socket));
    const bool is_expected = !arrival.place.empty();
    if (!is_expected) {
        arrival.place = {std::numeric_limits<std::uint32_t>::max(), ++strangers_};  // the last
    }
    std::unique_ptr<RemoteClient> client;
    try {
        client =
            std::make_unique<RemoteClient>(*simulation_, socket, peer_of(socket),
                                           ClientPlace(node->id().value(), arrival.place), acts_);
    } catch (const std::system_error& failure) {
        refuse(failure.code().value(), failure.what());
        return;
    }
    if (!client->process_memory().probe(request.probe_address, request.probe_value)) {
        client->process_memory().copy_through_client();
        reply.copies_by_client = 1;
    }
    static_assert(AttachReply::kMaxDevices >= fabric::Topology::kMaxHcasOfHost);
    for (std::size_t i = 0; i < client->device_count(); ++i) {
        const Hca& hca = client->device(i);
        ServedDevice& device = reply.devices[reply.device_count++];
        copy_text(device.name, fmt::format("simverbs{}", i));
        copy_text(device.host, hca.host());
        copy_text(device.personality, hca.personality().key);
        device.guid = hca.guid().value();
        device.ports = hca.port_count();
    }
    if (clients_.empty() && simulation_->loop().empty()) {
        events_at_rest_ = simulation_->loop().events_run();
    }
    if (arrival.is_late || (!is_expected && is_under_way())) {
        marks_.set(Mark::kCameLate, fmt::format("process {} of {}", client->process(), host));
    }
    reply.canonical = is_free() ? 0 : 1;
    reply.server_process = static_cast<std::uint32_t>(getpid());
    const int area = client->take_area_descriptor();
    const std::array<int, 2> descriptors{area, client->wake_descriptor()};
    const bool sent = send_struct(socket, reply, descriptors);
    close(area);
    if (!sent) {
        return;  // gone already; its socket goes with it
    }
    watch_wake_ups(client->wake_descriptor());
    // Its socket does not tell of its end where a child of it has the socket, too.
    epoll_event ended{.events = EPOLLIN, .data = {.fd = client->process_descriptor()}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, client->process_descriptor(), &ended);
    const auto place = std::find_if(clients_.begin(), clients_.end(), [&](const auto& other) {
        return other->place() > client->place();
    });
    clients_.insert(place, std::move(client));
}

// False: no message of it was there.
bool Server::serve_client(RemoteClient& client) {
    CommandRequest request;
    int unmaps = -1;
    const ssize_t got =
        receive_message(client.socket(), std::as_writable_bytes(std::span(&request, 1)),
                        std::span(&unmaps, 1), false);
    if (unmaps >= 0) {
        client.watch_unmaps(unmaps);
        epoll_event unmapped{.events = EPOLLIN | EPOLLONESHOT,
                             .data = {.fd = client.unmap_descriptor()}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, client.unmap_descriptor(), &unmapped);
    }
    if (got <= 0) {
        someone_gone_ = someone_gone_ || got == 0 || errno != EAGAIN;
        return false;
    }
    const bool understood = got == sizeof request && request.head.version == kProtocolVersion &&
                            request.head.kind == RequestKind::kCommand && !client.pending;
    if (!understood) {
        CommandReply reply;
        reply.error = EPROTO;
        send_struct(client.socket(), reply);
        client.made_no_sense("sent messages that mean nothing");
        someone_gone_ = someone_gone_ || !client.why_hung_up().empty();
        return false;
    }
    if (is_free()) {
        answer(client, request);
    } else {
        client.pending = request;
    }
    return true;
}

// Requests that the client posted before the command come before it.
void Server::answer(RemoteClient& client, const CommandRequest& request) {
    stall_watch_.called();
    ring_doorbells(client);
    std::vector<int> descriptors;
    const auto redirect = calls_.redirect(client);
    const CommandReply reply = client.execute(request, descriptors);
    someone_gone_ = processes_.end_killed() || someone_gone_;  // by this call: it does not return
    if (!send_struct(client.socket(), reply, descriptors)) {
        someone_gone_ = true;
    }
    for (const int descriptor : descriptors) {
        close(descriptor);
    }
}

// A client that has ended takes its queue pairs with it: its peers see what a power failure shows.
void Server::remove_gone() {
    for (std::unique_ptr<RemoteClient>& client : clients_) {
        if (!client->has_gone()) {
            continue;
        }
        if (!client->why_hung_up().empty()) {
            const std::string name =
                fmt::format("process {} of {}", client->process(), client->host());
            complain(fmt::format("{} {}: it was hung up on", name, client->why_hung_up()));
            marks_.set(Mark::kHungUpOn, name);
        }
        epoll_ctl(epoll_, EPOLL_CTL_DEL, client->socket(), nullptr);
        epoll_ctl(epoll_, EPOLL_CTL_DEL, client->process_descriptor(), nullptr);
        epoll_ctl(epoll_, EPOLL_CTL_DEL, client->wake_descriptor(), nullptr);
        epoll_ctl(epoll_, EPOLL_CTL_DEL, client->unmap_descriptor(), nullptr);
        take_marks(*client);
        const auto redirect = calls_.redirect(*client);
        client.reset();
    }
    std::erase(clients_, nullptr);
    someone_gone_ = false;
}

// Whom a fault has ended, before anybody else goes on: who speaks to it finds it gone.
void Server::remove_killed() {
    if (processes_.end_killed() || someone_gone_) {
        remove_gone();
    }
}

}  // namespace simverbs
