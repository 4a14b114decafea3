// A requester, or a responder, over effects that write down what it causes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"
#include "simverbs/transport/requester.hpp"
#include "simverbs/transport/responder.hpp"

#include "tests/transport/recording_effects.hpp"

namespace simverbs::test {

inline constexpr std::uint32_t kMtu = 1024;
inline constexpr std::uint32_t kQpn = 0x11;
inline constexpr std::uint32_t kPeerQpn = 0x22;
inline constexpr std::uint64_t kLocal = 0x10000;
inline constexpr std::uint64_t kRemote = 0x20000;

// In RTS with PSN 100, timeout 14, 3 retries, 2 RNR retries, 4 READs at once.
QpAttributes connected_attributes();

class RequesterUnderTest {
  public:
    explicit RequesterUnderTest(const QpAttributes& with = connected_attributes(),
                                std::uint32_t slots = 64);
    explicit RequesterUnderTest(const Personality& personality);
    RequesterUnderTest(const QpAttributes& with, const WorkQueueShape& shape,
                       const Personality& personality = kSpec);

    QpAttributes attributes;
    RecordingEffects effects;
    Requester requester;

    // One request of `length` bytes in one segment; wr_id counts from 0.
    void post(WrOpcode opcode, std::uint32_t length, SendFlags flags = SendFlag::kSignaled,
              std::uint32_t lkey = RecordingEffects::kGoodKey);
    // Writes it without running the engine.
    void write(WrOpcode opcode, std::uint32_t length, SendFlags flags = SendFlag::kSignaled,
               std::uint32_t lkey = RecordingEffects::kGoodKey);
    void doorbell();
    void run();

    void ack(std::uint32_t psn);
    void nak(std::uint32_t psn, NakCode code, FaultCause cause = FaultCause::kSuccess);
    void rnr_nak(std::uint32_t psn, std::uint8_t timer_code);
    void read_response(std::uint32_t psn, PacketPosition position, std::uint32_t length);
    void atomic_response(std::uint32_t psn, std::uint64_t original);
    void fire(EngineTimer timer);

    // PSNs and opcodes of the packets since the last call.
    std::vector<std::uint32_t> take_psns();
    std::vector<std::string> take_opcodes();
    // Statuses and ids of the completions so far.
    [[nodiscard]] std::vector<WcStatus> statuses() const;
    [[nodiscard]] std::vector<std::uint64_t> ids() const;
};

class ResponderUnderTest {
  public:
    explicit ResponderUnderTest(const Personality& personality = kSpec,
                                const QpAttributes& with = connected_attributes());

    QpAttributes attributes;
    RecordingEffects effects;
    Responder responder;

    void post_receive(std::uint64_t wr_id, std::uint32_t length,
                      std::uint32_t lkey = RecordingEffects::kGoodKey);

    // Packets of the peer, which the responder receives at once.
    void send(PacketPosition position, std::uint32_t psn, std::uint32_t length,
              Trailer trailer = Trailer::kNone);
    void write(PacketPosition position, std::uint32_t psn, std::uint32_t length,
               std::uint32_t dma_length = 0, Trailer trailer = Trailer::kNone,
               std::uint32_t rkey = RecordingEffects::kGoodKey);
    void read(std::uint32_t psn, std::uint32_t length,
              std::uint32_t rkey = RecordingEffects::kGoodKey);
    void fetch_add(std::uint32_t psn, std::uint64_t add, std::uint64_t address = kRemote);
    void compare_swap(std::uint32_t psn, std::uint64_t compare, std::uint64_t swap);
    void give(const Packet& packet);
    void transmitter_free();

    // Returns what went back since the last call, as "ACK 100", "NAK 1 at 100", "READ_RESPONSE_ONLY
    // 100".
    std::vector<std::string> take_answers();
};

// A request packet of the peer, with what all of them have.
Packet request(MessageKind kind, PacketPosition position, std::uint32_t psn,
               Trailer trailer = Trailer::kNone);

}  // namespace simverbs::test
