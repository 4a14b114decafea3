#include "viz/work_requests.hpp"

#include <map>
#include <utility>

namespace simverbs::viz {

std::vector<WorkRequest> work_requests(const Trace& trace, const Run& run) {
    using Posted = std::map<std::uint32_t, std::int64_t>;  // by the index after the post: when
    std::map<std::pair<QpName, bool>, Posted> queues;
    std::vector<WorkRequest> requests;
    for (std::size_t i = 0; i < trace.records.size(); ++i) {
        const Record& record = trace.records[i];
        const QpName qp{record.node, record.id("qpn")};
        if (record.name == "posted") {
            queues[{qp, record.number("send") != 0}][record.id("posted")] = record.time;
        } else if (record.name == "completion") {
            const bool is_send = !record.text("opcode").starts_with("RECV");
            const Posted& queue = queues[{qp, is_send}];
            const auto posted = queue.upper_bound(record.id("index"));
            requests.push_back({.qp = qp,
                                .is_send = is_send,
                                .posted = posted == queue.end() ? run.begin : posted->second,
                                .completion = i});
        }
    }
    return requests;
}

}  // namespace simverbs::viz
