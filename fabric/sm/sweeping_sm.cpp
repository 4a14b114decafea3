#include "fabric/sm/sweeping_sm.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/node.hpp"
#include "fabric/sm/sm_events.hpp"
#include "fabric/sm/subnet_administration.hpp"

namespace fabric {

using mad::Attribute;
using mad::Datagram;
using mad::Method;
using SmState = mad::sm_info::State;

SweepingSm::SweepingSm(ManagementPort& port, EventLoop& loop, trace::Bus& bus, SubnetPolicy policy)
    : port_(port),
      loop_(loop),
      bus_(bus),
      policy_(std::move(policy)),
      timer_(loop,
             EventKey(EventClass::kTimer, port.port().node().id(),
                      PortNumber(static_cast<std::uint16_t>(kSubnetManagerKey +
                                                            port.port().number().value())),
                      0),
             *this),
      smps_(port, policy_.m_key) {
    for (const mad::Class each : {mad::Class::kSubnLid, mad::Class::kSubnDirected}) {
        AgentSpec spec{.qp = kSubnetManagementQp,
                       .management_class = static_cast<std::uint8_t>(each)};
        for (const Method method : {Method::kGet, Method::kSet, Method::kTrap}) {
            spec.methods.set(static_cast<std::size_t>(method));
        }
        const std::optional<AgentId> agent = port_.register_agent(spec, *this);
        SIMVERBS_ASSERT(agent.has_value(), "another subnet manager sits at this port");
        agents_.push_back(*agent);
    }
    smps_.set_agent(agents_.front());
    administration_ = std::make_unique<SubnetAdministration>(*this);
}

SweepingSm::~SweepingSm() {
    stop();
}

void SweepingSm::start() {
    SIMVERBS_ASSERT(!is_started_ && !is_stopped_, "a subnet manager is started twice");
    is_started_ = true;
    enter(SmState::kDiscovering);
    port_.hold_is_sm();
    is_settled_ = false;
    request_sweep(kSweepDelay);
}

void SweepingSm::stop() {
    if (is_stopped_) {
        return;
    }
    is_stopped_ = true;
    timer_.cancel();
    administration_.reset();
    for (const AgentId agent : agents_) {
        port_.unregister_agent(agent);
    }
    enter(SmState::kNotActive);
    if (is_started_) {
        port_.release_is_sm();
    }
}

void SweepingSm::datagram_received(const ReceivedDatagram& datagram) {
    if (datagram.answers) {
        if (datagram.token == kPollToken) {
            // A port without a subnet manager answers too: that it has none.
            polled(mad::get(datagram.bytes, mad::smp::kStatus) == 0);
        } else {
            smps_.answered(datagram);
        }
        return;
    }
    const auto method = static_cast<Method>(mad::get(datagram.bytes, mad::header::kMethod));
    const auto attribute =
        static_cast<Attribute>(mad::get(datagram.bytes, mad::header::kAttributeId));
    if (method == Method::kTrap) {
        trap_received(datagram);
    } else if (attribute == Attribute::kSmInfo) {
        answer_sm_info(datagram);
    }
}

void SweepingSm::send_finished(const FinishedSend& send) {
    if (send.token != kPollToken) {
        smps_.finished(send);
    } else if (send.outcome != SendOutcome::kSent) {
        polled(false);
    }
}

// Nobody else tells of a link between two hosts.
void SweepingSm::link_changed() {
    if (state_ == SmState::kMaster) {
        request_sweep(kSweepDelay);
    }
}

void SweepingSm::handle(const Event& /*event*/) {
    if (state_ == SmState::kStandby) {
        poll_master();
    } else {
        sweep();
    }
}

void SweepingSm::enter(SmState state) {
    if (state != state_) {
        bus_.emit(loop_.now(), SmStateChanged{own_node(), to_string(state_), to_string(state)});
        state_ = state;
    }
}

void SweepingSm::request_sweep(SimDuration delay) {
    is_settled_ = false;
    if (is_sweeping_) {
        sweep_again_ = true;
    } else if (!timer_.armed()) {
        timer_.arm_in(delay);
    }
}

bool SweepingSm::resweep() {
    if (state_ != SmState::kMaster) {
        return false;
    }
    request_sweep(kSweepDelay);
    return true;
}

void SweepingSm::sweep() {
    is_sweeping_ = true;
    sweep_again_ = false;
    bus_.emit(loop_.now(), SweepBegan{own_node(), ++sweeps_});
    known_ = std::exchange(subnet_, {});
    others_.clear();
    visit({}, std::nullopt);
    smps_.then([this] { read_sm_infos(); });
}

// `from`: the port that leads there.
void SweepingSm::visit(const std::vector<std::uint8_t>& path, std::optional<SubnetPortRef> from) {
    if (path.size() > mad::smp::kMaxHops) {
        return;  // beyond the reach of directed routes
    }
    smps_.get(path, Attribute::kNodeInfo, 0, [this, path, from](const Datagram* answer) {
        if (answer != nullptr) {
            found_node(answer->smp_data(), path, from);
        }
    });
}

void SweepingSm::found_node(mad::ConstBytes info, const std::vector<std::uint8_t>& path,
                            std::optional<SubnetPortRef> from) {
    const Guid guid(mad::get(info, mad::node_info::kNodeGuid));
    const SubnetPortRef entry{
        guid, static_cast<std::uint8_t>(mad::get(info, mad::node_info::kLocalPort))};
    auto [place, is_new] = subnet_.nodes.try_emplace(guid);
    SubnetNode& node = place->second;
    if (is_new) {
        node.guid = guid;
        node.type = static_cast<mad::NodeType>(mad::get(info, mad::node_info::kNodeType));
        std::copy_n(info.begin(), node.info.size(), node.info.begin());
        node.ports.resize(mad::get(info, mad::node_info::kPortCount) + 1);
        if (const auto before = known_.nodes.find(guid); before != known_.nodes.end()) {
            node.linear_table = before->second.linear_table;
            node.multicast_table = before->second.multicast_table;
        }
        smps_.get(path, Attribute::kNodeDescription, 0, [this, guid](const Datagram* answer) {
            if (answer != nullptr) {
                std::ranges::copy(answer->smp_data(), subnet_.nodes[guid].description.begin());
            }
        });
    }
    if (entry.port >= node.ports.size()) {
        return;
    }
    if (from) {
        subnet_.nodes[from->node].ports[from->port].peer = entry;
        node.ports[entry.port].peer = *from;
    }
    const Guid port_guid(mad::get(info, mad::node_info::kPortGuid));
    if (!node.is_switch()) {
        if (node.ports[entry.port].path.empty() || path.empty()) {
            node.ports[entry.port].guid = port_guid;
            read_port(entry, path);
        }
    } else if (is_new) {
        node.ports[0].guid = port_guid;
        smps_.get(path, Attribute::kSwitchInfo, 0, [this, guid](const Datagram* answer) {
            if (answer != nullptr) {
                std::ranges::copy(answer->smp_data().first(mad::switch_info::kBytes),
                                  subnet_.nodes[guid].switch_info.begin());
            }
        });
        for (std::size_t number = 0; number < node.ports.size(); ++number) {
            read_port({guid, static_cast<std::uint8_t>(number)}, path);
        }
    }
}

void SweepingSm::read_port(const SubnetPortRef& ref, const std::vector<std::uint8_t>& path) {
    subnet_.nodes[ref.node].ports[ref.port].path = path;
    smps_.get(path, Attribute::kPortInfo, ref.port, [this, ref, path](const Datagram* answer) {
        if (answer == nullptr || answer->get(mad::smp::kStatus) != 0) {
            return;
        }
        SubnetNode& node = subnet_.nodes[ref.node];
        SubnetPort& port = node.ports[ref.port];
        port.is_known = true;
        std::ranges::copy(answer->smp_data(), port.info.begin());
        const bool leads_on = node.is_switch() ? ref.port != 0 : path.empty();
        if (leads_on && port.state() >= static_cast<unsigned>(PortState::kInit) && !port.peer) {
            std::vector<std::uint8_t> further = path;
            further.push_back(ref.port);
            visit(further, ref);
        }
        if (node.is_switch() != (ref.port == 0)) {
            return;
        }
        smps_.get(path, Attribute::kGuidInfo, 0, [this, ref](const Datagram* guids) {
            if (guids != nullptr) {
                std::ranges::copy(guids->smp_data(),
                                  subnet_.nodes[ref.node].ports[ref.port].guids.begin());
            }
        });
        smps_.get(path, Attribute::kPkeyTable, 0, [this, ref](const Datagram* pkeys) {
            SubnetPort& end_port = subnet_.nodes[ref.node].ports[ref.port];
            for (std::size_t i = 0; pkeys != nullptr && i < mad::tables::kPkeysPerBlock; ++i) {
                end_port.pkeys.push_back(static_cast<std::uint16_t>(
                    mad::get(pkeys->smp_data(), mad::element(mad::tables::kFirstPkey, i))));
            }
        });
    });
}

// The subnet is this manager's: from what it has found to what it wants.
void SweepingSm::manage() {
    enter(SmState::kMaster);
    assign_lids();
    configure_ports();
    smps_.then([this] {
        write_routes();
        write_groups();
        smps_.then([this] {
            set_states(PortState::kInit, PortState::kArmed);
            smps_.then([this] {
                set_states(PortState::kArmed, PortState::kActive);
                smps_.then([this] { finish_sweep(); });
            });
        });
    });
}

void SweepingSm::finish_sweep() {
    bus_.emit(loop_.now(), SweepEnded{own_node(), sweeps_, subnet_.nodes.size()});
    is_sweeping_ = false;
    administration_->subnet_swept(known_, subnet_);
    for (const auto& done : std::exchange(group_waiters_, {})) {
        done();
    }
    hand_over();
    if (sweep_again_) {
        request_sweep(kSweepDelay);
    } else {
        is_settled_ = true;
    }
}

bool SweepingSm::set_lid(Port& port, Lid lid) {
    const Guid guid = port.attributes().guid;
    const std::optional<SubnetPortRef> owner = subnet_.owner_of(lid);
    if (!is_unicast(lid) || (owner && subnet_.find(*owner)->guid != guid)) {
        return false;
    }
    lids_[guid] = lid;
    request_sweep(kSweepDelay);
    return true;
}

void SweepingSm::set_pkeys(Port& port, std::vector<std::uint16_t> pkeys) {
    own_pkeys_[port.attributes().guid] = std::move(pkeys);
    request_sweep(kSweepDelay);
}

bool SweepingSm::set_gid(Port& port, std::size_t index, const Gid& gid) {
    const std::optional<SubnetPortRef> ref = ref_of(port.attributes().guid);
    if (!ref || index == 0 || gid.subnet_prefix() != policy_.subnet_prefix) {
        return false;
    }
    const std::size_t block = index / mad::guid_info::kGuidsPerBlock;
    const std::size_t entry = index % mad::guid_info::kGuidsPerBlock;
    const SmpWindow::Path path = subnet_.find(*ref)->path;
    const auto modifier = static_cast<std::uint32_t>(block);
    smps_.get(path, Attribute::kGuidInfo, modifier, [=, this](const Datagram* answer) {
        if (answer != nullptr) {
            Datagram changed = *answer;
            mad::set(changed.smp_data(), mad::element(mad::guid_info::kFirstGuid, entry),
                     gid.interface_id());
            smps_.set(path, Attribute::kGuidInfo, modifier, changed.smp_data(), nullptr);
        }
    });
    return true;
}

void SweepingSm::set_sm_lid(Port& port, Lid lid) {
    if (const auto ref = ref_of(port.attributes().guid)) {
        write_port(*ref,
                   [lid](mad::Bytes data) { mad::set(data, mad::port_info::kSmLid, lid.value()); });
    }
}

void SweepingSm::ask_to_reregister(Port& port) {
    if (const auto ref = ref_of(port.attributes().guid)) {
        write_port(*ref,
                   [](mad::Bytes data) { mad::set(data, mad::port_info::kClientReregister, 1); });
    }
}

std::optional<SubnetPortRef> SweepingSm::ref_of(Guid port) const {
    const auto end_ports = subnet_.end_ports();
    const auto found = end_ports.find(port);
    return found == end_ports.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fabric
