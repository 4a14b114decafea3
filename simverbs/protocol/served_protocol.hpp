// Messages between a client process and the server of a world over their socket: one message a
// datagram (SOCK_SEQPACKET), a reply to each request, descriptors beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fabric/core/outcome.hpp"

#include "simverbs/hca/command.hpp"
#include "simverbs/protocol/request_kind.hpp"
#include "simverbs/protocol/trusted_socket.hpp"

namespace simverbs {

struct AttachRequest {
    RequestHead head{kProtocolVersion, RequestKind::kAttach};
    std::array<char, 64> host{};
    // A word of the client's memory and where it is: whether the server can reach it.
    std::uint64_t probe_address = 0;
    std::uint64_t probe_value = 0;
};

struct ServedDevice {
    std::array<char, 64> name{};
    std::array<char, 64> host{};
    std::array<char, 32> personality{};
    std::uint64_t guid = 0;
    std::uint32_t ports = 1;
};

struct AttachReply {
    static constexpr std::uint32_t kMaxDevices = 16;
    std::uint32_t error = 0;  // errno
    std::array<char, 256> reason{};
    std::uint32_t canonical = 0;         // polls wait for the server
    std::uint32_t copies_by_client = 0;  // the server may not reach the client's memory
    std::uint32_t device_count = 0;
    std::uint32_t server_process = 0;
    std::array<ServedDevice, kMaxDevices> devices{};
};

// The name of registered memory that is shared, as a memfd: /proc/PID/maps shows it.
inline constexpr const char* kRegionMemoryName = "simverbs-region";

// The most of one region that is shared: to copy it takes the server some 20 ms.
inline constexpr std::uint64_t kMostSharedBytes = std::uint64_t{32} << 20U;

// Whole pages of a client's memory.
struct PageRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // not of it
};

struct CommandRequest {
    static constexpr std::size_t kMaxBytes = 512;
    RequestHead head{kProtocolVersion, RequestKind::kCommand};
    CommandCode code = CommandCode::kOpenContext;
    std::uint32_t length = 0;
    std::uint32_t reply_length = 0;
    std::uint32_t actor = 0;  // slot of the calling thread
    // kRegisterMr: pages of the region that may become shared memory; none where it is empty.
    PageRange share;
    alignas(8) std::array<std::byte, kMaxBytes> bytes{};
};

struct CommandReply {
    std::uint32_t error = 0;  // errno
    std::uint32_t length = 0;
    // The pages of `share` are in the memory of the descriptor beside: the client maps it in their
    // place before its thread goes on.
    std::uint32_t is_shared = 0;
    std::array<char, 256> refusal{};  // why it was refused; "": nothing more is known
    alignas(8) std::array<std::byte, CommandRequest::kMaxBytes> bytes{};
};

struct ShutdownRequest {
    RequestHead head{kProtocolVersion, RequestKind::kShutdown};
    std::uint32_t force = 0;  // although programs are attached
};

struct ShutdownReply {
    std::uint32_t error = 0;         // EBUSY: the world goes on
    std::array<char, 32768> text{};  // the summary, or who is attached
};

// The requests of an operator about a running fabric.
enum class FabricAction : std::uint32_t {
    kShow,         // `name`: a node, a port, a link, or empty for all
    kCounters,     // of `name`: a node, a port, or empty for all
    kLinkUp,       // link `name`
    kLinkDown,     // link `name`; for ever, or for the duration `value` of virtual time
    kLinkRate,     // link `name`, rate `value`
    kPortEnable,   // port `name`, as of all that follow
    kPortDisable,  //
    kPortLid,      // `value`: a number
    kPortPkeys,    // `value`: INDEX=P_KEY, with a space between several
    kPortGid,      // `value`: INDEX=GID
    kPortAddress,  // `value`: an IPv4 address, on Ethernet; " vlan 100" behind it
    kSmStatus,
    kSmSweep,
    kSmReregister,  // port `name`
    kWatch,         // what queue pairs and ports are doing, as JSON
    kStatus,        // hosts and their processes, as JSON
};

struct FabricRequest {
    RequestHead head{kProtocolVersion, RequestKind::kFabric};
    FabricAction action = FabricAction::kShow;
    std::uint32_t as_json = 0;      // of kShow, kCounters and kSmStatus
    std::uint32_t resets = 0;       // of kCounters: they are 0 afterwards
    std::uint32_t of_hardware = 0;  // of kCounters: what devices count by themselves, too
    std::uint32_t with_zeros = 0;   // of kCounters: tables have those that are 0
    std::array<char, 128> name{};   // "h0-s0", "s0", "h0:1"
    std::array<char, 1024> value{};
};

struct FabricReply {
    std::uint32_t error = 0;  // errno; the text then says what is wrong
};

// Sends one message, with up to two descriptors; false when the peer is gone, or, where `wait` is
// false, does not read what it was sent (errno says why).
bool send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors,
                  bool wait = true);
// Receives one message into `bytes`; its length, 0 when the peer is gone, -1 on an error (EAGAIN
// where `wait` is false and there is none). Descriptors that came along go to `descriptors`, -1
// where there was none; surplus ones are closed. `lost`, where it is not null: descriptors came
// along, and this process had no room for them.
ssize_t receive_message(int socket, std::span<std::byte> bytes, std::span<int> descriptors,
                        bool wait, bool* lost = nullptr);

// Returns true if the other end has closed the connection, so that nobody waits for an answer.
bool has_hung_up(int socket);

// How long to wait for the reply to the first message of a connection, in wall time.
enum class Patience {
    kCommand,  // 5 s where the server is stopped (SIGSTOP), else a minute
    kChange,   // 5 s where the server is stopped, else without end: virtual time has to come first
    kProgram,  // without end; says on stderr after 5 s that the server does not answer
};

// Waits for the reply to the first message of a connection. Returns why there is none, where the
// world at `path` does not answer, hangs up or speaks another version of the protocol; else "".
std::string receive_first_reply(int socket, std::span<std::byte> reply, std::span<int> descriptors,
                                const std::string& path, Patience patience);

// Returns true if the process at the other end is stopped: by SIGSTOP, or by a debugger.
bool server_is_stopped(int socket);
// "the world at 'PATH' does not answer within 5 s (process 7, stopped: kill -CONT 7)".
std::string describe_silence(int socket, const std::string& path, int seconds);

inline constexpr std::string_view kDefaultWorld = "default";

// Where a world listens: `name` with a slash is a path; otherwise a file of that name in a folder
// of the user's own, which the server makes.
std::string socket_path(const std::string& name);

// Returns the words that name the world at `path` in a command: " --world NAME", or " --world
// PATH"; "" where it is the default one.
std::string world_option(const std::string& path);

// A socket that is connected to the world at `path`. Fails, with errno set and a sentence without
// its full stop, when there is none, or none that is to be trusted (trusted_socket.hpp).
fabric::Outcome<int> connect_to_world(const std::string& path);

// Why the place of the world at `path` is not trusted, or what errno `error` says.
std::string describe(Distrust why, int error, const std::string& path);

}  // namespace simverbs
