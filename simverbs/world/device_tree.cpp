#include "simverbs/world/device_tree.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric/mad/managed_network.hpp"

#include "simverbs/model/hw_counters.hpp"
#include "simverbs/model/port_caps.hpp"
#include "simverbs/model/stated_speed.hpp"
#include "simverbs/world/counter_files.hpp"

namespace simverbs {
namespace {

using fabric::Port;

constexpr std::string_view kDevices = "/sys/class/infiniband/";
constexpr std::string_view kManagement = "/sys/class/infiniband_mad/";
constexpr std::string_view kVerbs = "/sys/class/infiniband_verbs/";
constexpr std::string_view kNodes = "/dev/infiniband/";
constexpr std::string_view kRdmaCm = "/sys/class/misc/rdma_cm/";
constexpr std::string_view kMaxBacklog = "/proc/sys/net/rdma_ucm/max_backlog";
constexpr std::string_view kPciDomain = "5356";  // no machine has that many
constexpr int kUmadAbi = 5;                      // IB_USER_MAD_ABI_VERSION
constexpr int kVerbsAbi = 6;                     // IB_USER_VERBS_ABI_VERSION
constexpr int kBacklog = 1024;

// Numbers of character devices: Linux Documentation/admin-guide/devices.txt.
constexpr int kInfinibandMajor = 231;
constexpr int kFirstUmadMinor = 0;
constexpr int kFirstIssmMinor = 64;
constexpr int kFirstUverbsMinor = 192;

std::string guid_text(fabric::Guid guid) {
    const std::uint64_t value = guid.value();
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}\n", value >> 48, value >> 32 & 0xFFFF,
                       value >> 16 & 0xFFFF, value & 0xFFFF);
}

std::string gid_text(const fabric::Gid& gid) {
    std::string text;
    for (std::size_t i = 0; i < gid.bytes.size(); i += 2) {
        text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.bytes[i], gid.bytes[i + 1]);
    }
    return text + '\n';
}

std::string_view physical_name(fabric::PhysicalState state) {
    switch (state) {
        case fabric::PhysicalState::kSleep:
            return "Sleep";
        case fabric::PhysicalState::kPolling:
            return "Polling";
        case fabric::PhysicalState::kDisabled:
            return "Disabled";
        case fabric::PhysicalState::kTraining:
            return "PortConfigurationTraining";
        case fabric::PhysicalState::kLinkUp:
            return "LinkUp";
        case fabric::PhysicalState::kErrorRecovery:
            return "LinkErrorRecovery";
    }
    return "<unknown>";
}

bool is_infiniband(const Port& port) {
    return port.attributes().link_layer == fabric::LinkLayer::kInfiniband;
}

// Returns true for Linux's device in software, which has no hardware to name.
bool is_soft_roce(const Hca& hca) {
    return hca.personality().identity.hca_type.empty();
}

// "100 Gb/sec (4X EDR)"
std::string rate_text(const Port& port) {
    const fabric::PortAttributes& attributes = port.attributes();
    const auto lanes = properties(attributes.width).lanes;
    const fabric::LinkSpeed speed = stated_speed(attributes.speed, !is_infiniband(port));
    const std::uint32_t rate = nominal_rate(attributes.width, speed);
    const bool is_sdr = speed == fabric::LinkSpeed::kSdr;
    return fmt::format("{}{} Gb/sec ({}X{}{})\n", rate / 10, rate % 10 != 0 ? ".5" : "", lanes,
                       is_sdr ? "" : " ", is_sdr ? "" : to_string(speed));
}

std::string_view link_layer_name(const Port& port) {
    return port.attributes().link_layer == fabric::LinkLayer::kEthernet ? "Ethernet" : "InfiniBand";
}

// Where a vendor has a number of the PCI-SIG as well as one of the IEEE.
std::uint32_t pci_vendor(const DeviceIdentity& identity) {
    constexpr std::uint32_t kMellanoxAtIeee = 0x02C9;
    constexpr std::uint32_t kMellanoxAtPciSig = 0x15B3;
    constexpr std::uint32_t kNobody = 0xFFFE;
    return identity.vendor_id == kMellanoxAtIeee ? kMellanoxAtPciSig : kNobody;
}

