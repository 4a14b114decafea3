#include "simverbs/server/watch_report.hpp"

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/server/fabric_report.hpp"
#include "simverbs/server/json_text.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {
namespace {

using fabric::Port;

constexpr std::uint64_t kWordBytes = 4;  // of xmit_data_words and rcv_data_words

void add_queue_pair(JsonText& json, const Hca& hca, const QueuePair& qp) {
    const QueuePairReport report = qp.report();
    json.open('{');
    json.member("device", hca.name());
    json.member("qpn", report.qpn);
    json.member("peer", report.dest_qpn);
    json.member("service", to_string(report.service));
    json.member("state", to_string(report.state));
    json.member("sends_outstanding", report.sends);
    json.member("sends_done", report.sends_done);
    json.member("received", report.messages_received);
    json.member("waits", waits_for(report));
    json.close('}');
}

// What went wrong at the device behind a port.
void add_troubles(JsonText& json, const HwCounters& counters) {
    json.member("failed",
                counters.value(HwCounter::kReqCqeError) + counters.value(HwCounter::kRespCqeError));
    json.member("retried", counters.value(HwCounter::kLocalAckTimeoutErr) +
                               counters.value(HwCounter::kPacketSeqErr) +
                               counters.value(HwCounter::kImpliedNakSeqErr));
    json.member("not_ready", counters.value(HwCounter::kRnrNakRetryErr));
}

void add_port(JsonText& json, const Simulation& simulation, const Port& port) {
    const fabric::PortCounters& counters = port.counters();
    json.open('{');
    json.member("port", port_name(port));
    json.member("state", to_string(port.state()));
    json.member("rate", rate_of(port));
    json.member("sent_packets", counters.xmit_packets);
    json.member("sent_bytes", counters.xmit_data_words * kWordBytes);
    json.member("received_packets", counters.rcv_packets);
    json.member("received_bytes", counters.rcv_data_words * kWordBytes);
    json.member("lost", counters.total_discards());
    if (port.node().kind() == fabric::NodeKind::kHca) {
        add_troubles(json,
                     simulation.hca(port.node().id().value()).hw_counters(port.number().value()));
    }
    json.close('}');
}

}  // namespace

std::string watch_report(Simulation& simulation) {
    JsonText json;
    json.open('{');
    json.member("topology", simulation.options().topology);
    json.member("time_ps", fabric::to_picoseconds(simulation.loop().now()));
    json.member("events", simulation.loop().events_run());
    json.key("queue_pairs");
    json.open('[');
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        const Hca& hca = simulation.hca(i);
        hca.for_each_qp([&json, &hca](const QueuePair& qp) { add_queue_pair(json, hca, qp); });
    }
    json.close(']');
    json.key("ports");
    json.open('[');
    const fabric::Network& network = simulation.network();
    for (std::size_t i = 0; i < network.node_count(); ++i) {
        for (const Port* const port :
             ports_of(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}))) {
            if (port->link() != nullptr) {
                add_port(json, simulation, *port);
            }
        }
    }
    json.close(']');
    json.close('}');
    return json.text() + '\n';
}

}  // namespace simverbs
