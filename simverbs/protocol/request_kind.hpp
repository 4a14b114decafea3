// The kinds of the first message of a connection to a served world.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace simverbs {

// Grows with every change of a message below.
inline constexpr std::uint32_t kProtocolVersion = 15;

enum class RequestKind : std::uint32_t {
    kAttach,         // AttachRequest -> AttachReply with the area, then a wake-up descriptor
    kCommand,        // CommandRequest -> CommandReply, with a descriptor where the command has one
    kStatus,         // -> text
    kShutdown,       // ShutdownRequest -> ShutdownReply; the world ends, unless it is in use
    kReport,         // -> text: kStatus, and what each queue pair waits for
    kDeviceTree,     // DeviceRequest -> PathReply
    kReadAttribute,  // DeviceRequest -> AttributeReply
    // DeviceRequest -> OpenDeviceReply with a descriptor; ControlRequests follow, or RdmaCmRequests
    kOpenDevice,
    kShareDevice,    // DeviceRequest of another process that has the file -> OpenDeviceReply
    kSourceAddress,  // DeviceRequest -> SourceAddressReply
    kHostAddresses,  // DeviceRequest -> HostAddressesReply
    kFabric,         // FabricRequest -> FabricReply with a descriptor that has the text
};

// Begins the first message of a connection. The place of `version` is the same in every version.
struct RequestHead {
    std::uint32_t version = kProtocolVersion;
    RequestKind kind = RequestKind::kCommand;
};

// The answer to kStatus and kReport.
struct TextReply {
    static constexpr std::size_t kMaxBytes = 32768;
    std::array<char, kMaxBytes> text{};
};

// A server's answer to a first message of another version, the same in every version.
struct VersionRefusal {
    static constexpr std::uint64_t kMark = 0x7369'6D76'7665'7273;
    std::uint64_t mark = kMark;
    std::uint32_t version = kProtocolVersion;  // the server's
    std::uint32_t reserved = 0;
};

}  // namespace simverbs
