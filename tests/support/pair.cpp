#include "tests/support/pair.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fabric/faults/frame_actions.hpp"

#include "simverbs/hca/addressing.hpp"
#include "simverbs/transport/frame_size.hpp"

namespace simverbs::test {
namespace {

std::unique_ptr<Simulation> make_simulation(const PairOptions& options) {
    auto simulation =
        Simulation::make({.topology = options.topology, .personality = options.personality});
    EXPECT_TRUE(simulation) << simulation.error();
    return std::move(*simulation);
}

std::unique_ptr<CoverageFile> make_coverage(Simulation& simulation) {
    const char* const folder = std::getenv("SIMVERBS_COVERAGE");
    return folder == nullptr ? nullptr : CoverageFile::make(simulation.bus(), folder);
}

// Made once: tests fill megabytes, in builds without optimisation.
const std::vector<std::byte>& pattern_of(unsigned salt) {
    static std::array<std::vector<std::byte>, 256> patterns;
    std::vector<std::byte>& pattern = patterns[salt];
    for (std::size_t i = pattern.size(); i < Side::kMemoryBytes; ++i) {
        pattern.push_back(static_cast<std::byte>((i * 7 + i / 251 + salt) & 0xFF));
    }
    return pattern;
}

std::uint32_t mtu_code(std::uint32_t bytes) {
    return static_cast<std::uint32_t>(std::countr_zero(bytes)) - 7;  // IBV_MTU_256 is 1
}

}  // namespace

Side::Side(Simulation& simulation, std::size_t rank, const PairOptions& options)
    : host(simulation, rank, options.memory),
      pd(host.must(AllocatePd{}).handle),
      memory(kMemoryBytes),
      region(register_memory(memory.data(), memory.size())),
      send_cq(host, options.cq_entries),
      receive_cq(host, options.cq_entries),
      qp(host, host.must(CreateQp{.pd = pd,
                                  .send_cq = send_cq.handle(),
                                  .receive_cq = receive_cq.handle(),
                                  .capacity = options.capacity})),
      options_(options) {}

QueuePairHandle Side::make_qp() {
    return {host, host.must(CreateQp{.pd = pd,
                                     .send_cq = send_cq.handle(),
                                     .receive_cq = receive_cq.handle(),
                                     .capacity = options_.capacity})};
}

Region Side::register_memory(const void* address, std::size_t length, AccessRights rights,
                             std::uint32_t in_pd) {
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    const RegisterMrReply reply = host.must(RegisterMr{.pd = in_pd == 0 ? pd : in_pd,
                                                       .address = begin,
                                                       .length = length,
                                                       .iova = begin,
                                                       .access = rights.bits});
    return {reply.handle, reply.lkey, reply.rkey};
}

std::uint64_t Side::address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
}

Segment Side::segment(std::size_t offset, std::size_t length) const {
    return {address(offset), static_cast<std::uint32_t>(length), region.lkey};
}

void Side::fill(std::size_t offset, std::size_t length, unsigned salt) {
    ASSERT_LE(offset + length, memory.size());
    std::memcpy(memory.data() + offset, pattern_of(salt & 0xFFU).data(), length);
}

std::vector<std::byte> Side::bytes(std::size_t offset, std::size_t length) const {
    const auto begin = memory.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

std::uint64_t Side::word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
}

void Side::set_word(std::size_t offset, std::uint64_t value) {
    std::memcpy(memory.data() + offset, &value, sizeof value);
}

std::uint16_t Side::lid() const {
    return host.hca().port(1).attributes().lid.value();
}

AddressVector Side::path_to() const {
    AddressVector path;
    const fabric::PortAttributes& port = host.hca().port(1).attributes();
    path.dlid = port.lid.value();
    if (port.link_layer == fabric::LinkLayer::kEthernet) {
        path.is_global = true;
        path.sgid_index = options_.gid_index;
        path.dgid = port.gids.at(options_.gid_index).gid.bytes;
    }
    return path;
}

std::vector<AsyncEvent> Side::take_events() {
    std::vector<AsyncEvent> events;
    for (const EventMessage& message : host.take_events()) {
        const auto event = static_cast<AsyncEvent>(message.event);
        if (event != AsyncEvent::kCommEst) {
            events.push_back(event);
        }
    }
    return events;
}

QpValues init_values(const PairOptions& options) {
    return {.access = options.qp_rights.bits, .port = 1};
}

QpValues rtr_values(const PairOptions& options, std::uint16_t peer_lid, std::uint32_t peer_qpn) {
    QpValues values;
    values.path.dlid = peer_lid;
    values.path_mtu = mtu_code(options.mtu_bytes);
    values.dest_qpn = peer_qpn;
    values.rq_psn = options.first_psn;
    values.max_dest_rd_atomic = options.max_dest_rd_atomic;
    values.min_rnr_timer = options.min_rnr_timer;
    return values;
}

QpValues rts_values(const PairOptions& options) {
    QpValues values;
    values.sq_psn = options.first_psn;
    values.timeout = options.timeout;
    values.retry_count = options.retry_count;
    values.rnr_retry = options.rnr_retry;
    values.max_rd_atomic = options.max_rd_atomic;
    return values;
}

Pair::Pair(PairOptions options)
    : options_(std::move(options)),
      simulation_(make_simulation(options_)),
      coverage_(make_coverage(*simulation_)),
      a(*simulation_, 0, options_),
      b(*simulation_, 1, options_) {
    drive();
    connect(a.qp, b, b.qp);
    connect(b.qp, a, a.qp);
    a.host.take_events();
    b.host.take_events();
    began_ = now();
}

