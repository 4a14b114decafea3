// Where the clients of a port send and receive management datagrams: what ib_mad is in Linux. One
// for each InfiniBand port of a host, and for port 0 of a switch. Matches answers to requests by
// transaction id, repeats and gives up in virtual time, cuts and joins RMPP messages. Refuses
// snooping, redirection and the two-sided RMPP of GetMulti.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/agent.hpp"
#include "fabric/mad/datagram.hpp"
#include "fabric/mad/rmpp.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

// A datagram that came in, or that a node sends to itself.
struct ArrivedDatagram {
    mad::Datagram datagram;
    DatagramAddress from;
    PortNumber port;               // it came in by
    std::uint32_t destination_qp;  // 0 or 1
};

// The way out of a port, to the wire or back into the node.
class DatagramCarrier {
  public:
    // False: a directed route that does not begin at this port (IBA 14.2.2).
    virtual bool carry(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
                       const DatagramAddress& to) = 0;

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

    // Nothing, which is EINVAL: no such queue pair or class, or another agent takes one of these
    // methods. The client outlives its agent.
    std::optional<AgentId> register_agent(const AgentSpec& spec, AgentClient& client);
    // What it has sent is forgotten.
    void unregister_agent(AgentId agent);

    // 0, or EINVAL: no such agent, a datagram of less than its headers or, without RMPP, of more
    // than 256 bytes, a P_Key index that the port does not have, a directed route that does not
    // begin at this port. The high half of a request's transaction id is overwritten.
    int send(AgentId agent, const SendRequest& request);

    // PortInfo:CapabilityMask.IsSM for as long as any holder says so (/dev/infiniband/issmN).
    void hold_is_sm();
    void release_is_sm();

    // From the node: true when an agent took it.
    bool deliver(const ArrivedDatagram& arrived);

  private:
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
        std::uint64_t order;  // of sending
        std::optional<mad::RmppSender> rmpp;
        bool waits_for_answer;
    };
    using OutstandingList = std::list<Outstanding>;

    void handle(const Event& event) override;
    [[nodiscard]] Agent* find(AgentId agent);
    [[nodiscard]] AgentId taker_of(const mad::Datagram& datagram, std::uint32_t qp) const;
    OutstandingList::iterator find_request(AgentId agent, const mad::Datagram& answer);
    bool transmit(Outstanding& one);
    void send_segments(Outstanding& one);
    void wait_for(Outstanding& one);
    void rearm();
    void expire(OutstandingList::iterator one);
    void finish(OutstandingList::iterator one, SendOutcome outcome);
    void deliver_to(AgentId agent, const ArrivedDatagram& arrived,
                    std::span<const std::uint8_t> bytes);
    void rmpp_arrived(AgentId agent, const ArrivedDatagram& arrived);
    void rmpp_data(AgentId agent, const ArrivedDatagram& arrived);
    void rmpp_acknowledged(AgentId agent, const ArrivedDatagram& arrived);

    Port& port_;
    EventLoop& loop_;
    DatagramCarrier& carrier_;
    Timer timer_;
    std::uint32_t last_agent_ = 0;
    std::uint64_t last_order_ = 0;
    std::uint32_t sm_holders_ = 0;
    std::map<AgentId, Agent> agents_;
    OutstandingList outstanding_;
    std::map<mad::RmppKey, mad::RmppReceiver> receiving_;
};

}  // namespace fabric