// All processors, in words of 32 bits as the kernel prints them: "3,ffffffff".
std::string cpu_mask(std::size_t processors) {
    constexpr std::size_t kWord = 32;
    std::string text;
    for (std::size_t done = processors % kWord; done <= processors; done += kWord) {
        const std::size_t bits = done < kWord ? done : kWord;
        if (bits > 0) {
            const std::uint64_t word = (std::uint64_t{1} << bits) - 1;
            text += text.empty() ? fmt::format("{:x}", word) : fmt::format(",{:08x}", word);
        }
    }
    return text;
}

}  // namespace

DeviceTree::DeviceTree(Simulation& simulation, const std::vector<std::size_t>& hcas)
    : simulation_(simulation) {
    add(std::string(kManagement) + "abi_version", [] { return fmt::format("{}\n", kUmadAbi); });
    add(std::string(kVerbs) + "abi_version", [] { return fmt::format("{}\n", kVerbsAbi); });
    for (std::size_t number = 0; number < hcas.size(); ++number) {
        add_device(number, hcas[number]);
    }
    add_rdma_cm(hcas.front());
}

void DeviceTree::add_rdma_cm(std::size_t index) {
    const std::string folder(kRdmaCm);
    add(folder + "abi_version", [] { return fmt::format("{}\n", kRdmaCmAbi); });
    add(folder + "dev", [] { return fmt::format("{}:{}\n", kMiscMajor, kRdmaCmMinor); });
    add(folder + "uevent", [] {
        return fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/rdma_cm\nDEVMODE=0666\n",
                           kMiscMajor, kRdmaCmMinor);
    });
    add(std::string(kMaxBacklog), [] { return fmt::format("{}\n", kBacklog); });
    devices_.emplace(std::string(kNodes) + "rdma_cm",
                     DeviceFile{DeviceFileKind::kRdmaCm, index, fabric::PortNumber{}});
}

std::optional<std::string> DeviceTree::text(const std::string& path) const {
    for (const auto& [from, link] : links_) {
        if (path.size() > from.size() && path.starts_with(from) && path[from.size()] == '/') {
            return text(link.target + path.substr(from.size()));
        }
    }
    const auto found = attributes_.find(path);
    return found == attributes_.end() ? std::nullopt : std::optional(found->second());
}

std::optional<DeviceFile> DeviceTree::device(const std::string& path) const {
    const auto found = devices_.find(path);
    return found == devices_.end() ? std::nullopt : std::optional(found->second);
}

void DeviceTree::add_device(std::size_t number, std::size_t index) {
    const Hca& hca = simulation_.hca(index);
    const std::string name = fmt::format("simverbs{}", number);
    const std::string folder = fmt::format("{}{}/", kDevices, name);
    const DeviceIdentity& identity = hca.personality().identity;
    const auto fixed = [this, &folder](std::string_view file, const std::string& text) {
        add(folder + std::string(file), [text] { return text + '\n'; });
    };
    fixed("node_type", "1: CA");
    fixed("fw_ver", std::string(identity.firmware));
    fixed("hw_rev", fmt::format("{:x}", identity.hw_ver));
    fixed("hca_type", std::string(identity.hca_type));
    fixed("board_id", std::string(identity.board_id));
    add(folder + "node_desc",
        [this, &hca] { return simulation_.network().node(hca.node()).description() + '\n'; });
    add(folder + "node_guid", [&hca] { return guid_text(hca.guid()); });
    add(folder + "sys_image_guid", [&hca] { return guid_text(hca.guid()); });
    for (std::uint16_t port = 1; port <= hca.port_count(); ++port) {
        add_port(fmt::format("{}ports/{}/", folder, port), hca, port);
        if (is_infiniband(hca.port(port))) {
            add_management(name, index, port);
        }
    }
    add_pci_function(number, hca);
    const std::string verbs = fmt::format("{}uverbs{}/", kVerbs, number);
    add(verbs + "ibdev", [name] { return name + '\n'; });
    add(verbs + "abi_version", [] { return "1\n"; });
    add_node(verbs, fmt::format("uverbs{}", number), kFirstUverbsMinor + static_cast<int>(number));
    devices_.emplace(fmt::format("{}uverbs{}", kNodes, number),
                     DeviceFile{DeviceFileKind::kUverbs, index, fabric::PortNumber{}});
}

// Adds the files of a character device in the folder of its class, as Linux has them.
void DeviceTree::add_node(const std::string& folder, const std::string& name, int minor) {
    add(folder + "dev", [minor] { return fmt::format("{}:{}\n", kInfinibandMajor, minor); });
    add(folder + "uevent", [name, minor] {
        return fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}\n", kInfinibandMajor, minor,
                           name);
    });
}

