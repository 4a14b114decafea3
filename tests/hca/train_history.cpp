#include "tests/hca/train_history.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <string_view>

namespace simverbs::test {

using namespace std::chrono_literals;

namespace {

// Single packets are copied at once, so that both kinds of memory are compared with that.
PairOptions options_of(Packets packets, PairOptions options) {
    if (packets == Packets::kSingle) {
        options.memory = MemoryOf::kThisProcess;
    }
    return options;
}

}  // namespace

History::History(Packets packets, const PairOptions& options) : pair(options_of(packets, options)) {
    if (packets == Packets::kSingle) {
        for_each_direction([this](auto& direction) { direction.add_filter(onlooker_); });
        looked_at_ = true;
    }
    pair.a.fill(0, Side::kMemoryBytes, 1);
    pair.b.fill(0, Side::kMemoryBytes, 2);
}

History::~History() {
    pair.simulation().set_device_faults(nullptr);
    if (looked_at_) {
        for_each_direction([this](auto& direction) { direction.remove_filter(onlooker_); });
    }
    if (records_) {
        pair.simulation().bus().detach(packets_);
    }
}

void History::record_packets() {
    records_ = true;
    pair.simulation().bus().attach(packets_,
                                   fabric::trace::CategorySet{fabric::trace::Category::kPacket});
}

fabric::Switch* History::first_switch() {
    fabric::Network& network = pair.simulation().network();
    return network.switch_count() == 0 ? nullptr : &network.switch_at(0);
}

Seen History::state() {
    Seen seen;
    seen.emplace_back("time", static_cast<std::uint64_t>(to_picoseconds(pair.now())));
    seen.emplace_back("digest", pair.run_digest());
    seen.emplace_back("packet records", packets_.records().size());
    for (Side* side : {&pair.a, &pair.b}) {
        const std::string of = side == &pair.a ? "a: " : "b: ";
        add_memory(of, *side, seen);
        add_counters(of, *side, seen);
        add_queue_pairs(of, *side, seen);
    }
    for_each_direction([&seen](fabric::LinkDirection& direction) {
        const std::string of =
            direction.from().node().name() + " to " + direction.to().node().name() + ": ";
        seen.emplace_back(of + "in flight", direction.frames_in_flight());
        seen.emplace_back(of + "credits", direction.unused_credits(0));
        seen.emplace_back(of + "free at",
                          static_cast<std::uint64_t>(to_picoseconds(direction.free_at())));
        add_port(of, direction.from(), seen);
    });
    return seen;
}

void History::add_memory(const std::string& of, const Side& side, Seen& seen) {
    const std::string_view bytes(reinterpret_cast<const char*>(side.memory.data()),
                                 side.memory.size());
    seen.emplace_back(of + "memory", std::hash<std::string_view>{}(bytes));
    if (side.host.rings() > 0) {
        seen.emplace_back(of + "sent completions", side.send_cq.waiting());
        seen.emplace_back(of + "received", side.receive_cq.waiting());
    }
}

void History::add_counters(const std::string& of, const Side& side, Seen& seen) {
    for (const HwCounterRow& row : kHwCounters) {
        seen.emplace_back(of + std::string(row.name),
                          side.host.hca().hw_counters(1).value(row.counter));
    }
}

void History::add_port(const std::string& of, const fabric::Port& port, Seen& seen) {
    const fabric::PortCounters& counters = port.counters();
    seen.emplace_back(of + "xmit bytes", counters.xmit_data_bytes);
    seen.emplace_back(of + "xmit packets", counters.xmit_packets);
    seen.emplace_back(of + "rcv bytes", counters.rcv_data_bytes);
    seen.emplace_back(of + "rcv packets", counters.rcv_packets);
    seen.emplace_back(of + "xmit wait", counters.xmit_wait);
    seen.emplace_back(of + "discards", counters.total_discards());
}

void History::add_queue_pairs(const std::string& of, const Side& side, Seen& seen) {
    side.host.hca().for_each_qp([&](const QueuePair& qp) {
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
        seen.emplace_back(name + "timer", static_cast<std::uint64_t>(to_picoseconds(until)));
    });
}

std::string differences(const Seen& trains, const Seen& singles) {
    std::string all;
    for (std::size_t i = 0; i < std::max(trains.size(), singles.size()); ++i) {
        const auto of = [i](const Seen& seen) {
            return i < seen.size() ? seen[i].first + " " + std::to_string(seen[i].second)
                                   : "nothing";
        };
        if (of(trains) != of(singles)) {
            all += of(trains) + ", of single packets " + of(singles) + '\n';
        }
    }
    return all;
}

void expect_one_run(const std::vector<Step>& steps, const PairOptions& options) {
    History trains(Packets::kAsTrains, options);
    History singles(Packets::kSingle, options);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i](trains);
        steps[i](singles);
        ASSERT_EQ(differences(trains.state(), singles.state()), "") << "after step " << i;
    }
}

