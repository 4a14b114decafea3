// Connections that the programs of a scenario make by rdma_cm: an id for each end, and what
// librdmacm does for a program between two events. Events are taken as soon as they wait, except
// those of hosts whose programs are stopped.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/model/rdma_cm_events.hpp"

#include "scenarios/engine/cm_file.hpp"
#include "scenarios/engine/observation.hpp"

namespace scenarios {

struct End;
struct Host;

// The answer of a call of librdmacm.
struct CmAnswer {
    std::string_view call;  // "rdma_connect"
    int error = 0;          // an errno
};

// How a connect, accept or join ended: by an event, or by a call that was refused.
struct CmOutcome {
    std::optional<CmEventSeen> event;
    CmAnswer refused{};
};

// The destination of a connect, the group of a join.
struct CmDestination {
    std::string address;
    std::uint16_t port = 0;
    std::uint32_t timeout_ms = 0;  // of the resolution of the address, and of that of the route
    std::string private_data{};
};

class CmHosts {
  public:
    CmHosts() = default;
    CmHosts(const CmHosts&) = delete;
    CmHosts& operator=(const CmHosts&) = delete;

    CmAnswer listen(Host& host, ibv_qp_type type, std::uint16_t port, std::uint32_t backlog);
    // These begin anew where the end has an id already. outcome() tells what comes of them.
    CmAnswer connect(End& end, const CmDestination& to);
    CmAnswer join(End& end, const CmDestination& group);
    // EINVAL: no request of the peer waits.
    CmAnswer accept(End& end, const std::string& private_data);
    CmAnswer reject(End& end, std::uint8_t reason, const std::string& private_data);
    [[nodiscard]] bool has_request(const End& end) const;
    // EINVAL: the end has no id.
    CmAnswer disconnect(End& end);
    CmAnswer leave(End& end);
    CmAnswer destroy_id(End& end);

    // Nothing: it is under way. Of the last connect, accept or join.
    [[nodiscard]] const CmOutcome* outcome(const End& end) const;
    [[nodiscard]] const std::vector<CmEventSeen>& events() const { return events_; }
    // The ends that have joined it.
    [[nodiscard]] std::vector<End*> members_of(const ibv_gid& group) const;
    // A program has used rdma_cm.
    [[nodiscard]] bool is_open() const { return !files_.empty(); }
    // Takes the events that wait. Returns whether there were any.
    bool read(std::int64_t now);
    // Ends all ids.
    void close();

  private:
    struct Id {
        std::uint64_t name = 0;
        Host* host = nullptr;
        End* end = nullptr;  // nullptr: of a listener
        std::uint32_t number = 0;
        CmDestination to{};
        bool joins = false;
        bool has_failed = false;  // librdmacm: connect_error
        std::optional<std::uint32_t> membership{};
        ibv_gid group{};
        std::uint16_t group_lid = 0;
        std::optional<CmOutcome> outcome{};
    };
    // A request that nobody has answered.
    struct Request {
        Host* host;
        const End* end;  // nullptr: of no end that the scenario knows
        rdma_ucm_event_resp event;
    };

    struct OpenFile {
        explicit OpenFile(Host& of);
        Host* host;
        CmFile file;
    };

    CmFile& file_of(Host& host);
    Id& make_id(Host& host, End* end);
    [[nodiscard]] Id* find_id(const End& end);
    std::optional<Request> take_request(const End& end);
    // Makes a new id for the end, and its queue pair as it was at first.
    CmAnswer begin(End& end, const CmDestination& to, bool joins);
    void note_request(Host& host, const rdma_ucm_event_resp& event, std::int64_t now);
    void take(const rdma_ucm_event_resp& event, std::int64_t now);
    [[nodiscard]] const End* find_asked(Host& host, const rdma_ucm_event_resp& request);
    // Does what librdmacm or the program does because of an event.
    CmAnswer follow(Id& id, CmEventSeen& seen, const rdma_ucm_event_resp& event);
    CmAnswer go_on_from_address(Id& id);
    CmAnswer send_request(Id& id);
    int complete(Id& id);
    static CmAnswer send_to(const Id& id, ib_uverbs_ah_attr address);
    CmAnswer attach(Id& id, const rdma_ucm_ud_param& member);
    // The queue pair to INIT, and a datagram one on to RTS.
    int prepare(Id& id);
    int modify(Id& id, ibv_qp_state to, const rdma_ucm_conn_param* terms = nullptr);
    static void fail_queue_pair(const Id& id);
    // The terms of this end, as struct rdma_conn_param has them.
    static rdma_ucm_conn_param terms_of(const End& end, const std::string& private_data);

    std::map<std::string, OpenFile, std::less<>> files_;
    std::map<std::uint64_t, Id> ids_;
    std::map<const End*, std::uint64_t> of_end_;
    std::deque<Request> requests_;
    std::uint64_t last_name_ = 0;
    std::vector<CmEventSeen> events_;
};

}  // namespace scenarios
