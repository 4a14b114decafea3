// Subnet management requests by directed route, so many at a time, in the order of asking. Each has
// its answer, or the word that none came, and something may be done when all have.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "fabric/mad/attributes.hpp"
#include "fabric/mad/management_port.hpp"

namespace fabric {

class SmpWindow {
  public:
    static constexpr std::size_t kOutstanding = 64;
    // As OpenSM: 200 ms, and three times more.
    static constexpr SimDuration kAnswerTime{200'000'000'000};
    static constexpr std::uint32_t kRetries = 3;

    using Path = std::vector<std::uint8_t>;  // ports to leave by, the own one first
    // nullptr: nobody has answered.
    using Answer = std::function<void(const mad::Datagram*)>;

    SmpWindow(ManagementPort& port, std::uint64_t m_key) : port_(port), m_key_(m_key) {}

    void set_agent(AgentId agent) { agent_ = agent; }

    void get(const Path& path, mad::Attribute attribute, std::uint32_t modifier, Answer answer);
    void set(const Path& path, mad::Attribute attribute, std::uint32_t modifier,
             mad::ConstBytes data, Answer answer);
    // Once, when nothing is asked any longer; at once if that is so already. Steps are done in the
    // order of these calls.
    void then(std::function<void()> step);

    // From the client of the port: about a request of these.
    void answered(const ReceivedDatagram& datagram);
    void finished(const FinishedSend& send);

  private:
    struct Request {
        mad::Datagram datagram;
        Answer answer;
    };

    void ask(const Path& path, mad::Datagram& datagram, Answer answer);
    void fill();
    void settle(std::uint64_t token, const mad::Datagram* answer);

    ManagementPort& port_;
    std::uint64_t m_key_;
    AgentId agent_;
    std::deque<Request> waiting_;
    std::map<std::uint64_t, Answer> outstanding_;  // by token
    std::uint64_t last_token_ = 0;
    std::vector<std::function<void()>> then_;
};

}  // namespace fabric