Step one_by_one(std::vector<Step> steps) {
    return [steps = std::move(steps)](History& run) {
        for (const Step& step : steps) {
            step(run);
        }
    };
}

Step until(fabric::SimDuration duration) {
    return [duration](History& run) { run.pair.advance(duration); };
}

Step walk(fabric::SimDuration duration) {
    return [duration](History& run) {
        struct Nothing final : fabric::EventHandler {
            void handle(const fabric::Event& /*event*/) override {}
        };
        Nothing nothing;
        Simulation& simulation = run.pair.simulation();
        simulation.schedule_mark(duration, nothing);
        const fabric::SimTime latest = run.pair.now() + duration;
        while (simulation.run_instant(latest) > 0) {
        }
        simulation.settle();
    };
}

void to_the_end(History& run) {
    run.pair.drive();
}

namespace {

QueuePair& find(const Side& side) {
    return *side.host.hca().qps().find(side.qp.qpn());
}

// A frame that no engine has made, from a host, in its turn.
void send_frame(History& run, const fabric::EndNode& from, const Side& to, std::uint8_t lane,
                std::uint32_t payload_bytes) {
    fabric::FramePtr frame = run.pair.simulation().network().frames().make();
    frame->vl = lane;
    frame->wire_bytes = payload_bytes + 34;
    frame->payload_bytes = payload_bytes;
    frame->source = from.id();
    frame->dlid = fabric::Lid(to.lid());
    frame->number = 0;
    frame->transport_as<Packet>() = Packet{};
    from.port(fabric::PortNumber{1}).send(std::move(frame));
}

void post_message(History& run, WrOpcode opcode, std::size_t length) {
    Send send = write_of(run.pair.a, run.pair.b, 1, 0, length);
    send.opcode = opcode;
    run.pair.b.qp.post_receive(
        11, {run.pair.b.segment(20'000, 4'000), run.pair.b.segment(40'000, 200'000)});
    run.pair.a.qp.post(send);
}

// The host that is neither `a` nor `b`; nullptr: there is none.
fabric::EndNode* bystander(History& run) {
    fabric::Network& network = run.pair.simulation().network();
    return network.host_count() < 3 ? nullptr : &network.host(2);
}

void send_from_bystander(History& run, const Side& to, int frames) {
    for (int i = 0; i < frames && bystander(run) != nullptr; ++i) {
        send_frame(run, *bystander(run), to, 0, 2048);
    }
}

std::vector<Act> acts_of_links_and_switches() {
    return {
        {"first link down and up",
         [](History& run) {
             run.first_link().set_state(fabric::LinkState::kDown);
             run.first_link().set_state(fabric::LinkState::kUp);
         }},
        {"last link down and up",
         [](History& run) {
             run.last_link().set_state(fabric::LinkState::kDown);
             run.last_link().set_state(fabric::LinkState::kUp);
         }},
        {"first link down",
         [](History& run) { run.first_link().set_state(fabric::LinkState::kDown); }},
        {"last link down",
         [](History& run) { run.last_link().set_state(fabric::LinkState::kDown); }},
        {"first link slower",
         [](History& run) {
             run.first_link().set_rate(fabric::LinkWidth::k1x, fabric::LinkSpeed::kSdr);
         }},
        {"last link slower",
         [](History& run) {
             run.last_link().set_rate(fabric::LinkWidth::k1x, fabric::LinkSpeed::kSdr);
         }},
        {"a packet of another lane",
         [](History& run) {
             const auto& network = run.pair.simulation().network();
             send_frame(run, network.host(0), run.pair.b, fabric::kManagementVl, 256);
         }},
        {"a packet of a bystander to the receiver",
         [](History& run) { send_from_bystander(run, run.pair.b, 1); }},
        {"many packets of a bystander to the receiver",
         [](History& run) { send_from_bystander(run, run.pair.b, 20); }},
        {"packets of a bystander to the sender",
         [](History& run) { send_from_bystander(run, run.pair.a, 3); }},
        {"a route is taken away",
         [](History& run) {
             if (run.first_switch() != nullptr) {
                 run.first_switch()->set_route(fabric::Lid(run.pair.b.lid()),
                                               fabric::Switch::kNoRoute);
             }
         }},
        {"slower switch",
         [](History& run) {
             if (run.first_switch() != nullptr) {
                 run.first_switch()->set_forwarding_delay(700ns);
             }
         }},
        {"receiver's port leaves ACTIVE",
         [](History& run) { run.pair.b.host.hca().port(1).apply(fabric::PortTrigger::kLinkDown); }},
        {"packets are recorded", [](History& run) { run.record_packets(); }},
    };
}

std::vector<Act> acts_of_hosts() {
    return {
        {"nothing", [](History&) {}},
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
        {"target written", [](History& run) { run.pair.b.fill(0, Side::kMemoryBytes, 78); }},
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
    };
}

}  // namespace

