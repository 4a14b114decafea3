// Invariants, which hold whatever a scenario expects: no work request completes twice or out of
// order, and what a receive holds is what was sent.
#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/core.h>

#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::size_t kGrhBytes = 40;  // before the payload of every datagram

bool holds(const Message& message, const std::uint8_t* bytes, std::size_t length) {
    return message.bytes.size() == length && std::memcmp(message.bytes.data(), bytes, length) == 0;
}

}  // namespace

void World::breaks(std::string_view invariant, std::string happened) {
    if (invariants_.flag(invariant, true)) {
        std::string kind = fmt::format("invariant {}", invariant);
        broken_.push_back({invariants_.position(), now(), kind, std::move(happened), kind});
    }
}

void World::left(End& end, Message message) {
    if (end.group) {
        for (End* const member : cm_.members_of(*end.group)) {
            member->arriving.push_back(message);
        }
    } else if (end.peer != nullptr) {
        end.peer->arriving.push_back(std::move(message));
    }
}

Completed World::note(CompletionQueue& queue, const ibv_wc& wc) {
    const auto found = ends_.find({queue.host->name, wc.qp_num});
    const bool is_receive = (wc.opcode & IBV_WC_RECV) != 0;
    Completed completed{queue.visible.front(),
                        found == ends_.end() ? queue.host->name : found->second->name,
                        wc.wr_id,
                        wc.status,
                        wc.opcode,
                        wc.byte_len,
                        (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0,
                        wc.vendor_err,
                        is_receive};
    if (found != ends_.end()) {
        End& end = *found->second;
        // The opcode of a completion in error is not valid: its queue is the one that has the id.
        const auto is_send = [&wc](const PostedSend& send) { return send.id == wc.wr_id; };
        const bool failed_send = wc.status != IBV_WC_SUCCESS &&
                                 std::ranges::any_of(end.sends, is_send) &&
                                 (end.receives.empty() || end.receives.front().id != wc.wr_id);
        if (failed_send || (wc.status == IBV_WC_SUCCESS && !is_receive)) {
            completed.is_receive = false;
            check_send(end, wc, end.sends);
        } else {
            completed.is_receive = true;
            check_receive(end, wc);
        }
    }
    completed_.push_back(completed);
    return completed;
}

// Unsignaled ones before it are done without a word.
void World::check_send(const End& end, const ibv_wc& wc, std::deque<PostedSend>& sends) {
    const auto found = std::ranges::find(sends, wc.wr_id, &PostedSend::id);
    if (found == sends.end()) {
        breaks("exactly_once",
               fmt::format("{}: send {} completed, and was not outstanding", end.name, wc.wr_id));
        return;
    }
    const auto passed = std::ranges::find_if(sends.begin(), found, &PostedSend::signaled);
    if (passed != found) {
        breaks("in_order",
               fmt::format("{}: send {} completed before send {}", end.name, wc.wr_id, passed->id));
    }
    sends.erase(sends.begin(), found + 1);
}

void World::check_receive(End& end, const ibv_wc& wc) {
    std::deque<PostedReceive>& posted = end.shared == nullptr ? end.receives : end.shared->posted;
    const auto found = std::ranges::find(posted, wc.wr_id, &PostedReceive::id);
    if (found == posted.end()) {
        breaks("exactly_once", fmt::format("{}: receive {} completed, and was not outstanding",
                                           end.name, wc.wr_id));
        return;
    }
    if (end.shared == nullptr && found != posted.begin()) {
        breaks("in_order", fmt::format("{}: receive {} completed before receive {}", end.name,
                                       wc.wr_id, posted.front().id));
    }
    const PostedReceive into = *found;
    posted.erase(found);
    if (wc.status == IBV_WC_SUCCESS) {
        check_message(end, wc, into);
    }
}

void World::check_message(End& end, const ibv_wc& wc, const PostedReceive& into) {
    const std::size_t header = end.type == IBV_QPT_UD ? kGrhBytes : 0;
    const bool is_write = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const std::size_t length = is_write ? wc.byte_len : wc.byte_len - header;
    const auto is_it = [&](const Message& message) {
        if (is_write != (message.written != nullptr)) {
            return false;
        }
        const Memory& memory = is_write ? *message.written : *into.memory;
        const std::uint64_t at = is_write ? message.at : into.at + header;
        return at + length <= memory.size && holds(message, memory.bytes + at, length);
    };
    const bool may_skip = end.type == IBV_QPT_UC || end.type == IBV_QPT_UD;
    const auto last =
        may_skip || end.arriving.empty() ? end.arriving.end() : end.arriving.begin() + 1;
    const auto found = std::find_if(end.arriving.begin(), last, is_it);
    if (found == last) {
        breaks(end.arriving.empty() ? "exactly_once" : "integrity",
               end.arriving.empty()
                   ? fmt::format("{}: receive {} holds a message that nobody is sending", end.name,
                                 into.id)
                   : fmt::format("{}: receive {} does not hold what was sent ({} bytes)", end.name,
                                 into.id, length));
        if (!end.arriving.empty() && !may_skip) {
            end.arriving.pop_front();
        }
        return;
    }
    end.arriving.erase(end.type == IBV_QPT_UD ? found : end.arriving.begin(), found + 1);
}

}  // namespace scenarios
