// The server's side of `simverbs fabric`: looks at a running fabric and changes it, with the events
// that follow.
//
// A change takes effect at once in the schedule free, else as a command of a client does, when
// everyone waits; a run with one is not deterministic: nothing in it says when the next will come.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fabric/core/timer.hpp"

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/world/run_marks.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class FabricRequests final : private fabric::EventHandler {
  public:
    // Both outlive it. `marks` learns of changes.
    FabricRequests(Simulation& simulation, RunMarks& marks);
    ~FabricRequests();
    FabricRequests(const FabricRequests&) = delete;
    FabricRequests& operator=(const FabricRequests&) = delete;

    // Answers, and closes the socket; later where it is a change and `changes_wait`.
    void serve(int socket, const FabricRequest& request, bool changes_wait);
    // Makes the changes that wait; whether there were any.
    bool run_waiting();
    // Returns true while a request waits to be executed.
    [[nodiscard]] bool is_asked() const { return !waiting_.empty(); }

  private:
    static constexpr std::size_t kMaxWaiting = 64;

    struct Waiting {
        int socket;
        FabricRequest request;
    };
    struct Answer {
        int error = 0;  // errno
        std::string text;
    };

    Answer execute(const FabricRequest& request);
    Answer show(const FabricRequest& request, const std::string& name);
    Answer count(const FabricRequest& request, const std::string& name);
    Answer change_link(FabricAction action, fabric::Link& link, const std::string& value);
    Answer take_down(fabric::Link& link, const std::string& duration);
    Answer take_up(fabric::Link& link);
    Answer change_port(FabricAction action, fabric::Port& port, const std::string& value);
    Answer manage_port(FabricAction action, fabric::Port& port, const std::string& value);
    Answer set_address(fabric::Port& port, const std::string& value);
    Answer set_lid(fabric::Port& port, const std::string& value);
    Answer set_pkeys(fabric::Port& port, const std::string& value);
    Answer set_gid(fabric::Port& port, const std::string& value);
    Answer hold(fabric::Port& port, bool enable);

    [[nodiscard]] fabric::Node* find_node(const std::string& name) const;
    [[nodiscard]] Answer no_node(const std::string& name) const;
    [[nodiscard]] Answer no_link(const std::string& name) const;
    // nullptr with `wrong` set: there is none.
    [[nodiscard]] fabric::Port* find_port(const std::string& name, Answer& wrong) const;
    [[nodiscard]] const PortLimits& limits_of(const fabric::Port& port) const;
    void trace(fabric::NodeId node, const FabricRequest& request);
    void reply(int socket, const Answer& answer);

    void handle(const fabric::Event& event) override;  // a link that was down for a while

    Simulation& simulation_;
    RunMarks& marks_;
    std::vector<Waiting> waiting_;
    std::map<std::size_t, fabric::Timer> mending_;  // by the link's index
};

}  // namespace simverbs