const std::vector<Act>& acts_of_trains() {
    static const std::vector<Act> kAll = [] {
        std::vector<Act> all = acts_of_hosts();
        std::ranges::move(acts_of_links_and_switches(), std::back_inserter(all));
        return all;
    }();
    return kAll;
}

std::vector<fabric::SimDuration> instants_of(WrOpcode opcode, std::size_t length,
                                             const PairOptions& options) {
    std::vector<fabric::SimDuration> instants;
    History run(Packets::kSingle, options);
    post_message(run, opcode, length);
    while (run.pair.simulation().step() > 0) {
        instants.push_back(run.pair.elapsed());
    }
    return instants;
}

void try_acts(std::size_t length, const PairOptions& options, std::size_t first,
              std::size_t every) {
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend, WrOpcode::kRdmaRead}) {
        const std::vector<fabric::SimDuration> instants = instants_of(opcode, length, options);
        ASSERT_GT(instants.size(), length / options.mtu_bytes);
        const Step post = [opcode, length](History& run) { post_message(run, opcode, length); };
        for (const Act& act : acts_of_trains()) {
            for (std::size_t i = first; i < instants.size(); i += every) {
                for (const fabric::SimDuration after :
                     {fabric::SimDuration(0), fabric::SimDuration(20'000)}) {
                    SCOPED_TRACE(testing::Message()
                                 << act.name << " at " << instants[i].count() << " + "
                                 << after.count() << " ps, opcode " << static_cast<int>(opcode));
                    const Step before = until(instants[i] + after);
                    expect_one_run(
                        {post, before, act.happens, until(100ns), until(1us), to_the_end}, options);
                    expect_one_run({one_by_one({post, before, act.happens}), until(100ns),
                                    until(1us), to_the_end},
                                   options);
                    expect_one_run({one_by_one({post, before, act.happens, to_the_end})}, options);
                    if (testing::Test::HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

}  // namespace simverbs::test
