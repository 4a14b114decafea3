#include "tests/rdma_cm/rdma_net.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

namespace simverbs::rdma_cm::test {

using fabric::EventClass;
using fabric::EventKey;
using fabric::GidType;
using fabric::Guid;
using fabric::Lid;
using fabric::NodeId;
using fabric::PortNumber;

namespace {

constexpr SimDuration kWireDelay = 5_us;

std::uint16_t lid_of(int host, std::uint32_t device) {
    return static_cast<std::uint16_t>(host + 1 + static_cast<int>(device) * 100);
}

}  // namespace

void Net::later(SimDuration delay, std::function<void()> action) {
    const auto number = static_cast<std::uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
    loop.schedule({loop.now() + delay,
                   EventKey(EventClass::kFrameArrival, NodeId(1000), PortNumber(1), number), this,
                   number});
}

void Net::handle(const fabric::Event& event) {
    const std::function<void()> action = actions_[event.argument];
    action();
}

void Net::carry(Host& sender, std::uint32_t device, const cm::Address& to,
                const cm::Datagram& datagram) {
    const cm::Message message = cm::parse(datagram).value();
    sent.emplace_back(sender.number, message);
    if (loses(sender.number, static_cast<CmMessage>(message.index()))) {
        return;
    }
    cm::Address from{
        .port = PortNumber(1),
        .remote = {
            .lid = Lid(lid_of(sender.number, device)), .qp = 1, .qkey = fabric::kWellKnownQkey}};
    if (sender.is_ethernet()) {
        from.remote.lid = {};
        from.remote.global = fabric::GlobalAddress{.gid = sender.gid(device)};
    }
    for (Host* host : hosts) {
        for (const DeviceInfo& info : host->devices()) {
            const std::uint32_t index = info.index.value();
            const bool is_it = to.remote.global ? to.remote.global->gid == host->gid(index)
                                                : to.remote.lid == Lid(lid_of(host->number, index));
            if (is_it) {
                later(kWireDelay, [datagram, from, manager = info.cm] {
                    manager->datagram_arrived(datagram, from);
                });
            }
        }
    }
}

int Net::count(int sender, CmMessage message) const {
    return static_cast<int>(std::ranges::count_if(sent, [=](const auto& each) {
        return each.first == sender && each.second.index() == static_cast<std::size_t>(message);
    }));
}

Host::Host(Net& owner, int rank, LinkLayer link_layer, int devices)
    : net(owner),
      number(rank),
      layer(link_layer),
      ucma(owner.loop, NodeId(500U + static_cast<unsigned>(rank)), *this, 42) {
    net.hosts.push_back(this);
    for (int i = 0; i < devices; ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        Carrier& carrier = carriers_.emplace_back(*this, index);
        const NodeId node(static_cast<std::uint32_t>(number * 10 + i));
        cm::HostCm& manager = managers_.emplace_back(
            net.loop,
            cm::CmIdentity{.node = node,
                           .ca_guid = Guid(0xA000U + node.value()),
                           .ack_delay = 10,
                           .comm_id_operand = 0x1111'0000U * (node.value() + 1)},
            carrier, ucma.rdma_cm().cm_user(DeviceIndex(index)));
        PortInfo port{.number = PortNumber(1),
                      .layer = layer,
                      .is_active = true,
                      .pkeys = {0xFFFF, 0x8001},
                      .mtu = 5,
                      .rate = 7};
        if (is_ethernet()) {
            Gid link_local =
                fabric::make_gid(fabric::kDefaultSubnetPrefix, Guid(0xE000U + node.value()));
            port.gids = {{link_local, GidType::kRoceV1},
                         {link_local, GidType::kRoceV2},
                         {gid(index), GidType::kRoceV1},
                         {gid(index), GidType::kRoceV2}};
        } else {
            port.gids = {{gid(index), GidType::kInfiniband}};
        }
        infos.push_back({.index = DeviceIndex(index),
                         .number = index,
                         .node_guid = Guid(0x0102'0304'0506'0700U + node.value()),
                         .cm = &manager,
                         .ports = {port}});
    }
}

Gid Host::gid(std::uint32_t device) const {
    return is_ethernet() ? mapped_ipv4(ip_of(number, static_cast<int>(device)))
                         : fabric::make_gid(fabric::kDefaultSubnetPrefix,
                                            Guid(0xB000U + lid_of(number, device)));
}

std::optional<LocalPort> Host::find_local(const Gid& ip) const {
    for (const DeviceInfo& info : infos) {
        const std::uint32_t index = info.index.value();
        if (ip == mapped_ipv4(ip_of(number, static_cast<int>(index)))) {
            return LocalPort{info.index, PortNumber(1), gid(index), 0xFFFF};
        }
    }
    return std::nullopt;
}

// 127.77.0.0/16 is on link; the third byte names the device.
std::optional<Gid> Host::source_for(const Gid& remote) const {
    if (source) {
        return source;
    }
    if (remote.bytes[12] != 127 || remote.bytes[13] != 77) {
        return std::nullopt;
    }
    const int device = std::min<int>(remote.bytes[14], static_cast<int>(infos.size()) - 1);
    return mapped_ipv4(ip_of(number, device));
}

std::optional<Gid> Host::find_remote(const LocalPort&, const Gid& remote) const {
    for (const Host* host : net.hosts) {
        if (const std::optional<LocalPort> found = host->find_local(remote)) {
            return found->gid;
        }
    }
    return std::nullopt;
}

void Host::query_path(PathQueryId query, const PathQuery& wanted) {
    queries.push_back(wanted);
    if (!path_answer.comes) {
        net.later(wanted.timeout, [this, query] { ucma.rdma_cm().path_failed(query, ETIMEDOUT); });
        return;
    }
    PathRecord record{.service_id = wanted.service_id,
                      .dgid = wanted.dgid,
                      .sgid = wanted.local.gid,
                      .slid = Lid(lid_of(number, wanted.local.device.value())),
                      .reversible = true,
                      .numb_path = 1,
                      .pkey = wanted.local.pkey,
                      .sl = 3,
                      .mtu_selector = 2,
                      .mtu = 4,
                      .rate_selector = 2,
                      .rate = 7,
                      .life_time_selector = 2,
                      .life_time = 14};
    for (const Host* host : net.hosts) {
        for (const DeviceInfo& info : host->infos) {
            if (host->gid(info.index.value()) == wanted.dgid) {
                record.dlid = Lid(lid_of(host->number, info.index.value()));
            }
        }
    }
    net.later(1_us, [this, query, record] {
        if (path_answer.error != 0) {
            ucma.rdma_cm().path_failed(query, path_answer.error);
        } else {
            ucma.rdma_cm().path_found(query, record);
        }
    });
}

void Host::join(MembershipId membership, const JoinRequest& wanted) {
    joins.push_back(wanted);
    net.later(1_us, [this, membership, wanted] {
        if (join_answer.error != 0) {
            ucma.rdma_cm().membership_failed(membership, join_answer.error);
        } else {
            ucma.rdma_cm().joined(membership, {.mgid = wanted.mgid,
                                               .mlid = Lid(0xC005),
                                               .qkey = wanted.qkey,
                                               .sl = 2,
                                               .flow_label = 0x12345,
                                               .hop_limit = 9,
                                               .traffic_class = 8,
                                               .rate = 3});
        }
    });
}

UcmaReply Program::write_bytes(std::uint32_t command, const void* payload, std::size_t bytes,
                               std::size_t out, const UcmaInputs& inputs) {
    const rdma_ucm_cmd_hdr header{command, static_cast<std::uint16_t>(bytes),
                                  static_cast<std::uint16_t>(out)};
    std::vector<std::uint8_t> written(sizeof header + bytes);
    std::memcpy(written.data(), &header, sizeof header);
    if (bytes > 0) {
        std::memcpy(written.data() + sizeof header, payload, bytes);
    }
    return file->write(written, inputs);
}

namespace {

// The first 32 bits of a response.
std::pair<int, std::uint32_t> number_of(const UcmaReply& reply) {
    std::uint32_t value = 0;
    if (reply.error == 0) {
        EXPECT_EQ(reply.bytes.size(), 4U);
        std::memcpy(&value, reply.bytes.data(), sizeof value);
    }
    return {reply.error, value};
}

}  // namespace

std::uint32_t Program::create(std::uint16_t space, std::uint8_t qp_type) {
    rdma_ucm_create_id command{};
    command.ps = space;
    command.qp_type = qp_type;
    command.uid = 1;
    const auto [error, id] = number_of(write(RDMA_USER_CM_CMD_CREATE_ID, command, 4));
    EXPECT_EQ(error, 0);
    return id;
}

int Program::bind(std::uint32_t id, const SocketAddress& address) {
    rdma_ucm_bind command{};
    command.id = id;
    command.addr_size = static_cast<std::uint16_t>(address.size());
    std::memcpy(&command.addr, address.bytes().data(), sizeof command.addr);
    return write(RDMA_USER_CM_CMD_BIND, command).error;
}

int Program::resolve(std::uint32_t id, const SocketAddress& destination,
                     const SocketAddress& source, std::uint32_t timeout_ms) {
    rdma_ucm_resolve_addr command{};
    command.id = id;
    command.timeout_ms = timeout_ms;
    command.src_size = static_cast<std::uint16_t>(source.size());
    command.dst_size = static_cast<std::uint16_t>(destination.size());
    std::memcpy(&command.src_addr, source.bytes().data(), sizeof command.src_addr);
    std::memcpy(&command.dst_addr, destination.bytes().data(), sizeof command.dst_addr);
    return write(RDMA_USER_CM_CMD_RESOLVE_ADDR, command).error;
}

int Program::route(std::uint32_t id, std::uint32_t timeout_ms) {
    return write(RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, timeout_ms}).error;
}

int Program::listen(std::uint32_t id, std::uint32_t backlog) {
    return write(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, backlog}).error;
}

int Program::connect(std::uint32_t id, const rdma_ucm_conn_param& parameters) {
    rdma_ucm_connect command{};
    command.conn_param = parameters;
    command.id = id;
    return write(RDMA_USER_CM_CMD_CONNECT, command).error;
}

int Program::accept(std::uint32_t id, const rdma_ucm_conn_param& parameters) {
    rdma_ucm_accept command{};
    command.uid = 2;
    command.conn_param = parameters;
    command.id = id;
    return write(RDMA_USER_CM_CMD_ACCEPT, command).error;
}

int Program::accept_response(std::uint32_t id) {
    rdma_ucm_accept command{};
    command.id = id;
    return write(RDMA_USER_CM_CMD_ACCEPT, command).error;
}

int Program::reject(std::uint32_t id, const std::string& data, std::uint8_t reason) {
    rdma_ucm_reject command{};
    command.id = id;
    command.private_data_len = static_cast<std::uint8_t>(data.size());
    command.reason = reason;
    std::memcpy(command.private_data, data.data(), data.size());
    return write(RDMA_USER_CM_CMD_REJECT, command).error;
}

int Program::disconnect(std::uint32_t id) {
    return write(RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id}).error;
}

