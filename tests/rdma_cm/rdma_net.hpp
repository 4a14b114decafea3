// Hosts with rdma_cm, joined by a carrier of communication management datagrams in virtual time.
// Paths and memberships are answered as a test asks for. Host n has the address 127.77.0.(n + 1),
// and LID n + 1; its second device has 127.77.1.(n + 1) and LID n + 101.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"

#include "simverbs/rdma_cm/environment.hpp"
#include "simverbs/rdma_cm/ucma.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm::test {

using fabric::Gid;
using fabric::LinkLayer;
using fabric::SimDuration;
using fabric::SimTime;
using namespace fabric::literals;

class Host;

class Net final : private fabric::EventHandler {
  public:
    void later(SimDuration delay, std::function<void()> action);
    void run() { loop.run_until(SimTime::max()); }
    void run_for(SimDuration time) {
        later(time, [] {});  // the clock is the time of the last event
        loop.run_until(loop.now() + time);
    }
    void carry(Host& sender, std::uint32_t device, const cm::Address& to,
               const cm::Datagram& datagram);
    [[nodiscard]] int count(int sender, CmMessage message) const;
    // The last message of this type that `sender` has sent (asserted).
    template <class T>
    const T& last(int sender) const {
        for (auto each = sent.rbegin(); each != sent.rend(); ++each) {
            if (each->first == sender && std::holds_alternative<T>(each->second)) {
                return std::get<T>(each->second);
            }
        }
        std::abort();
    }

    fabric::EventLoop loop;
    std::vector<Host*> hosts;
    std::function<bool(int sender, CmMessage message)> loses = [](int, CmMessage) { return false; };
    std::vector<std::pair<int, cm::Message>> sent;

  private:
    void handle(const fabric::Event& event) override;

    std::vector<std::function<void()>> actions_;
};

// The subnet administration's answer: an errno, or silence.
struct Answer {
    int error = 0;
    bool comes = true;
};

class Host final : public Environment {
  public:
    Host(Net& net, int number, LinkLayer layer = LinkLayer::kInfiniband, int devices = 1);

    [[nodiscard]] std::span<const DeviceInfo> devices() const override { return infos; }
    [[nodiscard]] const DeviceInfo* find_device(DeviceIndex device) const override {
        const auto found = std::ranges::find(infos, device, &DeviceInfo::index);
        return found == infos.end() ? nullptr : &*found;
    }
    [[nodiscard]] std::optional<LocalPort> find_local(const Gid& ip) const override;
    [[nodiscard]] std::optional<Gid> source_for(const Gid& remote) const override;
    [[nodiscard]] std::optional<Gid> find_remote(const LocalPort& local,
                                                 const Gid& remote) const override;
    void query_path(PathQueryId query, const PathQuery& wanted) override;
    void cancel_query(PathQueryId query) override { cancelled.push_back(query); }
    void join(MembershipId membership, const JoinRequest& wanted) override;
    void leave(MembershipId membership) override { left.push_back(membership); }

    [[nodiscard]] Gid gid(std::uint32_t device = 0) const;
    [[nodiscard]] bool is_ethernet() const { return layer == LinkLayer::kEthernet; }

    Net& net;
    int number;
    LinkLayer layer;
    Answer path_answer;
    Answer join_answer;
    std::optional<Gid> source;  // of all routes, instead of the right one
    std::vector<PathQuery> queries;
    std::vector<PathQueryId> cancelled;
    std::vector<JoinRequest> joins;
    std::vector<MembershipId> left;
    std::vector<DeviceInfo> infos;
    Ucma ucma;

  private:
    struct Carrier final : cm::CmCarrier {
        Carrier(Host& owner, std::uint32_t index) : host(owner), device(index) {}
        void send(const cm::Address& to, const cm::Datagram& datagram) override {
            host.net.carry(host, device, to, datagram);
        }
        Host& host;
        std::uint32_t device;
    };
    std::deque<Carrier> carriers_;
    std::deque<cm::HostCm> managers_;
};

