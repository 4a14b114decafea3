#include "scenarios/engine/counters.hpp"

namespace scenarios {

namespace {

// The two high bits of the syndrome's seven tell its kind (IBA 9.7.5.1.1).
constexpr std::uint64_t kKindMask = 0x60;
constexpr std::uint64_t kRnrNak = 0x20;
constexpr std::uint64_t kNak = 0x60;

bool is_acknowledgement(const Record& record, std::uint64_t kind) {
    return record.text("opcode") == "ACKNOWLEDGE" &&
           (record.number("syndrome") & kKindMask) == kind;
}

}  // namespace

std::uint64_t counted(const CounterRow& row, const Record& record) {
    if (record.name != row.record) {
        return 0;
    }
    const std::string_view status = record.text("status");
    switch (row.counted) {
        case Counted::kEach:
            return 1;
        case Counted::kRetransmissions:
            return record.number("retransmission");
        case Counted::kNaks:
            return is_acknowledgement(record, kNak) ? 1 : 0;
        case Counted::kRnrNaks:
            return is_acknowledgement(record, kRnrNak) ? 1 : 0;
        case Counted::kBytes:
            return record.number("bytes");
        case Counted::kFailed:
            return status != "SUCCESS" && status != "WR_FLUSH_ERR" ? 1 : 0;
        case Counted::kFlushed:
            return status == "WR_FLUSH_ERR" ? 1 : 0;
    }
    return 0;
}

}  // namespace scenarios
