// Trains and single packets are one run: whatever is looked at, at whatever time, and whatever
// happens between two packets of a message.
#include <array>
#include <functional>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "fabric/core/hash.hpp"
#include "fabric/core/random.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using namespace std::chrono_literals;

// Looks at frames one by one, and lets them all pass.
class Onlooker final : public fabric::LinkFilter {
  public:
    fabric::Verdict inspect(fabric::SimTime /*now*/, fabric::Frame& frame,
                            const fabric::LinkDirection& /*direction*/) override {
        EXPECT_EQ(frame.packets, 1U);
        return fabric::Verdict::kPass;
    }
};

// Lets the next work request of a queue fail.
class FailsNext final : public DeviceFaults {
  public:
    void of(const QueuePair& qp, CompletedQueue queue) {
        whose_ = &qp;
        queue_ = queue;
    }
    std::optional<InjectedFault> work_request(QueuePair& qp, CompletedQueue queue) override {
        if (&qp != whose_ || queue != queue_) {
            return std::nullopt;
        }
        whose_ = nullptr;
        return InjectedFault{WcStatus::kGeneralErr};
    }
    int command(Hca& /*hca*/, CommandCode /*command*/) override { return 0; }

  private:
    const QueuePair* whose_ = nullptr;
    CompletedQueue queue_ = CompletedQueue::kSend;
};

enum class Packets : std::uint8_t { kAsTrains, kSingle };

// A pair whose packets may be trains, or may not since somebody looks at them.
class History {
  public:
    explicit History(Packets packets, const PairOptions& options = {}) : pair(options) {
        link_ = &pair.simulation().network().link(0);
        if (packets == Packets::kSingle) {
            for_each_direction([this](auto& direction) { direction.add_filter(onlooker_); });
            looked_at_ = true;
        }
        pair.a.fill(0, Side::kMemoryBytes, 1);
        pair.b.fill(0, Side::kMemoryBytes, 2);
    }
    ~History() {
        pair.simulation().set_device_faults(nullptr);
        if (looked_at_) {
            for_each_direction([this](auto& direction) { direction.remove_filter(onlooker_); });
        }
    }
    History(const History&) = delete;
    History& operator=(const History&) = delete;

