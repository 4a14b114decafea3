// Subnet administration (IBA 15.2): answers queries about the subnet that its manager knows, keeps
// multicast groups, services and subscriptions. Refuses InformInfo of LID ranges, GetTraceTable and
// paths to other subnets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/sm/sa_records.hpp"
#include "fabric/sm/subnet.hpp"

namespace fabric {

class SweepingSm;

class SubnetAdministration final : private AgentClient {
  public:
    // As OpenSM's default: a query with this SM_Key sees what is others'.
    static constexpr std::uint64_t kTrustedKey = 1;

    explicit SubnetAdministration(SweepingSm& sm);
    ~SubnetAdministration();
    SubnetAdministration(const SubnetAdministration&) = delete;
    SubnetAdministration& operator=(const SubnetAdministration&) = delete;

    // Ports that came and went are reported; groups lose members that are away.
    void subnet_swept(const Subnet& before, const Subnet& now);
    // Reported to those who have subscribed.
    void trap_received(mad::ConstBytes notice);

  private:
    using Record = std::vector<std::uint8_t>;
    struct Query {
        mad::SaAttribute attribute;
        mad::Method method;
        std::uint64_t mask;
        bool is_trusted;
        mad::ConstBytes data;
        const ReceivedDatagram& received;

        [[nodiscard]] bool has(unsigned component) const { return (mask >> component & 1) != 0; }
    };
    struct Answer {
        mad::Status status = mad::Status::kOk;
        std::vector<Record> records{};
    };
    struct Group {
        Record record;                         // without a member's components
        std::map<Guid, std::uint8_t> members;  // JoinState
    };
    // Returns true while it has a full member.
    [[nodiscard]] static bool is_kept(const Group& group);
    struct Service {
        Record record;
        SimTime since;
    };
    struct Subscription {
        Record inform_info;
        DatagramAddress subscriber;
    };

    void datagram_received(const ReceivedDatagram& datagram) override;
    void send_finished(const FinishedSend& /*send*/) override {}

    Answer execute(const Query& query);
    void respond(const ReceivedDatagram& request, const Answer& answer);

    // sa_queries.cpp
    [[nodiscard]] std::vector<Record> records_of(mad::SaAttribute attribute) const;
    [[nodiscard]] std::vector<Record> class_port_info() const;
    [[nodiscard]] std::vector<Record> nodes() const;
    [[nodiscard]] std::vector<Record> port_infos() const;
    [[nodiscard]] std::vector<Record> switch_infos() const;
    [[nodiscard]] std::vector<Record> links() const;
    [[nodiscard]] std::vector<Record> linear_tables() const;
    [[nodiscard]] std::vector<Record> multicast_tables() const;
    [[nodiscard]] std::vector<Record> pkey_tables() const;
    [[nodiscard]] std::vector<Record> guid_infos() const;
    [[nodiscard]] std::vector<Record> sm_infos() const;

    // sa_paths.cpp
    [[nodiscard]] Answer paths(const Query& query) const;
    [[nodiscard]] Answer multi_paths(const Query& query) const;
    struct PathWish;
    void add_path(const PathWish& wish, const SubnetPortRef& from, const SubnetPortRef& to,
                  std::vector<Record>& records) const;
    [[nodiscard]] std::vector<SubnetPortRef> ends_of(const Query& query, bool source) const;
    [[nodiscard]] std::optional<SubnetPortRef> find_gid(const Gid& gid) const;

    // sa_groups.cpp
    Answer members(const Query& query);
    void join(const Query& query);
    void leave(const Query& query);
    [[nodiscard]] Record member_record(const Group& group, Guid port, std::uint8_t state) const;
    void publish_groups(std::function<void()> done);
    [[nodiscard]] Lid free_mlid() const;

    // sa_subscriptions.cpp
    Answer services(const Query& query);
    Answer inform(const Query& query);
    [[nodiscard]] std::vector<Record> inform_infos() const;
    void report(mad::ConstBytes notice);
    void report_gid(std::uint16_t trap, const Gid& gid);

    [[nodiscard]] const Subnet& subnet() const;
    [[nodiscard]] Gid gid_of(Guid port) const;

    SweepingSm& sm_;
    AgentId agent_;
    std::map<Gid, Group> groups_;
    std::vector<Service> services_;
    std::vector<Subscription> subscriptions_;
    std::uint32_t last_report_ = 0;
};

}  // namespace fabric
