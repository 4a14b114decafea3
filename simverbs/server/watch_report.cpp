#include "simverbs/server/watch_report.hpp"

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/server/fabric_report.hpp"
#include "simverbs/server/report_json.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {
namespace {

using fabric::Port;

Json json_of(const Hca& hca, const QueuePair& qp) {
    const QueuePairReport report = qp.report();
    return {{"device", hca.name()},
            {"qpn", report.qpn},
            {"peer", report.dest_qpn},
            {"service", to_string(report.service)},
            {"state", to_string(report.state)},
            {"sends_outstanding", report.sends},
            {"sends_done", report.sends_done},
            {"received", report.messages_received},
            {"waits", waits_for(report)}};
}

// Returns the error counters of the device behind a port.
Json troubles_of(const HwCounters& counters) {
    return {{"failed",
             counters.value(HwCounter::kReqCqeError) + counters.value(HwCounter::kRespCqeError)},
            {"retried", counters.value(HwCounter::kLocalAckTimeoutErr) +
                            counters.value(HwCounter::kPacketSeqErr) +
                            counters.value(HwCounter::kImpliedNakSeqErr)},
            {"not_ready", counters.value(HwCounter::kRnrNakRetryErr)}};
}

Json json_of(const Simulation& simulation, const Port& port) {
    const fabric::PortCounters& counters = port.counters();
    Json json{{"port", port_name(port)},
              {"state", to_string(port.state())},
              {"rate", rate_of(port)},
              {"sent_packets", counters.xmit_packets},
              {"sent_bytes", counters.xmit_data_bytes},
              {"received_packets", counters.rcv_packets},
              {"received_bytes", counters.rcv_data_bytes},
              {"lost", counters.total_discards()}};
    if (port.node().kind() == fabric::NodeKind::kHca) {
        const Hca& hca = simulation.hca(port.node().id().value());
        json.update(troubles_of(hca.hw_counters(port.number().value())));
    }
    return json;
}

}  // namespace

std::string watch_report(Simulation& simulation, const std::string& users) {
    Json queue_pairs = Json::array();
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        const Hca& hca = simulation.hca(i);
        hca.for_each_qp([&](const QueuePair& qp) { queue_pairs.push_back(json_of(hca, qp)); });
    }
    Json ports = Json::array();
    const fabric::Network& network = simulation.network();
    for (std::size_t i = 0; i < network.node_count(); ++i) {
        for (const Port* const port :
             ports_of(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}))) {
            if (port->link() != nullptr) {
                ports.push_back(json_of(simulation, *port));
            }
        }
    }
    return text_of({{"topology", simulation.topology()},
                    {"time_ps", fabric::to_picoseconds(simulation.loop().now())},
                    {"events", simulation.loop().events_run()},
                    {"users", users},
                    {"queue_pairs", std::move(queue_pairs)},
                    {"ports", std::move(ports)}});
}

}  // namespace simverbs
