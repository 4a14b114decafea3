// A key-value store whose clients read with RDMA READ: the server's processor takes no part in a
// GET. The server alone writes. Connecting the queue pairs is left to the caller.
#ifndef KV_STORE_HPP
#define KV_STORE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "verbs_objects.hpp"

namespace kv {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kValueBytes = 4000;
inline constexpr std::size_t kProbes = 8;  // slots in which a key may lie, beginning at its hash

// One entry as it lies in the server's memory. `check` covers the rest, so that a reader can tell a
// whole entry from one that was written while it was read.
struct Slot {
    std::uint64_t check = 0;
    std::uint32_t key_bytes = 0;  // 0: the slot is empty
    std::uint32_t value_bytes = 0;
    std::array<char, kKeyBytes> key{};
    std::array<char, kValueBytes> value{};
};

// Names the memory of the slots. Whatever connects a client to the server gives it to the client.
struct Table {
    std::uint64_t address;
    std::uint32_t rkey;
    std::uint32_t slots;
};

class Server {
  public:
    Server(ibv_context* device, std::uint32_t slots);

    // A queue pair for one client, in RESET: connect it with IBV_ACCESS_REMOTE_READ.
    ibv_qp* add_client();
    [[nodiscard]] Table table() const;

    // Returns false where key or value is too long, the key is empty, or its slots are taken.
    bool put(std::string_view key, std::string_view value);

  private:
    std::vector<Slot> slots_;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    std::deque<Owned<ibv_qp>> clients_;
};

enum class Outcome {
    kFound,
    kNotFound,
    kTorn,        // every attempt met a slot that was being written
    kUnreachable  // the queue pair is in the error state: connect it anew
};

struct Answer {
    Outcome outcome;
    std::string value;                      // of kFound
    ibv_wc_status status = IBV_WC_SUCCESS;  // of the last READ
};

struct ClientOptions {
    bool verify = true;  // false: trusts each READ, which is right only where nobody writes
    int attempts = 8;    // READs of one slot, as long as its check is wrong
};

class Client {
  public:
    Client(ibv_context* device, const Table& table, const ClientOptions& options = {});

    [[nodiscard]] ibv_qp* qp() const { return qp_.get(); }
    [[nodiscard]] Answer get(std::string_view key);

  private:
    ibv_wc_status read(std::uint64_t slot);
    // Reads the slot until its check is right.
    Outcome read_whole(std::uint64_t slot, ibv_wc_status& status);

    Table table_;
    ClientOptions options_;
    Slot slot_;  // READs land here
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    Owned<ibv_qp> qp_;
};

}  // namespace kv

#endif