    // All that can be seen of both ends now, time and digest included; what lands in memory as a
    // hash.
    [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> state() {
        std::vector<std::pair<std::string, std::uint64_t>> seen;
        seen.emplace_back("time", static_cast<std::uint64_t>(to_picoseconds(pair.now())));
        seen.emplace_back("digest", pair.run_digest());
        for (Side* side : {&pair.a, &pair.b}) {
            const std::string of = side == &pair.a ? "a: " : "b: ";
            add_memory(of, *side, seen);
            add_counters(of, *side, seen);
            side->host.hca().for_each_qp([&](const QueuePair& qp) {
                const QueuePairReport report = qp.report();
                const std::string name = of + std::to_string(report.qpn) + " ";
                seen.emplace_back(name + "state", static_cast<std::uint64_t>(report.state));
                seen.emplace_back(name + "next psn", report.next_psn);
                seen.emplace_back(name + "expected psn", report.expected_psn);
                seen.emplace_back(name + "sends", report.sends);
                seen.emplace_back(name + "started", report.sends_started);
                seen.emplace_back(name + "receives", report.receives);
                seen.emplace_back(name + "retries", report.retries_left);
                const fabric::SimTime until = report.answer_until.value_or(fabric::SimTime{});
                seen.emplace_back(name + "timer",
                                  static_cast<std::uint64_t>(to_picoseconds(until)));
            });
        }
        for_each_direction([&seen](fabric::LinkDirection& direction) {
            seen.emplace_back("in flight", direction.frames_in_flight());
            seen.emplace_back("credits", direction.unused_credits(0));
            seen.emplace_back("free at",
                              static_cast<std::uint64_t>(to_picoseconds(direction.free_at())));
        });
        return seen;
    }
    void fail_next(const QueuePair& qp, CompletedQueue queue) {
        fails_.of(qp, queue);
        pair.simulation().set_device_faults(&fails_);
    }
    [[nodiscard]] std::uint64_t events() { return pair.simulation().loop().events_run(); }
    [[nodiscard]] fabric::Link& link() { return *link_; }

    template <class F>
    void for_each_direction(F&& visit) {
        for (const Side* side : {&pair.a, &pair.b}) {
            visit(link_->direction_from(side->host.hca().node()));
        }
    }

    Pair pair;

  private:
    using Seen = std::vector<std::pair<std::string, std::uint64_t>>;

    static void add_memory(const std::string& of, const Side& side, Seen& seen) {
        fabric::WordsHash hash;
        for (std::size_t offset = 0; offset < side.memory.size(); offset += 8) {
            hash.add(side.word(offset));
        }
        seen.emplace_back(of + "memory", hash.value());
        if (side.host.rings() > 0) {
            seen.emplace_back(of + "sent completions", side.send_cq.waiting());
            seen.emplace_back(of + "received", side.receive_cq.waiting());
        }
    }
    static void add_counters(const std::string& of, const Side& side, Seen& seen) {
        const fabric::PortCounters& port = side.host.hca().port(1).counters();
        seen.emplace_back(of + "xmit bytes", port.xmit_data_bytes);
        seen.emplace_back(of + "xmit packets", port.xmit_packets);
        seen.emplace_back(of + "rcv bytes", port.rcv_data_bytes);
        seen.emplace_back(of + "rcv packets", port.rcv_packets);
        seen.emplace_back(of + "xmit wait", port.xmit_wait);
        seen.emplace_back(of + "discards", port.total_discards());
        for (const HwCounterRow& row : kHwCounters) {
            seen.emplace_back(of + std::string(row.name),
                              side.host.hca().hw_counters(1).value(row.counter));
        }
    }

    Onlooker onlooker_;
    FailsNext fails_;
    bool looked_at_ = false;
    fabric::Link* link_;
};

constexpr std::size_t kPackets = 9;
constexpr std::size_t kLength = kPackets * 1024 - 100;

// Runs both ways of one history, step by step, and compares after each.
void expect_one_run(const std::vector<std::function<void(History&)>>& steps,
                    const PairOptions& options = {}) {
    History trains(Packets::kAsTrains, options);
    History singles(Packets::kSingle, options);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i](trains);
        steps[i](singles);
        ASSERT_EQ(trains.state(), singles.state()) << "after step " << i;
    }
}

std::function<void(History&)> until(fabric::SimDuration duration) {
    return [duration](History& run) { run.pair.advance(duration); };
}

void to_the_end(History& run) {
    run.pair.drive();
}

TEST(Train, OneEventBringsSeveralPackets) {
    const auto events_of = [](Packets packets, std::size_t length) {
        History run(packets);
        const std::uint64_t before = run.events();
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, length));
        run.pair.drive();
        EXPECT_EQ(run.pair.b.bytes(0, length), run.pair.a.bytes(0, length));
        return run.events() - before;
    };
    EXPECT_EQ(events_of(Packets::kSingle, kLength), 10U) << "nine packets, one answer";
    EXPECT_EQ(events_of(Packets::kAsTrains, kLength), 3U);
    EXPECT_LT(events_of(Packets::kAsTrains, 256 * 1024UL) * 4,
              events_of(Packets::kSingle, 256 * 1024UL));
}

