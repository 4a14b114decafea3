// Random requests of several queue pairs, which must give one run as trains and as single packets.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "fabric/core/random.hpp"

#include "tests/hca/train_history.hpp"

namespace simverbs::test {

// On slow ones a packet may take longer than an acknowledgment timeout.
enum class Links : bool { kFast, kSlow };

// Several queue pairs, all kinds of requests, waits for receives, keys that do not fit, both ways.
class RandomTraffic {
  public:
    explicit RandomTraffic(std::uint64_t seed) : random_(seed, "train", "traffic") {}

    void run(std::size_t rounds, PairOptions options, Links links = Links::kFast,
             Step (*move)(fabric::SimDuration) = until) {
        const bool slow = links == Links::kSlow;
        options.mtu_bytes = 256U << below(5);
        options.first_psn = below(2) == 0 ? 0xFFFFF0 : 0x10;
        options.timeout = slow ? static_cast<std::uint8_t>(3 + below(5)) : std::uint8_t{8};
        options.min_rnr_timer = 1;
        History trains(Packets::kAsTrains, options);
        History singles(Packets::kSingle, options);
        std::array<std::vector<std::array<QueuePairHandle, 2>>, 2> qps;
        for (History* run : {&trains, &singles}) {
            auto& made = qps[run == &trains ? 0 : 1];
            made.push_back({run->pair.a.qp, run->pair.b.qp});
            for (int i = 0; i < 2; ++i) {
                made.push_back({run->pair.a.make_qp(), run->pair.b.make_qp()});
                run->pair.connect(made.back()[0], run->pair.b, made.back()[1]);
                run->pair.connect(made.back()[1], run->pair.a, made.back()[0]);
            }
        }
        for (std::size_t round = 0; round < rounds; ++round) {
            const std::size_t which = below(3);
            const std::size_t from = below(2);
            const std::uint64_t what = random_.next();
            const fabric::SimDuration wait(
                static_cast<std::int64_t>(below(slow ? 40'000'000 : 4'000'000)));
            for (History* run : {&trains, &singles}) {
                post(*run, qps[run == &trains ? 0 : 1][which], from, what, options.mtu_bytes);
                move(wait)(*run);
            }
            ASSERT_EQ(differences(trains.state(), singles.state()), "") << "round " << round;
        }
        trains.pair.drive();
        singles.pair.drive();
        ASSERT_EQ(differences(trains.state(), singles.state()), "");
    }

  private:
    std::size_t below(std::size_t end) { return random_.next() % end; }

    static void post(History& run, std::array<QueuePairHandle, 2>& qp, std::size_t from,
                     std::uint64_t what, std::uint32_t mtu) {
        Side& sender = from == 0 ? run.pair.a : run.pair.b;
        Side& receiver = from == 0 ? run.pair.b : run.pair.a;
        const std::size_t length = std::min<std::size_t>(1 + what % (40UL * mtu), 60'000);
        const std::size_t offset = (what >> 20U) % 1000;
        Send send = write_of(sender, receiver, what % 1000, offset, length);
        send.segments = {sender.segment(offset, length / 3),
                         sender.segment(100'000 + offset, length - length / 3)};
        switch ((what >> 32U) % 8) {
            case 0:
            case 1:
                send.opcode = WrOpcode::kSend;
                break;
            case 2:
                send.opcode = WrOpcode::kRdmaRead;
                break;
            case 3:
                send.opcode = WrOpcode::kSendWithImm;
                break;
            case 4:
                send.opcode = WrOpcode::kRdmaWriteWithImm;
                break;
            default:
                break;
        }
        if ((what >> 40U) % 4 == 0) {
            send.flags = {};
        }
        if ((what >> 42U) % 64 == 0) {
            send.rkey += 0x100;
        }
        const auto give = [&] {
            qp[1 - from].post_receive(
                what % 999, {receiver.segment(130'000, 10'000), receiver.segment(150'000, 60'000)});
        };
        const bool late = (what >> 50U) % 4 == 0;
        if (!late) {
            give();
        }
        qp[from].post(send);
        if (late) {
            run.pair.advance(std::chrono::microseconds(2));
            give();
        }
    }

    fabric::RandomStream random_;
};

}  // namespace simverbs::test
