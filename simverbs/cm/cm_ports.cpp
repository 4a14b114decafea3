#include "simverbs/cm/cm_ports.hpp"

#include <algorithm>

namespace simverbs::cm {

namespace {

// As ib_cm of Linux registers: every message has the method Send.
fabric::AgentSpec communication_agent() {
    constexpr std::uint8_t kClassVersion = 2;
    fabric::AgentSpec spec{
        .management_class = static_cast<std::uint8_t>(fabric::mad::Class::kCommunication),
        .class_version = kClassVersion,
        .makes_transaction_ids = true};
    spec.methods.set(static_cast<std::size_t>(fabric::mad::Method::kSend));
    return spec;
}

}  // namespace

CmPorts::PortAgent::PortAgent(CmPorts& ports, fabric::ManagementPort& port)
    : ports_(ports), port_(port), id_(port.register_agent(communication_agent(), *this)) {}

CmPorts::PortAgent::~PortAgent() {
    if (id_) {
        port_.unregister_agent(*id_);
    }
}

void CmPorts::PortAgent::send(const fabric::DatagramAddress& to, const Datagram& datagram) {
    if (id_) {
        static_cast<void>(port_.send(*id_, {.bytes = datagram.bytes, .to = to}));
    }
}

void CmPorts::PortAgent::datagram_received(const fabric::ReceivedDatagram& received) {
    if (ports_.manager_ == nullptr) {
        return;
    }
    Datagram datagram;
    std::copy(received.bytes.begin(), received.bytes.end(), datagram.bytes.begin());
    ports_.manager_->datagram_arrived(datagram, {number(), received.from});
}

CmPorts::CmPorts(const fabric::ManagedNetwork& network, fabric::NodeId hca) {
    const std::uint16_t last = network.network().node(hca).port_count();
    for (std::uint16_t number = 1; number <= last; ++number) {
        if (fabric::ManagementPort* const port =
                network.find_port(hca, fabric::PortNumber{number})) {
            agents_.push_back(std::make_unique<PortAgent>(*this, *port));
        }
    }
}

CmPorts::~CmPorts() = default;

std::uint32_t CmPorts::transaction_id_high() const {
    const auto registered =
        std::ranges::find_if(agents_, [](const auto& agent) { return agent->id().has_value(); });
    return registered == agents_.end() ? 0 : (*registered)->id()->value();
}

void CmPorts::send(const Address& to, const Datagram& datagram) {
    const auto agent =
        std::ranges::find_if(agents_, [&to](const auto& one) { return one->number() == to.port; });
    if (agent == agents_.end() || manager_ == nullptr) {
        return;
    }
    fabric::DatagramAddress remote = to.remote;
    remote.qp = fabric::kGeneralServicesQp;
    remote.qkey = fabric::kWellKnownQkey;
    (*agent)->send(remote, datagram);
}

}  // namespace simverbs::cm