Pair::~Pair() {
    stop_dropping();
    if (watching_) {
        simulation_->bus().detach(packets_);
    }
}

void Pair::connect(const QueuePairHandle& qp, const Side& peer, const QueuePairHandle& to) const {
    connect(qp, peer, to, options_);
}

void Pair::connect(const QueuePairHandle& qp, const Side& peer, const QueuePairHandle& to,
                   const PairOptions& options) const {
    EXPECT_EQ(qp.modify_to(QpState::kInit, kInitAttrs, init_values(options)), 0);
    QpValues rtr = rtr_values(options, peer.lid(), to.qpn());
    rtr.path = peer.path_to();
    EXPECT_EQ(qp.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    EXPECT_EQ(qp.modify_to(QpState::kRts, kRtsAttrs, rts_values(options)), 0);
}

fabric::SimDuration Pair::drive() {
    const fabric::SimTime before = now();
    while (simulation_->step_to_news([] { return std::uint64_t{0}; }) > 0) {
    }
    return now() - before;
}

void Pair::advance(fabric::SimDuration duration) {
    simulation_->run_for(duration);
}

void Pair::drive_until_sent(Side& side) {
    while (side.send_cq.waiting() == 0 && simulation_->step() > 0) {
    }
}

fabric::LinkDirection& Pair::direction_from(const Side& side) {
    const fabric::Port& port = side.host.hca().port(1);
    return port.link()->direction_from(port);
}

void Pair::drop_nth(const Side& from, std::uint64_t nth) {
    fault_nth(from, nth, std::make_unique<fabric::DropFrame>());
}

void Pair::fault_nth(const Side& from, std::uint64_t nth,
                     std::unique_ptr<fabric::FrameAction> action) {
    add_fault(from, {.nth = nth}, std::move(action));
}

void Pair::drop_all(const Side& from) {
    add_fault(from, {.count = fabric::kEveryTime}, std::make_unique<fabric::DropFrame>());
}

void Pair::add_fault(const Side& from, const fabric::OccasionRules& rules,
                     std::unique_ptr<fabric::FrameAction> action) {
    faults_.push_back(std::make_unique<fabric::FrameFault>(
        simulation_->bus(), fabric::FaultId{}, std::make_unique<fabric::EveryFrame>(), rules,
        std::move(action), std::vector{&direction_from(from)}));
}

void Pair::stop_dropping() {
    faults_.clear();
}

void Pair::set_link(fabric::LinkState state) {
    simulation_->network().link(0).set_state(state);
}

void Pair::inject(Side& from, const Side& peer, Packet packet) {
    Hca& hca = from.host.hca();
    packet.dest_qpn = peer.qp.qpn();
    packet.source_qpn = from.qp.qpn();
    fabric::FramePtr frame = hca.frames().make();
    AddressVector path = peer.path_to();
    std::string why;
    EXPECT_EQ(resolve_path(hca, path, why), 0) << why;
    address_frame(*frame, hca.port(1), path, from.qp.qpn());
    size_frame(*frame, hca.port(1), packet.operation(), packet.payload.length);
    frame->transport_as<Packet>() = packet;
    hca.send(1, std::move(frame));
}

void Pair::watch_packets() {
    if (!std::exchange(watching_, true)) {
        simulation_->bus().attach(packets_, {fabric::trace::Category::kPacket});
    }
}

std::vector<std::string> Pair::packets_of(const Side& side) const {
    std::vector<std::string> names;
    for (const fabric::trace::TraceRecord* record : packets_.named("packet_sent")) {
        if (record->node == side.host.hca().node()) {
            names.emplace_back(record->text("opcode"));
        }
    }
    return names;
}

std::size_t Pair::retransmissions(const Side& side) const {
    std::size_t count = 0;
    for (const fabric::trace::TraceRecord* record : packets_.named("packet_sent")) {
        const bool again = record->number("retransmission") != 0;
        count += again && record->node == side.host.hca().node() ? 1U : 0U;
    }
    return count;
}

std::vector<std::string> Pair::fates() const {
    std::vector<std::string> fates;
    for (const fabric::trace::TraceRecord* record : packets_.named("packet_discarded")) {
        fates.emplace_back(record->text("fate"));
    }
    return fates;
}

Send send_of(const Side& from, std::uint64_t wr_id, std::size_t offset, std::size_t length) {
    return {.wr_id = wr_id, .segments = {from.segment(offset, length)}};
}

Send write_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
              std::size_t length) {
    Send send = send_of(from, wr_id, offset, length);
    send.opcode = WrOpcode::kRdmaWrite;
    send.remote_address = to.address(offset);
    send.rkey = to.region.rkey;
    return send;
}

Send read_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
             std::size_t length) {
    Send send = write_of(from, to, wr_id, offset, length);
    send.opcode = WrOpcode::kRdmaRead;
    return send;
}

Send fetch_add_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
                  std::uint64_t add) {
    Send send = write_of(from, to, wr_id, offset, kAtomicBytes);
    send.opcode = WrOpcode::kAtomicFetchAndAdd;
    send.compare_add = add;
    return send;
}

Send compare_swap_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
                     std::uint64_t compare, std::uint64_t swap) {
    Send send = fetch_add_of(from, to, wr_id, offset, compare);
    send.opcode = WrOpcode::kAtomicCmpAndSwp;
    send.swap = swap;
    return send;
}

}  // namespace simverbs::test
