// The actions of faults on packets: spoil a byte, write a field, mark, answer in somebody else's
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/faults/frame_fault.hpp"

#include "simverbs/faults/packet_matcher.hpp"
#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/fault_values.hpp"

namespace simverbs {

// Returns true if the field can hold the value.
bool holds(simverbs_header_field field, std::uint64_t value);

// Flips bits of a byte behind the link's headers; nothing happens to packets that are shorter.
class CorruptPacket final : public fabric::FrameAction {
  public:
    CorruptPacket(std::uint32_t byte, std::uint8_t bits) : byte_(byte), bits_(bits) {}
    [[nodiscard]] std::string_view name() const override { return "corrupt"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;

  private:
    std::uint32_t byte_;
    std::uint8_t bits_;
};

// `value` is one that the field holds.
class RewritePacket final : public fabric::FrameAction {
  public:
    RewritePacket(simverbs_header_field field, std::uint64_t value)
        : field_(row_of(field)), value_(value) {}
    [[nodiscard]] std::string_view name() const override { return "rewrite"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;

  private:
    const HeaderFieldRow& field_;
    std::uint64_t value_;
};

// Its payload reaches memory later.
class LandLate final : public fabric::FrameAction {
  public:
    explicit LandLate(fabric::SimDuration delay) : delay_(delay) {}
    [[nodiscard]] std::string_view name() const override { return "land_late"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;

  private:
    fabric::SimDuration delay_;
};

// Finds no receive where it arrives.
class WithholdReceive final : public fabric::FrameAction {
  public:
    [[nodiscard]] std::string_view name() const override { return "no_receive"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;
};

class MarkCongestion final : public fabric::FrameAction {
  public:
    [[nodiscard]] std::string_view name() const override { return "mark_congestion"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;
};

// Sends something back to a frame's sender in the name of whom it was addressed to, from the other
// end of the link.
class AnswerPacket : public fabric::FrameAction {
  protected:
    explicit AnswerPacket(const PacketEnds& ends) : ends_(ends) {}
    [[nodiscard]] fabric::FramePtr frame_back(const fabric::Frame& request,
                                              const fabric::LinkDirection& direction) const;
    void answer(const fabric::Frame& request, const fabric::LinkDirection& direction, Packet packet,
                std::uint32_t payload_bytes);

  private:
    const PacketEnds& ends_;
};

class NotifyCongestion final : public AnswerPacket {
  public:
    explicit NotifyCongestion(const PacketEnds& ends) : AnswerPacket(ends) {}
    [[nodiscard]] std::string_view name() const override { return "notify_congestion"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;
};

// The request is lost, and a NAK or an RNR NAK goes back.
class RefusePacket final : public AnswerPacket {
  public:
    RefusePacket(const PacketEnds& ends, AethSyndrome syndrome)
        : AnswerPacket(ends), syndrome_(syndrome) {}
    [[nodiscard]] std::string_view name() const override {
        return syndrome_.kind == AethKind::kNak ? "nak" : "rnr_nak";
    }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;

  private:
    AethSyndrome syndrome_;
};

// A REQ or REP is lost, and a REJ goes back.
class RejectConnection final : public AnswerPacket {
  public:
    RejectConnection(const PacketEnds& ends, RejectReason reason)
        : AnswerPacket(ends), reason_(reason) {}
    [[nodiscard]] std::string_view name() const override { return "cm_reject"; }
    [[nodiscard]] bool applies(const fabric::Frame& frame) const override;
    fabric::Verdict act(fabric::Frame& frame, const fabric::LinkDirection& direction) override;

  private:
    RejectReason reason_;
};

}  // namespace simverbs
