#include "simverbs/world/simulation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric/core/hash.hpp"
#include "fabric/topology/generators.hpp"

#include "simverbs/model/personalities.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kGidInfoEntries = 8;  // one block

// How Ethernet ports are set up is a matter of their devices.
void set_up_ports(fabric::Topology& topology, const PortLimits& limits) {
    for (fabric::LinkSpec& link : topology.links) {
        link.ethernet_mtu = link.ethernet_mtu.value_or(limits.ethernet_mtu);
        link.has_roce_v1 = limits.has_roce_v1;
    }
}

fabric::NodeIdentity host_identity(const Personality& personality) {
    const DeviceIdentity& identity = personality.identity;
    const PortLimits& port = personality.limits.port;
    return {.vendor_id = identity.vendor_id,
            .device_id = static_cast<std::uint16_t>(identity.vendor_part_id),
            .revision = identity.hw_ver,
            .description = "simverbs0",
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

std::unique_ptr<Simulation> Simulation::make(const SimulationOptions& options, std::string& error) {
    const Personality* personality = find_personality(options.personality);
    if (personality == nullptr) {
        error = fmt::format("personality '{}' is not known; known are:", options.personality);
        for (const Personality* known : kPersonalities) {
            error += fmt::format(" {}", known->name);
        }
        return nullptr;
    }
    fabric::TopologyResult made = fabric::generate_topology(options.topology);
    if (!made.topology) {
        error = std::move(made.error);
        return nullptr;
    }
    set_up_ports(*made.topology, personality->limits.port);
    return std::unique_ptr<Simulation>(
        new Simulation(options, std::move(*made.topology), *personality));
}

Simulation::Simulation(SimulationOptions options, fabric::Topology topology,
                       const Personality& personality)
    : options_(std::move(options)), network_(loop_, bus_, std::move(topology)) {
    commons_.numbering.first_psn = options_.first_psn;
    commons_.numbering.first_qpn = options_.first_qpn;
    if (options_.random_keys) {
        commons_.numbering.key_seed =
            fabric::mix_words(options_.seed, fabric::hash_name("keys of memory"));
    }
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        hcas_.push_back(std::make_unique<Hca>(network_, network_.host(i), personality, commons_));
    }
    managed_network_ = std::make_unique<fabric::ManagedNetwork>(
        network_, datagrams_, host_identity(personality), switch_identity(personality));
    subnet_manager_ = std::make_unique<fabric::StartupSm>(network_);
    subnet_manager_->bring_up();
}

Simulation::~Simulation() = default;

std::vector<std::size_t> Simulation::hcas_of(std::string_view host) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < hcas_.size(); ++i) {
        if (hcas_[i]->host() == host) {
            found.push_back(i);
        }
    }
    return found;
}

Hca* Simulation::find_hca(std::string_view host) const {
    const auto found = std::find_if(hcas_.begin(), hcas_.end(),
                                    [host](const auto& hca) { return hca->host() == host; });
    return found == hcas_.end() ? nullptr : found->get();
}

std::size_t Simulation::step() {
    const fabric::ReplayScope scope(*this);
    commons_.events.flush();
    return loop_.run_instant();
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
        step();
    }
}

void Simulation::handle(const fabric::Event& /*event*/) {
    reached_ = true;
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
    return line + (options_.random_keys ? " SIMVERBS_KEYS=random" : "");
}

}  // namespace simverbs
