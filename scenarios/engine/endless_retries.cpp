#include "scenarios/engine/endless_retries.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "simverbs/model/packet_fate.hpp"

#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

bool is_refusal(const Record& sent) {
    constexpr std::uint64_t kAckBits = 5;  // below them: the timer; above: what kind of answer
    constexpr std::uint64_t kRnr = 1;
    return sent.text("opcode") == "ACKNOWLEDGE" && sent.number("syndrome") >> kAckBits == kRnr;
}

// The number that stands before `what`: "3 sends outstanding".
std::uint64_t number_before(std::string_view line, std::string_view what) {
    const std::size_t end = line.find(what);
    const std::size_t begin = end == std::string_view::npos ? end : line.rfind(' ', end - 1);
    return begin == std::string_view::npos
               ? 0
               : std::strtoull(std::string(line.substr(begin + 1)).c_str(), nullptr, 10);
}

}  // namespace

// A request that is repeated or refused is no news, nor is a frame on its way.
void EndlessRetries::see(const Record& record) {
    if (record.name == "frame_sent" || record.name == "frame_received" ||
        (record.name == "packet_discarded" && simverbs::is_consequence(record.text("fate")))) {
        return;
    }
    if (record.name == "packet_sent" && is_refusal(record)) {
        ++refused_;
    } else if (record.name != "packet_sent" || record.number("retransmission") == 0) {
        refused_ = 0;
        matches_before_.reset();
    }
}

bool EndlessRetries::are_many_again(std::uint64_t fault_matches) {
    refused_ = 0;
    return std::exchange(matches_before_, fault_matches) == fault_matches;
}

std::vector<std::string> endless_retries(const World& world, std::string_view waits) {
    std::vector<std::string> found;
    std::istringstream lines{std::string(waits)};
    std::string host;
    for (std::string line; std::getline(lines, line);) {
        constexpr std::string_view kHost = "host ";
        constexpr std::string_view kQueuePair = "  QP ";
        if (line.starts_with(kHost)) {
            host = line.substr(kHost.size());
            continue;
        }
        if (!line.starts_with(kQueuePair) || line.find("until ") == std::string::npos) {
            continue;
        }
        if (line.find("RNR retries have no limit") == std::string::npos) {
            return {};
        }
        const std::uint64_t qpn = std::strtoull(line.c_str() + kQueuePair.size(), nullptr, 0);
        const End* const end = world.end(world.end_of(host, qpn));
        if (end != nullptr) {
            found.push_back(fmt::format(
                "{}: request {}: {} has no receive posted; RNR retried {} times, and rnr_retry 7 "
                "retries for ever",
                end->name, end->posted - number_before(line, " send"), end->peer->name,
                number_before(line, " time")));
        }
    }
    return found;
}

}  // namespace scenarios