// Adds what programs look for near a device: who made it, and which processors are close. Soft-RoCE
// is no device of a bus.
void DeviceTree::add_pci_function(std::size_t number, const Hca& hca) {
    const DeviceIdentity& identity = hca.personality().identity;
    if (is_soft_roce(hca)) {
        return;
    }
    const std::string place =
        fmt::format("devices/pci{0}:00/{0}:{1:02x}:00.0", kPciDomain, number + 1);
    const std::string folder = fmt::format("/sys/{}/", place);
    const auto fixed = [this, &folder](std::string_view file, const std::string& text) {
        add(folder + std::string(file), [text] { return text + '\n'; });
    };
    const std::string vendor = fmt::format("{:#06x}", pci_vendor(identity));
    const std::string device = fmt::format("{:#06x}", identity.vendor_part_id);
    fixed("vendor", vendor);
    fixed("device", device);
    fixed("subsystem_vendor", vendor);
    fixed("subsystem_device", device);
    fixed("revision", "0x00");
    const std::uint32_t sub_class = is_infiniband(hca.port(1)) ? 7 : 0;
    fixed("class", fmt::format("0x02{:02x}00", sub_class));
    const std::uint32_t vendor_id = pci_vendor(identity);
    const std::uint32_t device_id = identity.vendor_part_id;
    const std::string alias = fmt::format("pci:v{0:08X}d{1:08X}sv{0:08X}sd{1:08X}bc02sc{2:02X}i00",
                                          vendor_id, device_id, sub_class);
    fixed("modalias", alias);
    // No driver is bound to it.
    fixed(
        "uevent",
        fmt::format("PCI_CLASS=2{2:02X}00\nPCI_ID={0:04X}:{1:04X}\nPCI_SUBSYS_ID={0:04X}:{1:04X}\n"
                    "PCI_SLOT_NAME={3}:{4:02x}:00.0\nMODALIAS={5}",
                    vendor_id, device_id, sub_class, kPciDomain, number + 1, alias));
    fixed("numa_node", "0");
    const long processors = std::max(1L, sysconf(_SC_NPROCESSORS_CONF));
    fixed("local_cpus", cpu_mask(static_cast<std::size_t>(processors)));
    fixed("local_cpulist", processors == 1 ? "0" : fmt::format("0-{}", processors - 1));
    for (const std::string_view which : {"current", "max"}) {
        fixed(fmt::format("{}_link_speed", which), "16.0 GT/s PCIe");
        fixed(fmt::format("{}_link_width", which), "16");
    }
    for (const std::string& from : {fmt::format("{}simverbs{}/device", kDevices, number),
                                    fmt::format("{}uverbs{}/device", kVerbs, number)}) {
        links_.emplace(from, Link{"../../../" + place, "/sys/" + place});
    }
}

void DeviceTree::add_management(const std::string& name, std::size_t index, std::uint16_t port) {
    const std::uint32_t number = umads_++;
    for (const auto& [kind, word] :
         {std::pair(DeviceFileKind::kUmad, "umad"), std::pair(DeviceFileKind::kIssm, "issm")}) {
        const std::string folder = fmt::format("{}{}{}/", kManagement, word, number);
        add(folder + "ibdev", [name] { return name + '\n'; });
        add(folder + "port", [port] { return fmt::format("{}\n", port); });
        const int first = kind == DeviceFileKind::kUmad ? kFirstUmadMinor : kFirstIssmMinor;
        add_node(folder, fmt::format("{}{}", word, number), first + static_cast<int>(number));
        devices_.emplace(fmt::format("{}{}{}", kNodes, word, number),
                         DeviceFile{kind, index, fabric::PortNumber{port}});
    }
}

