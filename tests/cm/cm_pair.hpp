// Two communication managers on one event loop, joined by a carrier that loses, repeats and delays
// messages as a test asks it to. Each side answers what it is asked, unless told not to.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"

#include "simverbs/cm/host_cm.hpp"

namespace simverbs::cm::test {

using fabric::SimDuration;
using fabric::SimTime;
using namespace fabric::literals;

inline constexpr SimDuration kWireDelay = 5_us;

// A message on its way: how often it arrives, and how much later.
struct Fate {
    int copies = 1;
    SimDuration delay{};
};
// `sender`: 0 or 1. `nth` counts that sender's messages of this kind from 0.
using Judge = std::function<Fate(int sender, CmMessage message, int nth)>;

struct Sent {
    SimTime time;
    int sender;
    Message message;
};

class Carrier final : public fabric::EventHandler {
  public:
    explicit Carrier(fabric::EventLoop& loop) : loop_(loop) {}

    void connect(int side, HostCm& cm) { managers_.at(static_cast<std::size_t>(side)) = &cm; }
    void carry(int sender, const Address& to, const Datagram& datagram);
    [[nodiscard]] int count(int sender, CmMessage message) const;

    Judge judge = [](int, CmMessage, int) { return Fate{}; };
    std::vector<Sent> sent;

  private:
    struct InFlight {
        int receiver;
        Datagram datagram;
        Address from;
    };
    void handle(const fabric::Event& event) override;

    fabric::EventLoop& loop_;
    std::array<HostCm*, 2> managers_{};
    std::vector<InFlight> in_flight_;
};

struct Seen {
    SimTime time;
    CmEvent event;
};

class Side final : public CmCarrier, public CmUser {
  public:
    Side(fabric::EventLoop& loop, Carrier& carrier, int number);

    void send(const Address& to, const Datagram& datagram) override;
    void cm_event(const CmEvent& event) override;

    // Names of the events so far, in order.
    [[nodiscard]] std::vector<std::string> events() const;
    [[nodiscard]] const Seen* last(EventType type) const;
    Connection& connection() { return *cm.find(id); }

    ConnectionId id;  // of the connection under test
    bool answers = true;
    RepParameters reply{.qpn = 0x200, .starting_psn = 7};
    std::function<void(const CmEvent&)> on_event;
    std::vector<Seen> seen;

  private:
    fabric::EventLoop& loop_;
    Carrier& carrier_;
    int number_;

  public:
    HostCm cm;
};

inline constexpr std::uint64_t kServiceId = 0x0000'0000'0106'1234;
inline constexpr std::uint32_t kActiveQpn = 0x100;
inline constexpr std::uint32_t kPassiveQpn = 0x200;

Address address_of(int side);
ReqParameters request_parameters();

class CmPair {
  public:
    CmPair();

    // Listens, sends the REQ and runs until nothing is left.
    void connect(const ReqParameters& parameters = request_parameters());
    void disconnect() {
        active.connection().send_dreq({});
        run();
    }
    void run() { loop.run_until(SimTime::max()); }
    [[nodiscard]] CmState active_state() { return state_of(active); }
    [[nodiscard]] CmState passive_state() { return state_of(passive); }

    fabric::EventLoop loop;
    Carrier carrier{loop};
    Side active{loop, carrier, 0};
    Side passive{loop, carrier, 1};
    ConnectionId listener;

  private:
    static CmState state_of(Side& side) {
        Connection* const connection = side.cm.find(side.id);
        return connection == nullptr ? CmState::kIdle : connection->state();
    }
};

}  // namespace simverbs::cm::test
