#include "simverbs/world/simulation.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/hash.hpp"
#include "fabric/topology/load.hpp"

#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/model/personalities.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kGidInfoEntries = 8;  // one block

using DevicesOfHcas = std::vector<const Personality*>;

// By rank, in a sorted topology. All are known: load_topology() has been told their names.
DevicesOfHcas devices_of(const fabric::Topology& topology, const Personality& usual) {
    DevicesOfHcas devices;
    for (const fabric::NodeSpec& node : topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca) {
            devices.push_back(node.personality.empty() ? &usual
                                                       : find_personality(node.personality));
        }
    }
    return devices;
}

const fabric::NodeSpec* find_unmanageable(const fabric::Topology& topology) {
    const auto found = std::find_if(topology.nodes.begin(), topology.nodes.end(),
                                    [](const fabric::NodeSpec& node) {
                                        return node.port_count > fabric::ManagedNetwork::kMaxPorts;
                                    });
    return found == topology.nodes.end() ? nullptr : &*found;
}

// How Ethernet ports are set up is a matter of the HCAs at their link, and of the most capable one
// between switches.
void set_up_ports(fabric::Topology& topology, const DevicesOfHcas& devices) {
    std::map<std::string_view, const PortLimits*> of_hcas;
    std::uint32_t largest_mtu = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        of_hcas.emplace(topology.nodes[i].name, &devices[i]->limits.port);
        largest_mtu = std::max(largest_mtu, devices[i]->limits.port.ethernet_mtu);
    }
    for (fabric::LinkSpec& link : topology.links) {
        std::uint32_t mtu = largest_mtu;
        for (const fabric::LinkEndSpec* const end : {&link.a, &link.b}) {
            if (const auto found = of_hcas.find(end->node); found != of_hcas.end()) {
                mtu = std::min(mtu, found->second->ethernet_mtu);
                link.has_roce_v1 = link.has_roce_v1 && found->second->has_roce_v1;
            }
        }
        link.ethernet_mtu = link.ethernet_mtu.value_or(mtu);
    }
}

std::vector<std::string_view> personality_names() {
    std::vector<std::string_view> names;
    names.reserve(kPersonalities.size());
    for (const Personality* known : kPersonalities) {
        names.push_back(known->name);
    }
    return names;
}

fabric::NodeIdentity host_identity(const Personality& personality) {
    const DeviceIdentity& identity = personality.identity;
    const PortLimits& port = personality.limits.port;
    return {.vendor_id = identity.vendor_id,
            .device_id = static_cast<std::uint16_t>(identity.vendor_part_id),
            .revision = identity.hw_ver,
            .pkey_entries = port.pkey_entries,
            .gid_entries = kGidInfoEntries,
            .capabilities = port.infiniband_caps.bits};
}

fabric::NodeIdentity switch_identity(const Personality& personality) {
    constexpr PortCaps kCaps = PortCap::kTrapSup | PortCap::kSlMapSup | PortCap::kSysImageGuidSup |
                               PortCap::kExtendedSpeedsSup;
    return {.vendor_id = personality.identity.vendor_id, .capabilities = kCaps.bits};
}

}  // namespace

std::string_view to_string(SubnetManagement management) {
    return std::find_if(kSubnetManagementNames.begin(), kSubnetManagementNames.end(),
                        [management](const auto& row) { return row.second == management; })
        ->first;
}

fabric::Outcome<std::unique_ptr<Simulation>> Simulation::make(const SimulationOptions& options) {
    const Personality* personality = find_personality(options.personality);
    const std::vector<std::string_view> names = personality_names();
    if (personality == nullptr) {
        return fabric::Failure(fmt::format("personality '{}' is not known; known are: {}",
                                           options.personality, fmt::join(names, " ")));
    }
    fabric::Outcome<fabric::Topology> topology = fabric::load_topology(options.topology, names);
    if (!topology) {
        return fabric::Failure(std::move(topology.error()));
    }
    if (const fabric::NodeSpec* const wide = find_unmanageable(*topology);
        wide != nullptr && options.subnet_management != SubnetManagement::kStartup) {
        return fabric::Failure(fmt::format(
            "switch {} has {} ports; management datagrams name 254, so that the start-up subnet "
            "manager alone can bring it up (--sm startup, SIMVERBS_SM=startup)",
            wide->name, wide->port_count));
    }
    const DevicesOfHcas devices = devices_of(*topology, *personality);
    if (devices.empty()) {
        return fabric::Failure(fmt::format("topology '{}' has no host", options.topology));
    }
    set_up_ports(*topology, devices);
    return std::unique_ptr<Simulation>(new Simulation(options, std::move(*topology), devices));
}

