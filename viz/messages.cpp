#include "viz/messages.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace simverbs::viz {
namespace {

constexpr std::uint32_t kPsnMask = 0xFFFFFF;

// "SEND" of "SEND_FIRST"; "" of packets that are a message of their own.
std::string_view operation_of(std::string_view opcode) {
    for (const std::string_view place : {"_FIRST", "_MIDDLE", "_LAST"}) {
        const std::size_t at = opcode.find(place);
        if (at != std::string_view::npos) {
            return opcode.substr(0, at);
        }
    }
    return {};
}

bool begins(const RunPacket& packet) {
    return packet.opcode.find("_FIRST") != std::string::npos;
}

bool ends(const RunPacket& packet) {
    return packet.opcode.find("_LAST") != std::string::npos;
}

bool continues(const RunPacket& last, const RunPacket& next) {
    return !begins(next) && !ends(last) && operation_of(last.opcode) == operation_of(next.opcode) &&
           !operation_of(next.opcode).empty() && last.dest_qpn == next.dest_qpn &&
           ((last.psn + 1) & kPsnMask) == next.psn && last.retransmission == next.retransmission &&
           last.lost == next.lost && last.lost_where == next.lost_where &&
           last.lost_fault == next.lost_fault &&
           std::ranges::equal(last.arrivals, next.arrivals, &Arrival::ends_like);
}

}  // namespace

std::vector<MessagePart> message_parts(const Run& run) {
    std::vector<MessagePart> parts;
    std::map<QpName, std::size_t> open;  // the last part of each sender
    for (std::size_t i = 0; i < run.packets.size(); ++i) {
        const RunPacket& packet = run.packets[i];
        const auto found = open.find(packet.from);
        if (found != open.end() &&
            continues(run.packets[parts[found->second].packets.back()], packet)) {
            parts[found->second].packets.push_back(i);
            continue;
        }
        open[packet.from] = parts.size();
        parts.push_back({{i}});
    }
    return parts;
}

std::vector<MessagePart> single_packets(const Run& run) {
    std::vector<MessagePart> parts;
    for (std::size_t i = 0; i < run.packets.size(); ++i) {
        parts.push_back({{i}});
    }
    return parts;
}

std::string words_of(const Run& run, const MessagePart& part) {
    const RunPacket& first = run.packets[part.packets.front()];
    const RunPacket& last = run.packets[part.packets.back()];
    if (first.is_management) {
        return first.opcode;
    }
    const std::string answer = first.answer();
    std::string text;
    if (part.packets.size() > 1) {
        std::uint64_t bytes = 0;
        for (const std::size_t packet : part.packets) {
            bytes += run.packets[packet].payload;
        }
        text = fmt::format("{}{} {}, PSN {}-{}, {} packets", operation_of(first.opcode),
                           begins(first) && ends(last) ? "" : " part of", size_text(bytes),
                           first.psn, last.psn, part.packets.size());
    } else {
        const bool is_answer = first.opcode == "ACKNOWLEDGE";
        text = fmt::format("{}, PSN {}", is_answer ? answer : first.opcode, first.psn);
        if (first.payload > 0) {
            text += ", " + size_text(first.payload);
        } else if (first.opcode == "RDMA_READ_REQUEST") {
            text += ", of " + size_text(first.dma_length);
        }
        if (!answer.empty() && !is_answer) {
            text += ", " + answer;
        }
    }
    return first.retransmission ? text + " (again)" : text;
}

}  // namespace simverbs::viz