int Program::notify(std::uint32_t id, std::uint32_t event) {
    return write(RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{id, event}).error;
}

int Program::set_option(std::uint32_t id, std::uint32_t level, std::uint32_t name,
                        std::span<const std::uint8_t> value) {
    const rdma_ucm_set_option command{0x1000, id, level, name,
                                      static_cast<std::uint32_t>(value.size())};
    return write(RDMA_USER_CM_CMD_SET_OPTION, command, 0, {.option = value}).error;
}

std::pair<int, std::uint32_t> Program::destroy(std::uint32_t id) {
    return number_of(write(RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{0, id, 0}, 4));
}

std::pair<int, std::uint32_t> Program::join(std::uint32_t id, const SocketAddress& group,
                                            std::uint16_t flags) {
    rdma_ucm_join_mcast command{};
    command.uid = 77;
    command.id = id;
    command.addr_size = static_cast<std::uint16_t>(group.size());
    command.join_flags = flags;
    std::memcpy(&command.addr, group.bytes().data(), sizeof command.addr);
    return number_of(write(RDMA_USER_CM_CMD_JOIN_MCAST, command, 4));
}

std::pair<int, std::uint32_t> Program::leave(std::uint32_t membership) {
    return number_of(write(RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{0, membership, 0}, 4));
}