inline constexpr std::uint32_t ip_of(int host, int device = 0) {
    return 0x7F4D'0001U + static_cast<std::uint32_t>(device) * 256U +
           static_cast<std::uint32_t>(host);
}
inline SocketAddress address_of(int host, std::uint16_t port, int device = 0) {
    return SocketAddress::inet(ip_of(host, device), port);
}

// A program with the device open: makes commands as librdmacm does.
class Program final : public UcmaObserver {
  public:
    explicit Program(Host& owner)
        : host(owner), file(std::make_unique<UcmaFile>(owner.ucma, *this)) {}

    void event_available(UcmaFile&) override { ++wake_ups; }

    template <class T>
    UcmaReply write(std::uint32_t command, const T& payload, std::size_t out = 0,
                    const UcmaInputs& inputs = {}) {
        return write_bytes(command, &payload, sizeof payload, out, inputs);
    }
    UcmaReply write_bytes(std::uint32_t command, const void* payload, std::size_t bytes,
                          std::size_t out, const UcmaInputs& inputs = {});

    // An id has the uid 1, and 2 when it has been accepted.
    std::uint32_t create(std::uint16_t space, std::uint8_t qp_type = 0);
    int bind(std::uint32_t id, const SocketAddress& address);
    int resolve(std::uint32_t id, const SocketAddress& destination,
                const SocketAddress& source = {}, std::uint32_t timeout_ms = 2000);
    int route(std::uint32_t id, std::uint32_t timeout_ms = 2000);
    int listen(std::uint32_t id, std::uint32_t backlog = 0);
    int connect(std::uint32_t id, const rdma_ucm_conn_param& parameters);
    int accept(std::uint32_t id, const rdma_ucm_conn_param& parameters);
    int accept_response(std::uint32_t id);
    int reject(std::uint32_t id, const std::string& data, std::uint8_t reason = 0);
    int disconnect(std::uint32_t id);
    int notify(std::uint32_t id, std::uint32_t event);
    int set_option(std::uint32_t id, std::uint32_t level, std::uint32_t name,
                   std::span<const std::uint8_t> value);
    std::pair<int, std::uint32_t> destroy(std::uint32_t id);  // error, events reported
    std::pair<int, std::uint32_t> join(std::uint32_t id, const SocketAddress& group,
                                       std::uint16_t flags = 0);  // error, membership
    std::pair<int, std::uint32_t> leave(std::uint32_t membership);
    std::pair<int, ib_uverbs_qp_attr> qp_attr(std::uint32_t id, std::uint32_t state);
    rdma_ucm_query_addr_resp query(std::uint32_t id, std::uint32_t option);
    std::optional<rdma_ucm_event_resp> event();
    // The names of all events that wait, with a status where it is not 0: "REJECTED 8".
    std::vector<std::string> events();

    // An id that has resolved address and route, its events read.
    std::uint32_t resolved(std::uint16_t space, const SocketAddress& destination);
    std::uint32_t listening(std::uint16_t space, const SocketAddress& address,
                            std::uint32_t backlog = 0);

    Host& host;
    int wake_ups = 0;
    std::unique_ptr<UcmaFile> file;
};

rdma_ucm_conn_param connection_parameters(std::uint32_t qpn, const std::string& private_data = "");

inline constexpr std::uint16_t kPort = 7471;

// Two hosts and a connection that is asked for: the listener has read CONNECT_REQUEST.
struct Pair {
    explicit Pair(LinkLayer layer = LinkLayer::kInfiniband, std::uint16_t space = RDMA_PS_TCP);

    void request(const rdma_ucm_conn_param& parameters = connection_parameters(0x100, "hello"));
    // Until both sides are established.
    void establish();

    Net net;
    Host client_host;
    Host server_host;
    Program client;
    Program server;
    std::uint16_t space;
    std::uint32_t listener = 0;
    std::uint32_t id = 0;         // of the client
    std::uint32_t peer = 0;       // of the server
    rdma_ucm_event_resp asked{};  // CONNECT_REQUEST
};

}  // namespace simverbs::rdma_cm::test
