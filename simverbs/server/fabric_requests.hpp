// The server's side of `simverbs fabric`: looks at a running fabric and changes it, with the events
// that follow.
//
// A change takes effect at once in the schedule free, else as a command of a client does, when
// everyone waits; a run with one is not deterministic: nothing in it says when the next will come.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/fabric_answer.hpp"
#include "simverbs/server/fabric_changes.hpp"
#include "simverbs/server/fabric_lookup.hpp"
#include "simverbs/world/run_marks.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class FabricRequests {
  public:
    // Both outlive it. `marks` learns of changes; `name_users` names the processes that use
    // devices, `status` answers kStatus.
    FabricRequests(Simulation& simulation, RunMarks& marks, std::function<std::string()> name_users,
                   std::function<std::string()> status);
    ~FabricRequests();
    FabricRequests(const FabricRequests&) = delete;
    FabricRequests& operator=(const FabricRequests&) = delete;

    // Answers, and closes the socket; later where it is a change and `changes_wait`.
    void serve(int socket, const FabricRequest& request, bool changes_wait);
    // Makes the changes that wait, but those whose client has hung up; whether there were any.
    bool run_waiting();
    // Returns true while a request waits to be executed.
    [[nodiscard]] bool is_asked() const { return !waiting_.empty(); }

  private:
    static constexpr std::size_t kMaxWaiting = 64;

    struct Waiting {
        int socket;
        FabricRequest request;
    };

    FabricAnswer execute(const FabricRequest& request);
    FabricAnswer show(const FabricRequest& request, const std::string& name);
    FabricAnswer count(const FabricRequest& request, const std::string& name);
    void trace(fabric::NodeId node, const FabricRequest& request);
    void reply(int socket, const FabricAnswer& answer);

    Simulation& simulation_;
    RunMarks& marks_;
    std::function<std::string()> name_users_;
    std::function<std::string()> status_;
    FabricLookup lookup_;
    FabricChanges changes_;
    std::vector<Waiting> waiting_;
};

}  // namespace simverbs