std::pair<int, ib_uverbs_qp_attr> Program::qp_attr(std::uint32_t id, std::uint32_t state) {
    ib_uverbs_qp_attr attributes{};
    const UcmaReply reply = write(RDMA_USER_CM_CMD_INIT_QP_ATTR,
                                  rdma_ucm_init_qp_attr{0, id, state}, sizeof attributes);
    if (reply.error == 0) {
        std::memcpy(&attributes, reply.bytes.data(), sizeof attributes);
    }
    return {reply.error, attributes};
}

rdma_ucm_query_addr_resp Program::query(std::uint32_t id, std::uint32_t option) {
    rdma_ucm_query_addr_resp response{};
    const UcmaReply reply =
        write(RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{0, id, option}, sizeof response);
    EXPECT_EQ(reply.error, 0);
    std::memcpy(&response, reply.bytes.data(), reply.bytes.size());
    return response;
}

std::optional<rdma_ucm_event_resp> Program::event() {
    rdma_ucm_event_resp response{};
    const UcmaReply reply =
        write(RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{0}, sizeof response);
    if (reply.error != 0) {
        EXPECT_EQ(reply.error, EAGAIN);
        return std::nullopt;
    }
    std::memcpy(&response, reply.bytes.data(), sizeof response);
    return response;
}

