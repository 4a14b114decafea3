// The hosts of a scenario as its programs use them: verbs objects by name, and what is known of
// each. Knows nothing of programs and expectations. One world a process, made by the constructor.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <infiniband/verbs.h>

#include "simverbs/simverbs.h"

#include "scenarios/engine/checked.hpp"
#include "scenarios/engine/cm_hosts.hpp"
#include "scenarios/engine/endless_retries.hpp"
#include "scenarios/engine/host_memory.hpp"
#include "scenarios/engine/observed.hpp"
#include "scenarios/engine/run_files.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

struct Host;
struct End;

struct Memory {
    std::string name;
    std::uint8_t* bytes = nullptr;  // of the world's HostMemory
    std::size_t size = 0;
    unsigned access = 0;
    ibv_pd* pd = nullptr;
    ibv_mr* mr = nullptr;  // nullptr: deregistered
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
    std::uint32_t stale_lkey = 0;
    std::uint32_t stale_rkey = 0;
    std::optional<std::uint64_t> fill;  // the pattern at the start; zeros

    [[nodiscard]] std::uint8_t byte_at_start(std::uint64_t index) const;
};

struct CompletionQueue {
    std::string name;
    Host* host = nullptr;
    ibv_cq* cq = nullptr;
    ibv_comp_channel* channel = nullptr;
    std::deque<std::int64_t> visible;  // completions not taken yet, by the time they came
    bool is_filled = false;            // it is among those of World::take_filled()
    std::vector<std::size_t> waiters;  // programs that wait for completions: of Programs
};

struct PostedReceive {
    std::uint64_t id;
    const Memory* memory;
    std::uint64_t at;
    std::uint64_t length;
};

struct SharedReceives {
    std::string name;
    std::uint64_t size = 256;
    ibv_srq* srq = nullptr;  // nullptr: destroyed
    // They are 0 and null where it is not one of XRC.
    std::uint32_t number = 0;
    ibv_xrcd* domain = nullptr;
    CompletionQueue* cq = nullptr;
    std::deque<PostedReceive> posted;
};

// A message on its way, as the sender's memory was when it was posted.
struct Message {
    std::vector<std::uint8_t> bytes;
    const Memory* written = nullptr;  // of a WRITE with immediate data: where to
    std::uint64_t at = 0;
};

struct PostedSend {
    std::uint64_t id;
    bool signaled;
};

// One end of a connection.
struct End {
    std::string connection;
    std::string name;  // "h0/c"
    Host* host = nullptr;
    End* peer = nullptr;
    ibv_qp_type type = IBV_QPT_RC;
    ibv_qp* qp = nullptr;   // nullptr: destroyed
    std::uint32_t qpn = 0;  // also of one that has been destroyed
    ibv_ah* ah = nullptr;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* receive_cq = nullptr;
    SharedReceives* shared = nullptr;  // nullptr: a receive queue of its own
    std::uint64_t posted = 0;          // sends, since it left RESET
    std::deque<PostedSend> sends;
    std::deque<PostedReceive> receives;
    std::deque<Message> arriving;
    // The ids of all requests that were posted, by their places; unknown after a RESET, where
    // places begin anew.
    std::vector<std::uint64_t> ids_sent;
    std::vector<std::uint64_t> ids_received;
    bool has_ids = true;
    // Its program connects it by rdma_cm.
    bool is_by_cm = false;
    bool is_used = false;                 // that has taken its queue pair out of RESET
    std::optional<std::uint32_t> qkey{};  // of a datagram queue pair, from rdma_cm
    // That it has joined by rdma_cm. `ah` is its address: sends go there, not to the peer.
    std::optional<ibv_gid> group{};

    // The part of the scenario about it: of this end, else of both.
    [[nodiscard]] Checked say(std::string_view key) const;
    [[nodiscard]] std::uint64_t number(std::string_view key, std::uint64_t otherwise) const;
    [[nodiscard]] bool is_datagram() const { return type == IBV_QPT_UD; }
    Checked own;
    Checked both;
};

struct Host {
    std::string name;
    std::string address;  // by which rdma_cm knows it: 127.77.0.1
    // By a fault. Verbs on its device would wait until its programs go on, and time would move.
    bool programs_stopped = false;
    bool programs_ended = false;
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_pd* other_pd = nullptr;
    std::map<std::string, Memory, std::less<>> memories;
    std::map<std::string, CompletionQueue, std::less<>> cqs;
    std::map<std::string, SharedReceives, std::less<>> srqs;
    std::map<std::string, ibv_mw*, std::less<>> windows;
    std::map<std::string, ibv_wq*, std::less<>> wqs;
    std::map<std::string, End, std::less<>> ends;
};

