// rdma_cm on the hosts of a simulation: what the modules ib_cm, ib_sa, rdma_cm and rdma_ucm of one
// host's kernel have in common, with the devices of the simulation below them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simverbs/cm/cm_ports.hpp"
#include "simverbs/hca/hca_client.hpp"
#include "simverbs/host_rdma_cm/ip_addresses.hpp"
#include "simverbs/host_rdma_cm/sa_client.hpp"
#include "simverbs/rdma_cm/environment.hpp"
#include "simverbs/rdma_cm/ucma.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs::rdma_cm {

struct NumberedHca {
    std::size_t rank;      // in the simulation
    std::uint32_t number;  // by which programs know it (ibv_get_device_index)
};

class HostRdmaCm final : public Environment, private SaUser {
  public:
    // `hcas`: at least one, in the order of their names. Those of several hosts are one kernel's
    // then.
    HostRdmaCm(Simulation& simulation, const std::vector<NumberedHca>& hcas);
    ~HostRdmaCm();
    HostRdmaCm(const HostRdmaCm&) = delete;
    HostRdmaCm& operator=(const HostRdmaCm&) = delete;

    [[nodiscard]] Ucma& ucma() { return ucma_; }

    // Environment. What the ports have now.
    [[nodiscard]] std::span<const DeviceInfo> devices() const override;
    [[nodiscard]] const DeviceInfo* find_device(DeviceIndex device) const override;
    [[nodiscard]] std::optional<LocalPort> find_local(const fabric::Gid& ip) const override;
    [[nodiscard]] std::optional<fabric::Gid> source_for(const fabric::Gid& remote) const override;
    [[nodiscard]] std::optional<fabric::Gid> find_remote(const LocalPort& local,
                                                         const fabric::Gid& remote) const override;
    void query_path(PathQueryId query, const PathQuery& wanted) override;
    void cancel_query(PathQueryId query) override;
    void join(MembershipId membership, const JoinRequest& wanted) override;
    void leave(MembershipId membership) override;

  private:
    // A device: its communication manager, and its ports' ways to subnet administration.
    class Device final : private HcaClient {
      public:
        Device(Simulation& simulation, const NumberedHca& of, HostRdmaCm& host, DeviceIndex index);
        ~Device();
        Device(const Device&) = delete;
        Device& operator=(const Device&) = delete;

        Hca& hca;
        std::uint32_t number;  // NumberedHca
        cm::CmPorts cm_ports;
        cm::HostCm cm;
        std::map<fabric::PortNumber, SaClient> sa_clients;  // of InfiniBand ports
        bool is_present = true;

      private:
        void device_gone() override;
        void device_back() override;
        void port_event(const fabric::Port& port, AsyncEvent event) override;

        HostRdmaCm& host_;
        DeviceIndex index_;
    };
    enum class Joined : std::uint8_t { kAsked, kMember, kEnded };
    struct Membership {
        LocalPort local;
        fabric::Gid mgid;  // zero until the subnet administration has assigned one
        JoinState state;
        Joined joined = Joined::kAsked;
    };

    void answered(std::uint64_t token, int error, std::span<const std::uint8_t> record) override;
    void join_answered(MembershipId id, int error, std::span<const std::uint8_t> record);
    void leave_group(const Membership& membership);
    void end_memberships(DeviceIndex device, fabric::PortNumber port);
    void list_devices();
    void refresh(DeviceInfo& info) const;
    [[nodiscard]] SaClient& sa_client(const LocalPort& local);
    [[nodiscard]] const fabric::Port& port_of(const LocalPort& local) const;

    IpAddresses addresses_;
    std::vector<fabric::NodeId> nodes_;  // by DeviceIndex
    Ucma ucma_;
    std::vector<std::unique_ptr<Device>> devices_;  // by DeviceIndex
    // Those that are present, in the same order.
    std::vector<fabric::NodeId> present_nodes_;
    mutable std::vector<DeviceInfo> infos_;
    std::map<MembershipId, Membership> memberships_;
    std::map<std::uint64_t, Membership> left_unanswered_;  // by token
    std::uint64_t last_delete_ = 0;
};

// One for each host, since a host without a program of rdma_cm answers requests, too. Without it a
// simulation is as if there were no rdma_cm.
class RdmaCmHosts {
  public:
    explicit RdmaCmHosts(Simulation& simulation);

    // The host exists (asserted).
    [[nodiscard]] HostRdmaCm& host(std::string_view name);

  private:
    std::map<std::string, HostRdmaCm, std::less<>> hosts_;
};

}  // namespace simverbs::rdma_cm