void DeviceTree::add_port(const std::string& folder, const Hca& hca, std::uint16_t number) {
    const Port& port = hca.port(number);
    add(folder + "state", [&port] {
        const std::string_view name = to_string(port.state());
        return fmt::format("{}: {}\n", static_cast<unsigned>(port.state()), name);
    });
    add(folder + "phys_state", [&port] {
        return fmt::format("{}: {}\n", static_cast<unsigned>(port.physical_state()),
                           physical_name(port.physical_state()));
    });
    add(folder + "lid", [&port] { return fmt::format("{:#x}\n", port.attributes().lid.value()); });
    add(folder + "lid_mask_count", [&port] { return fmt::format("{}\n", port.attributes().lmc); });
    add(folder + "sm_lid",
        [&port] { return fmt::format("{:#x}\n", port.attributes().sm_lid.value()); });
    add(folder + "sm_sl", [&port] { return fmt::format("{}\n", port.attributes().sm_sl); });
    add(folder + "rate", [&port] { return rate_text(port); });
    add(folder + "link_layer", [&port] { return fmt::format("{}\n", link_layer_name(port)); });
    // On Ethernet Linux keeps IP_BASED_GIDS out of it: uverbs adds that bit for programs.
    const std::uint64_t of_ethernet =
        hca.personality().limits.port.ethernet_caps.bits & ~PortCaps(PortCap::kIpBasedGids).bits;
    add(folder + "cap_mask", [this, &port, of_ethernet] {
        fabric::ManagedNode* node = simulation_.managed_network().find(port.node().id());
        const std::uint64_t bits = node == nullptr || !is_infiniband(port)
                                       ? of_ethernet
                                       : node->subnet().capabilities(port.number());
        return fmt::format("{:#010x}\n", bits);
    });
    add_tables(folder, port, hca.personality().limits.port);
    add_counters(folder, hca, number);
}

// Entries that a table may still get stand there as zeros.
void DeviceTree::add_tables(const std::string& folder, const Port& port, const PortLimits& limits) {
    const std::size_t pkeys = is_infiniband(port) ? limits.pkey_entries : 1;
    for (std::size_t i = 0; i < limits.gid_entries; ++i) {
        add(fmt::format("{}gids/{}", folder, i), [&port, i] {
            const auto& table = port.attributes().gids;
            return gid_text(i < table.size() ? table[i].gid : fabric::Gid{});
        });
        // The host's addresses are those of the loopback interface. Where there is none the kernel
        // answers EINVAL, here the file is empty.
        add(fmt::format("{}gid_attrs/ndevs/{}", folder, i), [&port, i] {
            const auto& table = port.attributes().gids;
            const bool has_one = i < table.size() && table[i].type != fabric::GidType::kInfiniband;
            return std::string(has_one ? "lo\n" : "");
        });
        add(fmt::format("{}gid_attrs/types/{}", folder, i), [&port, i] {
            const auto& table = port.attributes().gids;
            const bool v2 = i < table.size() && table[i].type == fabric::GidType::kRoceV2;
            return std::string(v2 ? "RoCE v2\n" : "IB/RoCE v1\n");
        });
    }
    for (std::size_t i = 0; i < pkeys; ++i) {
        add(fmt::format("{}pkeys/{}", folder, i), [&port, i] {
            const auto& table = port.attributes().pkeys;
            return fmt::format("{:#06x}\n", i < table.size() ? table[i] : 0);
        });
    }
}

void DeviceTree::add_counters(const std::string& folder, const Hca& hca, std::uint16_t number) {
    const fabric::PortNumber number_in_node{number};
    const fabric::NodeId node = hca.node();
    const Port& port = hca.port(number);
    if (is_infiniband(port)) {
        for (const CounterFile& row : kCounterFiles) {
            add(fmt::format("{}counters/{}", folder, row.name), [this, node, number_in_node, row] {
                fabric::ManagedNode* managed = simulation_.managed_network().find(node);
                return fmt::format("{}\n", managed == nullptr ? 0
                                                              : managed->performance().value(
                                                                    number_in_node, row.counter));
            });
        }
    } else if (!is_soft_roce(hca)) {
        for (const EthernetCounterFile& row : kEthernetCounterFiles) {
            add(fmt::format("{}counters/{}", folder, row.name),
                [&port, row] { return fmt::format("{}\n", row.value(port.counters())); });
        }
    }
    add_hw_counters(folder + "hw_counters/", hca, number);
}

void DeviceTree::add_hw_counters(const std::string& folder, const Hca& hca, std::uint16_t number) {
    if (is_soft_roce(hca)) {
        const Port& port = hca.port(number);
        for (const SoftRoceCounterFile& row : kSoftRoceCounterFiles) {
            add(folder + std::string(row.name), [&hca, &port, number, row] {
                return fmt::format("{}\n", row.value(port.counters(), hca.hw_counters(number)));
            });
        }
        return;
    }
    for (const HwCounterRow& row : kHwCounters) {
        add(folder + std::string(row.name), [&hca, number, row] {
            return fmt::format("{}\n", hca.hw_counters(number).value(row.counter));
        });
    }
}

}  // namespace simverbs
