// Two hosts, one request that fails and what is behind it: how each cause of completion_faults is
// brought about by what programs, links and devices do, and what then is to be seen on both sides.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "simverbs/model/completion_faults.hpp"

#include "tests/conformance/every_service.hpp"

namespace conformance {

using simverbs::FaultCause;

// Where what is about to be sent lies at `a`, and where it is going to at `b`.
inline constexpr std::size_t kMessageAt = 0;
inline constexpr std::uint32_t kMessageBytes = 64;
inline constexpr std::size_t kFollowingAt = 16384;  // eight bytes each of request 11 and 12
inline constexpr std::size_t kTargetAt = 32768;
inline constexpr std::size_t kFollowingTargetAt = 49152;
inline constexpr std::size_t kLandingAt = 65536;  // at `a`: of READs and atomics
inline constexpr std::size_t kInboxAt = 131072;   // receive 1 at `b`, receive 2 kInboxBytes behind
inline constexpr std::uint32_t kInboxBytes = 8192;

// Which bytes changed; all others, on both sides, must not have.
enum Landed : unsigned {
    kNothing = 0,
    kMessage = 1U << 0,            // the message of request 10, whole
    kFirstPacket = 1U << 1,        // only its first 1024 bytes
    kFollowing = 1U << 2,          // requests 11 and 12, which WRITE
    kFollowingInFirst = 1U << 3,   // request 12 of datagrams and raw packets, in receive 1
    kFollowingInSecond = 1U << 4,  // the same in receive 2
};

// The state that is expected once nothing happens any more:
//   at `a`  "sends; receives; STATE; events", at `b` "receives; STATE; events",
// completions as "10 LOC_PROT" in the order in which they came, "-" for none. Without `a` the cause
// cannot exist with that personality, and `b` says why.
struct Outcome {
    std::string a;
    std::string b;
    unsigned landed = kNothing;
};

class Stage;
struct FaultCase {
    std::string name;
    FaultCause cause;
    Service service;  // of the requester
    Outcome spec;
    Outcome connectx6;
    Outcome rxe;
    void (*options)(Connection& with) = nullptr;
    void (*arrange)(Stage& stage) = nullptr;  // before receives are posted
    void (*then)(Stage& stage) = nullptr;     // after that, before anything is sent
};

// Requests 10, 11 (unsignaled) and 12 are posted at `a`, with receive 21; receives 1 and 2 at `b`.
// Datagrams and raw packets have no 11; no initiator has 21.
class Stage : public ConnectedAs {
  public:
    struct Bytes {
        End* to = nullptr;
        std::size_t to_offset = 0;
        End* from = nullptr;
        std::size_t from_offset = 0;
        std::uint32_t length = 0;
    };

    void run(const FaultCase& row, const char* personality);

    // ---- for arrangements
    End& here() { return *a; }
    End& there() { return *b; }
    // Request 10, instead of a SEND of kMessageBytes.
    Work& become(unsigned opcode);
    Work& become_write(std::uint32_t length = kMessageBytes);
    Work& become_read(std::uint32_t length = kMessageBytes);
    // Adds nothing, so that the word at `b` stays what it is.
    Work& become_fetch_add(std::uint32_t length = 8);
    // `b` begins anew, with other attributes than `a`.
    void reconnect_peer(const Connection& with);
    void reconnect_to(std::uint32_t qpn);
    void drop(std::uint64_t nth);
    void no_receives() { receives.clear(); }
    // Registers the memory of `end`; the region lasts as long as the stage.
    ibv_mr* region(End& end, unsigned access, ibv_pd* pd = nullptr);
    ibv_pd* other_pd(End& end);
    ibv_mw* window(End& end, ibv_mw_type type);
    void at_the_end(std::function<void()> what) { cleanup_.push_back(std::move(what)); }

    using ConnectedAs::shared_queue;
    Work work{IBV_WR_SEND, 10};
    ibv_ah* address_of_10 = nullptr;  // of datagrams: instead of the one that leads to `b`
    std::uint32_t qkey_of_10 = Connection{}.qkey;
    Bytes message;  // what request 10 moves
    std::vector<std::vector<ibv_sge>> receives;
    std::function<void()> also;  // further things to look at

  protected:
    void TearDown() override;

  private:
    [[nodiscard]] bool one_by_one() const;
    [[nodiscard]] bool has_receives() const { return service() != Service::kXrcIni; }
    void lay_out();
    void post_receives();
    void post_all(std::string& said);
    void expect_memory(unsigned landed);
    std::string describe(End& end, bool sends, std::string said);
    void look_at_vendor_error(const ibv_wc& wc);

    const FaultCase* row_ = nullptr;
    std::string personality_;
    std::vector<std::uint8_t> memory_of_a_;
    std::vector<std::uint8_t> memory_of_b_;
    std::vector<std::function<void()>> cleanup_;
};

// ---- how outcomes are spelled

inline constexpr const char* kUntouched = "-; RTS; -";

// Request 10 fails with `status`, and takes its queue pair to ERR.
inline std::string failed(const std::string& status) {
    return "10 " + status + ", 11 FLUSH, 12 FLUSH; 21 FLUSH; ERR; -";
}
// The same of UC: the send queue alone stops.
inline std::string queue_failed(const std::string& status) {
    return "10 " + status + ", 11 FLUSH, 12 FLUSH; -; SQE; -";
}
// The outcome for services where a message is a packet.
inline std::string packet_failed(const std::string& status) {
    return "10 " + status + ", 12 FLUSH; 21 FLUSH; ERR; -";
}
inline std::string packet_queue_failed(const std::string& status) {
    return "10 " + status + ", 12 FLUSH; -; SQE; -";
}
inline constexpr const char* kDone = "10 OK, 12 OK; -; RTS; -";
// The request does not exist, those behind it do.
inline constexpr const char* kRefused = "EINVAL, 12 OK; -; RTS; -";

// The responder refuses, and says so with `event`.
inline std::string stopped(const std::string& event) {
    return "1 FLUSH, 2 FLUSH; ERR; " + event;
}
inline std::string receive_failed(const std::string& status) {
    return "1 " + status + ", 2 FLUSH; ERR; -";
}
inline Outcome never(const std::string& reason) {
    return {"", reason};
}

std::vector<FaultCase> requester_cases();
std::vector<FaultCase> silence_cases();
std::vector<FaultCase> responder_cases();
std::vector<FaultCase> unacknowledged_cases();
std::vector<FaultCase> device_cases();

// Causes that a program cannot bring about by any call, with the reason.
struct UnreachableCause {
    FaultCause cause;
    std::string reason;
};
std::vector<UnreachableCause> unreachable_causes();

}  // namespace conformance
