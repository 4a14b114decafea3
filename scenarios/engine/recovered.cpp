// How much was sent again, and what came of it.
#include <map>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

#include "scenarios/engine/explain.hpp"

namespace scenarios {

namespace {

class SentAgain {
  public:
    void see(const Record& record) {
        if (record.name == "packet_sent") {
            note_sent(record);
        } else if (record.name == "completion" && record.text("status") == "SUCCESS") {
            const auto found = waiting_.find({record.node, record.number("qpn")});
            if (found != waiting_.end()) {
                recovered_ += std::exchange(found->second, 0);
            }
        }
    }

    [[nodiscard]] std::string text() const {
        std::uint64_t in_vain = 0;
        for (const auto& [queue_pair, count] : waiting_) {
            in_vain += count;
        }
        return sentence(recovered_, "sent again, and recovered what was lost.") +
               sentence(not_ready_, "sent again after RNR NAKs: no receive was posted.") +
               sentence(in_vain, "sent again, and no request completed after that.");
    }

  private:
    void note_sent(const Record& record) {
        constexpr std::uint64_t kKind = 0x60;
        constexpr std::uint64_t kRnr = 0x20;
        if (record.text("opcode") == "ACKNOWLEDGE") {
            is_not_ready_[record.number("dest_qpn")] = (record.number("syndrome") & kKind) == kRnr;
        } else if (record.number("retransmission") != 0) {
            (is_not_ready_[record.number("qpn")] ? not_ready_
                                                 : waiting_[{record.node, record.number("qpn")}]) +=
                1;
        }
    }

    static std::string sentence(std::uint64_t count, std::string_view what) {
        return count == 0 ? ""
                          : fmt::format("    {} {}\n",
                                        fabric::counted(count, "packet was", "packets were"), what);
    }

    std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> waiting_;  // by queue pair
    std::map<std::uint64_t, bool> is_not_ready_;  // by QPN: its last answer was an RNR NAK
    std::uint64_t recovered_ = 0;
    std::uint64_t not_ready_ = 0;
};

}  // namespace

std::string recovered(std::span<const Record> records) {
    SentAgain again;
    for (const Record& record : records) {
        again.see(record);
    }
    return again.text();
}

}  // namespace scenarios
