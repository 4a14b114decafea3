// Consecutive packets of one message that end alike, put together: a picture shows them as one.
// Packets of a message that end differently (lost, discarded, sent again) are parts of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "viz/run.hpp"

namespace simverbs::viz {

struct MessagePart {
    std::vector<std::size_t> packets;  // of the run, at least one
};

// In order of their first packets. Each packet is in one part.
std::vector<MessagePart> message_parts(const Run& run);
// A part for each packet.
std::vector<MessagePart> single_packets(const Run& run);

// "SEND 64 KiB, PSN 100-163, 64 packets"; of a single packet its opcode, PSN, size and answer.
std::string words_of(const Run& run, const MessagePart& part);

}  // namespace simverbs::viz
