// Where the clients of a port send and receive management datagrams: what ib_mad is in Linux. One
// for each port of a host, and for port 0 of an InfiniBand switch. Matches answers to requests by
// transaction id, repeats and gives up in virtual time, cuts and joins RMPP messages. Refuses
// snooping, redirection and the two-sided RMPP of GetMulti.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/agent.hpp"
#include "fabric/mad/datagram.hpp"
#include "fabric/mad/rmpp.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

// The port numbers in the keys of a node's management events: beyond those of other timers.
inline constexpr std::uint16_t kManagementPortKey = 1024;  // and the port's number
inline constexpr std::uint16_t kSubnetAgentKey = 2048;
inline constexpr std::uint16_t kManagedNodeKey = 2049;
inline constexpr std::uint16_t kSubnetManagerKey = 2050;

// A datagram that came in, or that a node sends to itself.
struct ArrivedDatagram {
    mad::Datagram datagram;
    DatagramAddress from;
    PortNumber port;               // it came in by
    std::uint32_t destination_qp;  // 0 or 1
};

// The services that a management port needs of its node.
class DatagramCarrier {
  public:
    // To the wire, or back into the node. 0, or EINVAL: a directed route that does not begin at
    // this port (IBA 14.2.2); on Ethernet, no global address, or a GID index that the port does not
    // have; and errors of resolve_mac().
    virtual int carry(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
                      const DatagramAddress& to) = 0;
    virtual void mark_sm(Port& port, bool is_sm) = 0;

  protected:
    ~DatagramCarrier() = default;
};

class ManagementPort final : private EventHandler {
  public:
    ManagementPort(Port& port, EventLoop& loop, DatagramCarrier& carrier);
    ~ManagementPort();
    ManagementPort(const ManagementPort&) = delete;
    ManagementPort& operator=(const ManagementPort&) = delete;

    [[nodiscard]] Port& port() const { return port_; }

    // Nothing, which is EINVAL: no such queue pair (Ethernet ports have 1 alone) or class, or
    // another agent takes one of these methods. The client outlives its agent.
    std::optional<AgentId> register_agent(const AgentSpec& spec, AgentClient& client);
    // Forgets what it has sent.
    void unregister_agent(AgentId agent);

    // 0, or EINVAL: no such agent, a datagram of less than its headers or, without RMPP, of more
    // than 256 bytes, of a class for the other queue pair, a P_Key index that the port does not
    // have; or an error of DatagramCarrier::carry(). The high half of a request's
    // transaction id is overwritten, unless the agent's client makes these ids.
    int send(AgentId agent, const SendRequest& request);

    // PortInfo:CapabilityMask.IsSM for as long as any holder says so (/dev/infiniband/issmN).
    void hold_is_sm();
    void release_is_sm();

    // From the node: each client is told once.
    void tell_link_changed();
    // From the node: true when an agent took it.
    bool deliver(const ArrivedDatagram& arrived);

  private:
    // As in Linux an AgentId has 24 bits.
    static constexpr std::uint32_t kFirstAgentWithIds = 0x80'0000;
    // Linux's: an acknowledgement is awaited so long at the most.
    static constexpr SimDuration kAcknowledgementTime{2'000'000'000'000};  // 2 s
    // A message that has stopped half way, or whose repetitions are still acknowledged, is kept.
    static constexpr SimDuration kReceiverLife{10'000'000'000'000};  // 10 s

    struct Agent {
        AgentSpec spec;
        AgentClient* client;
    };
    // A request that waits for its answer, or an RMPP message under way.
    struct Outstanding {
        AgentId agent;
        std::vector<std::uint8_t> bytes;
        DatagramAddress to;
        SimDuration timeout;
        std::uint32_t retries;
        std::uint64_t token;
        SimTime deadline;
        std::optional<mad::RmppSender> rmpp;

        [[nodiscard]] bool awaits_acknowledgement() const {
            return rmpp && !rmpp->all_acknowledged();
        }
    };
    using OutstandingList = std::list<Outstanding>;

    void handle(const Event& event) override;
    [[nodiscard]] const Agent* find(AgentId agent) const;
    [[nodiscard]] std::optional<AgentId> taker_of(const ArrivedDatagram& arrived) const;
    [[nodiscard]] bool conflicts(const AgentSpec& spec) const;
    int transmit(Outstanding& one);
    void wait_for(Outstanding& one);
    void rearm();
    void expire(OutstandingList::iterator due);
    void finish(OutstandingList::iterator one, SendOutcome outcome);
    void hand_over(AgentId agent, const ArrivedDatagram& arrived, mad::ConstBytes bytes);
    void rmpp_arrived(AgentId agent, const ArrivedDatagram& arrived);
    void rmpp_data(AgentId agent, const ArrivedDatagram& arrived);
    void rmpp_acknowledged(AgentId agent, const ArrivedDatagram& arrived);
    OutstandingList::iterator find_message(AgentId agent, const ArrivedDatagram& arrived);

    Port& port_;
    EventLoop& loop_;
    DatagramCarrier& carrier_;
    Timer timer_;
    std::uint32_t last_agent_ = 0;
    std::uint32_t last_agent_with_ids_ = kFirstAgentWithIds - 1;
    std::uint32_t sm_holders_ = 0;
    std::map<AgentId, Agent> agents_;
    OutstandingList outstanding_;  // in order of sending
    std::map<mad::RmppKey, mad::RmppReceiver> receiving_;
};

}  // namespace fabric