TEST(Train, WhatStandsOnAnEthernetLinkIsOneToo) {
    PairOptions options{.topology = "eth-pair", .gid_index = 3};
    expect_one_run(
        {[](History& run) { run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 100'000)); },
         until(3us), to_the_end},
        options);
}

// Each packet carries what the one before it has placed.
TEST(Train, OntoItsOwnSourceLandsPacketByPacket) {
    for (const std::size_t distance : {0U, 3U, 1000U, 1500U, 5000U}) {
        expect_one_run({[distance](History& run) {
                            Side& a = run.pair.a;
                            const Region aliased =
                                run.pair.b.register_memory(a.memory.data(), a.memory.size());
                            Send send = write_of(a, run.pair.b, 1, 0, 20 * 1024UL);
                            send.remote_address = a.address(distance);
                            send.rkey = aliased.rkey;
                            a.qp.post(send);
                        },
                        to_the_end});
    }
}

TEST(Train, IsAsFarAsItsPacketsAtAnyTime) {
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend, WrOpcode::kRdmaRead,
                                  WrOpcode::kRdmaWriteWithImm}) {
        std::vector<std::function<void(History&)>> steps;
        steps.emplace_back([opcode](History& run) {
            Send send = write_of(run.pair.a, run.pair.b, 1, 0, 40 * 1024 + 7);
            send.opcode = opcode;
            run.pair.b.qp.post_receive(
                11, {run.pair.b.segment(100'000, 5'000), run.pair.b.segment(50'000, 40'000)});
            run.pair.a.qp.post(send);
        });
        for (int i = 0; i < 80; ++i) {
            steps.push_back(until(fabric::SimDuration(71'234)));
        }
        steps.emplace_back(to_the_end);
        expect_one_run(steps);
    }
}

QueuePair& find(const Side& side) {
    return *side.host.hca().qps().find(side.qp.qpn());
}

// Events that may happen between two packets.
struct Act {
    std::string_view name;
    std::function<void(History&)> happens;
};

const std::vector<Act>& acts() {
    static const std::vector<Act> kAll = {
        {"nothing", [](History&) {}},
        {"link down and up",
         [](History& run) {
             run.link().set_state(fabric::LinkState::kDown);
             run.link().set_state(fabric::LinkState::kUp);
         }},
        {"link down", [](History& run) { run.link().set_state(fabric::LinkState::kDown); }},
        {"slower",
         [](History& run) {
             run.link().set_rate(fabric::LinkWidth::k1x, fabric::LinkSpeed::kSdr);
         }},
        {"sender in error", [](History& run) { run.pair.a.qp.modify_to(QpState::kErr); }},
        {"receiver in error", [](History& run) { run.pair.b.qp.modify_to(QpState::kErr); }},
        {"sender reset", [](History& run) { run.pair.a.qp.modify_to(QpState::kReset); }},
        {"receiver reset", [](History& run) { run.pair.b.qp.modify_to(QpState::kReset); }},
        {"sender drains", [](History& run) { run.pair.a.qp.modify_to(QpState::kSqd); }},
        {"sender destroyed", [](History& run) { run.pair.a.qp.destroy(); }},
        {"receiver destroyed", [](History& run) { run.pair.b.qp.destroy(); }},
        {"source deregistered",
         [](History& run) {
             run.pair.a.host.must(DeregisterMr{.handle = run.pair.a.region.handle});
         }},
        {"target deregistered",
         [](History& run) {
             run.pair.b.host.must(DeregisterMr{.handle = run.pair.b.region.handle});
         }},
        {"source written", [](History& run) { run.pair.a.fill(0, Side::kMemoryBytes, 77); }},
        {"sender's device dies", [](History& run) { run.pair.a.host.hca().die(); }},
        {"receiver's device dies", [](History& run) { run.pair.b.host.hca().die(); }},
        {"sender loses power", [](History& run) { run.pair.a.host.hca().lose_power(); }},
        {"receiver loses power", [](History& run) { run.pair.b.host.hca().lose_power(); }},
        {"sender's context closed", [](History& run) { run.pair.a.host.close(); }},
        {"receiver's context closed", [](History& run) { run.pair.b.host.close(); }},
        {"next send fails",
         [](History& run) {
             run.fail_next(find(run.pair.a), CompletedQueue::kSend);
             run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 8, 0, 5'000));
         }},
        {"receive fails",
         [](History& run) { run.fail_next(find(run.pair.b), CompletedQueue::kReceive); }},
        {"frames lost from here on",
         [](History& run) {
             run.pair.drop_nth(run.pair.a, 2);
             run.pair.drop_nth(run.pair.b, 1);
         }},
        {"another message",
         [](History& run) { run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 8, 0, 5'000)); }},
        {"a message the other way",
         [](History& run) {
             run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 9, 9'000, 50'000));
         }},
        {"a READ of what arrives",
         [](History& run) {
             run.pair.b.qp.post(read_of(run.pair.b, run.pair.a, 9, 50'000, 20'000));
         }},
        {"a packet of another lane",
         [](History& run) {
             fabric::FramePtr frame = run.pair.simulation().network().frames().make();
             frame->vl = fabric::kManagementVl;
             frame->wire_bytes = 290;
             frame->payload_bytes = 256;
             frame->source = run.pair.a.host.hca().node();
             frame->transport_as<Packet>() = Packet{};
             run.pair.a.host.hca().port(1).send(std::move(frame));
         }},
    };
    return kAll;
}

TEST(Train, WhateverHappensAtEachOfNinePacketsHasOneOutcome) {
    // When each packet and the answer arrives.
    std::vector<fabric::SimDuration> instants;
    {
        History run(Packets::kSingle);
        run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, kLength));
        while (run.pair.simulation().step() > 0) {
            instants.push_back(run.pair.elapsed());
        }
    }
    ASSERT_EQ(instants.size(), kPackets + 1);
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend}) {
        for (const Act& act : acts()) {
            for (const fabric::SimDuration instant : instants) {
                for (const fabric::SimDuration after :
                     {fabric::SimDuration(0), fabric::SimDuration(20'000)}) {
                    SCOPED_TRACE(testing::Message()
                                 << act.name << " at " << instant.count() << " + " << after.count()
                                 << " ps, opcode " << static_cast<int>(opcode));
                    const auto post = [opcode](History& run) {
                        Send send = write_of(run.pair.a, run.pair.b, 1, 0, kLength);
                        send.opcode = opcode;
                        run.pair.b.qp.post_receive(11, {run.pair.b.segment(20'000, 4'000),
                                                        run.pair.b.segment(40'000, 40'000)});
                        run.pair.a.qp.post(send);
                    };
                    expect_one_run({post, until(instant + after), act.happens, until(100ns),
                                    until(1us), to_the_end});
                    if (testing::Test::HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST(Train, LosingAnyAnswerHasOneOutcome) {
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
        expect_one_run({[nth](History& run) {
                            run.pair.drop_nth(run.pair.b, nth);
                            run.pair.a.qp.post(
                                write_of(run.pair.a, run.pair.b, 1, 0, 150 * 1024UL));
                        },
                        until(20us), to_the_end});
    }
}

TEST(Train, LosingAnyPacketHasOneOutcome) {
    for (std::uint64_t nth = 1; nth <= 40; ++nth) {
        expect_one_run(
            {[](History& run) {
                 run.pair.a.qp.post(write_of(run.pair.a, run.pair.b, 1, 0, 80 * 1024UL));
                 run.pair.b.qp.post(write_of(run.pair.b, run.pair.a, 1, 100 * 1024UL, 80 * 1024UL));
             },
             until(1us), [nth](History& run) { run.pair.drop_nth(run.pair.a, nth); }, until(20us),
             to_the_end});
    }
}

// Several queue pairs, all kinds of requests, waits for receives, keys that do not fit, both ways.
class RandomTraffic {
  public:
    explicit RandomTraffic(std::uint64_t seed) : random_(seed, "train", "traffic") {}

    void run(std::size_t rounds) {
        PairOptions options;
        options.mtu_bytes = 256U << below(5);
        options.first_psn = below(2) == 0 ? 0xFFFFF0 : 0x10;
        options.timeout = 8;
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
            const fabric::SimDuration wait(static_cast<std::int64_t>(below(4'000'000)));
            for (History* run : {&trains, &singles}) {
                post(*run, qps[run == &trains ? 0 : 1][which], from, what, options.mtu_bytes);
                run->pair.advance(wait);
            }
            ASSERT_EQ(trains.state(), singles.state()) << "round " << round;
        }
        trains.pair.drive();
        singles.pair.drive();
        ASSERT_EQ(trains.state(), singles.state());
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
            run.pair.advance(2us);
            give();
        }
    }

    fabric::RandomStream random_;
};

TEST(Train, RandomTrafficIsOneRun) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE(seed);
        RandomTraffic(seed).run(60);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace simverbs::test