Simulation::Simulation(SimulationOptions options, fabric::Topology topology,
                       const std::vector<const Personality*>& personalities)
    : options_(std::move(options)),
      routing_(options_.routing.value_or(topology.routing)),
      network_(loop_, bus_, std::move(topology)) {
    network_.set_seed(options_.seed);
    commons_.numbering.first_psn = options_.first_psn;
    commons_.numbering.first_qpn = options_.first_qpn;
    if (options_.random_keys) {
        commons_.numbering.key_seed =
            fabric::mix_words(options_.seed, fabric::hash_name("keys of memory"));
    }
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        hcas_.push_back(
            std::make_unique<Hca>(network_, network_.host(i), *personalities.at(i), commons_));
    }
    managed_network_ = std::make_unique<fabric::ManagedNetwork>(
        network_, datagrams_, host_identity(*personalities.front()),
        switch_identity(*personalities.front()));
    commons_.is_sm = [this](const fabric::Port& port) {
        fabric::ManagedNode* const node = managed_network_->find(port.node().id());
        return node != nullptr && port.attributes().link_layer == fabric::LinkLayer::kInfiniband &&
               (node->subnet().capabilities(port.number()) & fabric::mad::port_info::kIsSm) != 0;
    };
    start_subnet_management();
}

// A world begins when its subnet is up, whatever that took in virtual time.
void Simulation::start_subnet_management() {
    fabric::ManagementPort* const first =
        managed_network_->find_port(network_.host(0).id(), fabric::PortNumber{1});
    switch (options_.subnet_management) {
        case SubnetManagement::kStartup:
            startup_sm_ = std::make_unique<fabric::StartupSm>(network_, routing_);
            startup_sm_->bring_up();
            administration_ = startup_sm_.get();
            if (fabric::ManagementPort* const port = port_of_startup_sm()) {
                startup_sm_->answer_queries(*port);
            }
            return;
        case SubnetManagement::kSweep:
            managed_network_->send_traps();
            if (first != nullptr &&
                first->port().attributes().link_layer == fabric::LinkLayer::kInfiniband) {
                sweeping_sm_ = std::make_unique<fabric::SweepingSm>(
                    *first, loop_, bus_, fabric::SubnetPolicy{.routing = routing_});
                sweeping_sm_->start();
                while (!sweeping_sm_->is_settled()) {
                    step();
                }
                administration_ = sweeping_sm_.get();
            }
            return;
        case SubnetManagement::kNone:
            managed_network_->send_traps();
            return;
    }
}

// nullptr: no port is InfiniBand.
fabric::ManagementPort* Simulation::port_of_startup_sm() const {
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        const fabric::EndNode& host = network_.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            const fabric::Port& port = host.port(fabric::PortNumber{number});
            if (port.attributes().lid == startup_sm_->lid() &&
                port.attributes().link_layer == fabric::LinkLayer::kInfiniband) {
                return managed_network_->find_port(host.id(), port.number());
            }
        }
    }
    return nullptr;
}

Simulation::~Simulation() = default;

std::string Simulation::describe_other_routing() const {
    const auto describe = [this](const auto& manager) {
        const bool is_other = routing_ != fabric::RoutingEngine::kAutomatic &&
                              manager.engine() != routing_ && !manager.refused().empty();
        return is_other ? fmt::format(
                              "routing {} does not suit this fabric, {} is used instead ({})",
                              to_string(routing_), to_string(manager.engine()), manager.refused())
                        : std::string();
    };
    return sweeping_sm_ != nullptr  ? describe(*sweeping_sm_)
           : startup_sm_ != nullptr ? describe(*startup_sm_)
                                    : "";
}

