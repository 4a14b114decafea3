// The headers that tag matching puts in front of a message (rdma-core, infiniband/tm_types.h): a
// tag matching header (TMH), and a rendezvous header (RVH) behind that of a rendezvous request.
//
// They are part of a SEND's payload: the transport does not know of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simverbs {

// Values of enum ibv_tmh_op.
enum class TagOpcode : std::uint8_t { kNoTag, kRendezvous, kFinish, kEager };

struct TagHeader {
    static constexpr std::uint32_t kBytes = 16;
    TagOpcode opcode = TagOpcode::kNoTag;  // may hold a byte that has no enumerator
    std::uint32_t context = 0;             // the application's; comes back with the FIN
    std::uint64_t tag = 0;
};

// Where the data of a rendezvous lies at the sender.
struct RendezvousHeader {
    static constexpr std::uint32_t kBytes = 16;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    std::uint32_t length = 0;  // bytes
};

TagHeader parse_tag_header(std::span<const std::byte, TagHeader::kBytes> bytes);
RendezvousHeader parse_rendezvous_header(
    std::span<const std::byte, RendezvousHeader::kBytes> bytes);
void build(const TagHeader& header, std::span<std::byte, TagHeader::kBytes> bytes);

}  // namespace simverbs