std::vector<std::string> Program::events() {
    std::vector<std::string> names;
    while (const auto got = event()) {
        std::string name(to_string(static_cast<RdmaEventType>(got->event)));
        const auto status = static_cast<int>(got->status);
        names.push_back(status == 0 ? name : name + " " + std::to_string(status));
    }
    return names;
}

std::uint32_t Program::resolved(std::uint16_t space, const SocketAddress& destination) {
    const std::uint32_t id = create(space);
    EXPECT_EQ(resolve(id, destination), 0);
    EXPECT_EQ(route(id), 0);
    host.net.run_for(10_us);
    EXPECT_EQ(events(), (std::vector<std::string>{"ADDR_RESOLVED", "ROUTE_RESOLVED"}));
    return id;
}

std::uint32_t Program::listening(std::uint16_t space, const SocketAddress& address,
                                 std::uint32_t backlog) {
    const std::uint32_t id = create(space);
    EXPECT_EQ(bind(id, address), 0);
    EXPECT_EQ(listen(id, backlog), 0);
    return id;
}

rdma_ucm_conn_param connection_parameters(std::uint32_t qpn, const std::string& private_data) {
    rdma_ucm_conn_param parameters{};
    parameters.qp_num = qpn;
    std::memcpy(parameters.private_data, private_data.data(), private_data.size());
    parameters.private_data_len = static_cast<std::uint8_t>(private_data.size());
    parameters.responder_resources = 4;
    parameters.initiator_depth = 8;
    parameters.flow_control = 1;
    parameters.retry_count = 7;
    parameters.rnr_retry_count = 6;
    parameters.valid = 1;
    return parameters;
}

Pair::Pair(LinkLayer layer, std::uint16_t port_space)
    : client_host(net, 0, layer),
      server_host(net, 1, layer),
      client(client_host),
      server(server_host),
      space(port_space) {}

void Pair::request(const rdma_ucm_conn_param& parameters) {
    listener = server.listening(space, SocketAddress::inet(0, kPort));
    id = client.resolved(space, address_of(1, kPort));
    ASSERT_EQ(client.connect(id, parameters), 0);
    net.run_for(1_ms);
    const auto event = server.event();
    ASSERT_TRUE(event);
    asked = *event;
    peer = asked.id;
}

void Pair::establish() {
    request();
    ASSERT_EQ(server.accept(peer, connection_parameters(0x200, "welcome")), 0);
    net.run_for(1_ms);
    ASSERT_EQ(client.events(), (std::vector<std::string>{"CONNECT_RESPONSE"}));
    ASSERT_EQ(client.accept_response(id), 0);
    net.run_for(1_ms);
    ASSERT_EQ(server.events(), (std::vector<std::string>{"ESTABLISHED"}));
}

}  // namespace simverbs::rdma_cm::test