bool Simulation::stop_subnet_manager() {
    if (administration_ == nullptr) {
        return false;
    }
    administration_ = nullptr;
    startup_sm_ = nullptr;
    if (sweeping_sm_ != nullptr) {
        sweeping_sm_->stop();
    }
    return true;
}

std::vector<std::size_t> Simulation::hcas_of(std::string_view host) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < hcas_.size(); ++i) {
        if (hcas_[i]->host() == host) {
            found.push_back(i);
        }
    }
    return found;
}

Hca* Simulation::find_hca(std::string_view name) const {
    const auto find = [this](auto&& is_it) {
        const auto found = std::find_if(hcas_.begin(), hcas_.end(), is_it);
        return found == hcas_.end() ? nullptr : found->get();
    };
    Hca* const hca = find([name](const auto& one) { return one->name() == name; });
    return hca != nullptr ? hca : find([name](const auto& one) { return one->host() == name; });
}

void Simulation::describe() {
    network_.describe();
    for (const auto& hca : hcas_) {
        hca->for_each_qp([](const QueuePair& qp) { qp.describe(); });
    }
}

std::size_t Simulation::step() {
    const std::size_t events = run_instant();
    settle();
    return events;
}

std::size_t Simulation::run_instant(fabric::SimTime latest) {
    return run([this, latest] { return loop_.run_instant(latest); });
}

std::size_t Simulation::step_exactly() {
    const std::size_t events = run([this]() -> std::size_t {
        const auto next = loop_.next_time();
        return next ? loop_.run_until(*next) : 0;
    });
    settle();
    return events;
}

template <class F>
std::size_t Simulation::run(F&& instant) {
    const fabric::ReplayScope scope(*this);
    commons_.events.flush();
    const std::size_t events = instant();
    if (events == 0 && loop_.empty() && credit_loop_.empty()) {
        credit_loop_ = network_.report_credit_loop();
    }
    return events;
}

void Simulation::schedule_mark(fabric::SimDuration after, fabric::EventHandler& handler) {
    // Nodes come before the last number; two marks are never pending or run with one key.
    const fabric::EventKey key(fabric::EventClass::kApplication,
                               fabric::NodeId{fabric::EventKey::kMaxNode - 1}, fabric::PortNumber{},
                               ++marks_);
    loop_.schedule({loop_.now() + after, key, &handler, 0});
}

void Simulation::run_for(fabric::SimDuration duration) {
    reached_ = false;
    schedule_mark(duration, *this);
    while (!reached_) {
        run_instant();
    }
    settle();
}

void Simulation::handle(const fabric::Event& /*event*/) {
    reached_ = true;
}

std::string in_seconds(fabric::SimTime time) {
    constexpr std::int64_t kSecond = 1'000'000'000'000;
    const std::int64_t ps = fabric::to_picoseconds(time);
    return fmt::format("{}.{:012d} s", ps / kSecond, ps % kSecond);
}

std::string Simulation::summary() const {
    return fmt::format("{} of virtual time, run digest {:016x} of {} records",
                       in_seconds(bus_.last_run_record()), bus_.run_digest(), bus_.run_records());
}

std::string Simulation::replay_line() const {
    const SimulationOptions usual;
    std::string line = fmt::format("SIMVERBS_TOPOLOGY={} SIMVERBS_PERSONALITY={} SIMVERBS_SEED={}",
                                   options_.topology, options_.personality, options_.seed);
    if (options_.first_psn != usual.first_psn) {
        line += fmt::format(" SIMVERBS_FIRST_PSN={}", options_.first_psn);
    }
    if (options_.first_qpn != usual.first_qpn) {
        line += fmt::format(" SIMVERBS_FIRST_QPN={}", options_.first_qpn);
    }
    if (options_.routing) {
        line += fmt::format(" SIMVERBS_ROUTING={}", to_string(*options_.routing));
    }
    if (options_.subnet_management != usual.subnet_management) {
        line += fmt::format(" SIMVERBS_SM={}", to_string(options_.subnet_management));
    }
    return line + (options_.random_keys ? " SIMVERBS_KEYS=random" : "");
}

}  // namespace simverbs