class World final : public Observed {
  public:
    // Throws nothing; error() says what could not be made.
    World(const Scenario& scenario, const RunFiles& files);
    ~World() override;
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // Destroys what was made and completes the files. Says which are cut and why.
    std::vector<std::string> end();

    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] Host* host(std::string_view name);
    [[nodiscard]] const Host* host(std::string_view name) const;
    [[nodiscard]] End* end(std::string_view name);  // "h0/c"
    [[nodiscard]] const End* end(std::string_view name) const;
    [[nodiscard]] std::int64_t now() const override;
    [[nodiscard]] std::uint64_t digest() const override;
    [[nodiscard]] std::string state_of(std::string_view end) const override;
    [[nodiscard]] std::uint64_t counted(const CounterRow& row,
                                        std::string_view node) const override;
    [[nodiscard]] const Memory* memory_of(std::string_view host,
                                          std::string_view memory) const override;
    [[nodiscard]] std::optional<QueuePairPlace> place_of(std::string_view end) const override;
    [[nodiscard]] std::string end_of(std::string_view node, std::uint64_t qpn) const override;
    [[nodiscard]] std::string peer_of(std::string_view node, std::uint64_t qpn) const override;
    [[nodiscard]] std::optional<std::uint64_t> posted_id(std::string_view end, bool is_receive,
                                                         std::uint64_t place) const override;
    [[nodiscard]] std::optional<std::uint32_t> number_of(std::string_view host, NamedObject kind,
                                                         std::string_view name) const override;

    // 0 or an errno: what the verb answered.
    int connect(End& end);
    static int reset(End& end);
    int deregister(Memory& memory);
    int register_again(Memory& memory, unsigned access);

    // Completions that wait, at most `most`, without any time passing. None where the host's
    // programs are stopped.
    std::vector<Completed> take(CompletionQueue& queue, std::size_t most);
    // All that wait anywhere.
    void take_all();
    // Queues to which completions have come since the last call.
    std::vector<CompletionQueue*> take_filled();
    // Grows whenever programs of a host are stopped, go on, or end by a fault.
    [[nodiscard]] std::uint64_t program_changes() const { return program_changes_; }
    // Returns true if there were events of rdma_cm.
    bool read_events();
    // Runs the next instant, up to virtual time `limit`; false: nothing is due until then.
    bool step(std::int64_t limit);
    // Moves time to `when`.
    void move_to(std::int64_t when);

    [[nodiscard]] const std::vector<Completed>& completed() const override { return completed_; }
    [[nodiscard]] const std::vector<AsyncEventSeen>& events() const override { return events_; }
    [[nodiscard]] const std::vector<CmEventSeen>& cm_events() const override {
        return cm_.events();
    }
    [[nodiscard]] const std::vector<Record>& records() const override { return records_; }
    [[nodiscard]] const std::vector<Failure>& broken_invariants() const override { return broken_; }
    // Sends of `end` that have not completed.
    void posted(End& end, const PostedSend& send) {
        ++end.posted;
        end.sends.push_back(send);
        end.ids_sent.push_back(send.id);
    }
    void left(End& end, Message message);

    [[nodiscard]] EndlessRetries& retries() { return retries_; }
    [[nodiscard]] CmHosts& cm() { return cm_; }

    static constexpr std::size_t kMostRecords = 2'000'000;

  private:
    bool fail(std::string_view what);
    void destroy_objects();
    [[nodiscard]] std::string state_told(const End& end) const;
    bool prepare(const Scenario& scenario);
    void open_hosts(const Scenario& scenario);
    void make_objects(Host& host, const Scenario& scenario);
    void make_memory(Host& host, const std::string& name, Checked body);
    CompletionQueue& make_cq(Host& host, const std::string& name, std::uint64_t entries,
                             bool has_channel);
    void make_srq(const Host& host, SharedReceives& shared);
    void make_wq(Host& host, const std::string& name, Checked body);
    void make_connections(const Scenario& scenario);
    void make_end(End& end);
    void refuse(const Scenario& scenario, const End& end, std::string_view verb, int error);
    void make_xrc_end(End& end);
    void make_xrc_srq(const End& end, SharedReceives& shared);
    void give_address(End& end, ibv_ah_attr& address);
    static void on_record(const simverbs_record* record, void* self);
    void note_completion(const Record& record);
    void note_programs(const Record& record);
    Completed note(CompletionQueue& queue, const ibv_wc& wc);
    void check_send(const End& end, const ibv_wc& wc, std::deque<PostedSend>& sends);
    void check_receive(End& end, const ibv_wc& wc);
    void check_message(End& end, const ibv_wc& wc, const PostedReceive& into);
    void breaks(std::string_view invariant, std::string happened);

    HostMemory memory_;
    Checked invariants_;
    std::string error_;
    std::map<std::string, Host, std::less<>> hosts_;
    std::map<std::pair<std::string, std::uint32_t>, CompletionQueue*> cqs_;
    std::vector<CompletionQueue*> filled_;
    std::uint64_t program_changes_ = 0;
    std::map<std::pair<std::string, std::uint32_t>, End*> ends_;
    std::vector<Completed> completed_;
    std::vector<AsyncEventSeen> events_;
    std::vector<Record> records_;
    std::vector<Failure> broken_;
    EndlessRetries retries_;
    CmHosts cm_;
    std::size_t seen_ = 0;       // records, those included that were too many to keep
    RunFiles files_;             // that are open
    std::size_t announced_ = 0;  // events in the trace
    std::size_t looked_at_ = 0;  // of them
};

// An XRC target receives into that queue: it is made with the first such end, in its domain.
bool is_of_xrc(const Scenario& scenario, std::string_view host, std::string_view srq);
unsigned access_of(Checked list, unsigned otherwise);
inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
// The entries of a completion queue that nobody gives another size.
inline constexpr std::uint64_t kDefaultCompletions = 1024;
// Byte `index` of pattern `number`.
std::uint8_t pattern_byte(std::uint64_t number, std::uint64_t index);
void fill_pattern(std::uint8_t* bytes, std::size_t length, std::uint64_t number);

}  // namespace scenarios
