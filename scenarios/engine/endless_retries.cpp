#include "scenarios/engine/endless_retries.hpp"

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

}  // namespace

// A request that is repeated or refused is no news, nor is a frame on its way.
void EndlessRetries::see(const Record& record) {
    if (is_of_frame_on_its_way(record.name) ||
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

std::vector<std::string> endless_retries(const World& world) {
    struct Search {
        const World& world;
        std::vector<std::string> found{};
        bool has_other = false;
    } search{world};
    const auto see = [](const simverbs_queue_pair_report* report, void* argument) {
        auto& all = *static_cast<Search*>(argument);
        if (report->timer_ps < 0) {
            return;
        }
        all.has_other = all.has_other || report->rnr_naks == 0 || report->rnr_retries_left >= 0;
        const End* const end = all.world.end(all.world.end_of(report->host, report->qp_num));
        if (end != nullptr) {
            all.found.push_back(fmt::format(
                "{}: request {}: {} has no receive posted; RNR retried {} times, and rnr_retry 7 "
                "retries for ever",
                end->name, end->posted - report->sends_outstanding, end->peer->name,
                report->rnr_naks));
        }
    };
    if (simverbs_report_queue_pairs(see, &search) != 0 || search.has_other) {
        return {};
    }
    return search.found;
}

}  // namespace scenarios
