// The counters of an HCA for each of its ports besides performance management: names and meanings
// as NICs report them in /sys/class/infiniband/<device>/ports/<port>/hw_counters (those of mlx5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class HwCounter : std::uint8_t {
    kDuplicateRequest,
    kImpliedNakSeqErr,
    kLocalAckTimeoutErr,
    kNpCnpSent,
    kNpEcnMarkedRocePackets,
    kOutOfBuffer,
    kOutOfSequence,
    kPacketSeqErr,
    kReqCqeError,
    kReqCqeFlushError,
    kReqRemoteAccessErrors,
    kReqRemoteInvalidRequest,
    kRespCqeError,
    kRespCqeFlushError,
    kRespLocalLengthError,
    kRespRemoteAccessErrors,
    kRnrNakRetryErr,
    kRpCnpHandled,
    kRxAtomicRequests,
    kRxIcrcEncapsulated,
    kRxReadRequests,
    kRxWriteRequests,
};

struct HwCounterRow {
    HwCounter counter;
    std::string_view name;
    std::string_view what;
};

// clang-format off
inline constexpr auto kHwCounters = std::to_array<HwCounterRow>({
    {HwCounter::kDuplicateRequest,        "duplicate_request",          "requests that had been executed before"},
    {HwCounter::kImpliedNakSeqErr,        "implied_nak_seq_err",        "responses to a later request while one of a READ or atomic is missing"},
    {HwCounter::kLocalAckTimeoutErr,      "local_ack_timeout_err",      "times that a requester got no answer in time"},
    {HwCounter::kNpCnpSent,               "np_cnp_sent",                "congestion notification packets sent, of receivers"},
    {HwCounter::kNpEcnMarkedRocePackets,  "np_ecn_marked_roce_packets", "packets that came marked as congested"},
    {HwCounter::kOutOfBuffer,             "out_of_buffer",              "requests that found no receive posted"},
    {HwCounter::kOutOfSequence,           "out_of_sequence",            "requests that came before one they follow"},
    {HwCounter::kPacketSeqErr,            "packet_seq_err",             "NAKs for a PSN sequence error that a requester got"},
    {HwCounter::kReqCqeError,             "req_cqe_error",              "completions in error, of requesters"},
    {HwCounter::kReqCqeFlushError,        "req_cqe_flush_error",        "flushed requests"},
    {HwCounter::kReqRemoteAccessErrors,   "req_remote_access_errors",   "NAKs for a remote access error that a requester got"},
    {HwCounter::kReqRemoteInvalidRequest, "req_remote_invalid_request", "NAKs for an invalid request that a requester got"},
    {HwCounter::kRespCqeError,            "resp_cqe_error",             "completions in error, of responders"},
    {HwCounter::kRespCqeFlushError,       "resp_cqe_flush_error",       "flushed receives"},
    {HwCounter::kRespLocalLengthError,    "resp_local_length_error",    "messages longer than their receive"},
    {HwCounter::kRespRemoteAccessErrors,  "resp_remote_access_errors",  "requests with a key that does not open what they want"},
    {HwCounter::kRnrNakRetryErr,          "rnr_nak_retry_err",          "RNR NAKs that a requester got"},
    {HwCounter::kRpCnpHandled,            "rp_cnp_handled",             "notifications that slowed a sender down"},
    {HwCounter::kRxAtomicRequests,        "rx_atomic_requests",         "atomics executed for a peer"},
    {HwCounter::kRxIcrcEncapsulated,      "rx_icrc_encapsulated",       "RoCE packets whose invariant CRC does not fit"},
    {HwCounter::kRxReadRequests,          "rx_read_requests",           "READs executed for a peer"},
    {HwCounter::kRxWriteRequests,         "rx_write_requests",          "WRITEs executed for a peer"},
});
// clang-format on

class HwCounters {
  public:
    void count(HwCounter counter) { ++values_[static_cast<std::size_t>(counter)]; }
    [[nodiscard]] std::uint64_t value(HwCounter counter) const {
        return values_[static_cast<std::size_t>(counter)];
    }

  private:
    std::array<std::uint64_t, kHwCounters.size()> values_{};
};

}  // namespace simverbs
