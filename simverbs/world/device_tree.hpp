// The files of the devices of one host in /sys/class/infiniband* and /dev/infiniband, and those of
// its rdma_cm: paths, and the text behind each, in the kernel's formats
// (Documentation/ABI/stable/sysfs-class-infiniband).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/strong_id.hpp"

#include "simverbs/world/simulation.hpp"

namespace simverbs {

// RDMA_USER_CM_ABI_VERSION, and the numbers of /dev/infiniband/rdma_cm, a miscellaneous device:
// Linux takes a free minor number, from 255 down.
inline constexpr int kRdmaCmAbi = 4;
inline constexpr int kMiscMajor = 10;
inline constexpr int kRdmaCmMinor = 255;

enum class DeviceFileKind : std::uint8_t {
    kUmad,    // management datagrams of a port
    kIssm,    // held open by whoever is a subnet manager at a port
    kUverbs,  // there to be looked at: no program may open it
    kRdmaCm,  // of the host, not of a device
};

struct DeviceFile {
    DeviceFileKind kind;
    std::size_t hca;  // index in the simulation; of kRdmaCm the host's first
    fabric::PortNumber port;
};

class DeviceTree {
  public:
    // `hcas` in the order of their names, simverbs0 and so on. The simulation outlives it.
    DeviceTree(Simulation& simulation, const std::vector<std::size_t>& hcas);

    // "/sys/class/infiniband/simverbs0/node_guid": its text as of now, with the newline. Nothing:
    // there is no such file, or it is a folder. Also by a path through a link.
    [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
    // "/dev/infiniband/umad0".
    [[nodiscard]] std::optional<DeviceFile> device(const std::string& path) const;

    // Calls visit(path, is_device) for every file.
    template <class F>
    void for_each_file(F&& visit) const {
        for (const auto& [path, text] : attributes_) {
            visit(path, false);
        }
        for (const auto& [path, file] : devices_) {
            visit(path, true);
        }
    }

    // Calls visit(path, target) for every symbolic link; the target is relative.
    template <class F>
    void for_each_link(F&& visit) const {
        for (const auto& [path, link] : links_) {
            visit(path, link.text);
        }
    }

  private:
    struct Link {
        std::string text;    // as readlink(2) shows it
        std::string target;  // the folder's whole path
    };
    using Text = std::function<std::string()>;

    void add(std::string path, Text text) { attributes_.emplace(std::move(path), std::move(text)); }
    void add_device(std::size_t number, std::size_t index);
    void add_rdma_cm(std::size_t index);
    void add_node(const std::string& folder, const std::string& name, int minor);
    void add_pci_function(std::size_t number, const Hca& hca);
    void add_port(const std::string& folder, const Hca& hca, std::uint16_t number);
    void add_tables(const std::string& folder, const fabric::Port& port, const PortLimits& limits);
    void add_counters(const std::string& folder, const Hca& hca, std::uint16_t number);
    void add_hw_counters(const std::string& folder, const Hca& hca, std::uint16_t number);
    void add_management(const std::string& name, std::size_t index, std::uint16_t port);

    Simulation& simulation_;
    std::map<std::string, Text> attributes_;
    std::map<std::string, DeviceFile> devices_;
    std::map<std::string, Link> links_;
    std::uint32_t umads_ = 0;
};

}  // namespace simverbs
