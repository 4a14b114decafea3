// What the first message of a connection to a served world asks for.
#pragma once

#include <cstdint>

namespace simverbs {

inline constexpr std::uint32_t kProtocolVersion = 1;

enum class RequestKind : std::uint32_t {
    kAttach,         // AttachRequest -> AttachReply with the area, then a wake-up descriptor
    kCommand,        // CommandRequest -> CommandReply, with a descriptor where the command has one
    kStatus,         // -> text
    kShutdown,       // -> text; the world ends
    kReport,         // -> text: kStatus, and what each queue pair waits for
    kDeviceTree,     // DeviceRequest -> PathReply
    kReadAttribute,  // DeviceRequest -> AttributeReply
    kOpenDevice,     // DeviceRequest -> OpenDeviceReply with a descriptor; ControlRequests follow
    kFabric,         // FabricRequest -> FabricReply with a descriptor that has the text
};

struct RequestHead {
    std::uint32_t version = kProtocolVersion;
    RequestKind kind = RequestKind::kCommand;
};

}  // namespace simverbs
