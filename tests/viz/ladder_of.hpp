// Traces written by hand, and the ladders of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drawing.hpp"
#include "viz/ladder.hpp"

namespace viz_test {

using simverbs::viz::Field;
using simverbs::viz::LadderOptions;
using simverbs::viz::Record;
using simverbs::viz::Run;
using simverbs::viz::Trace;

inline constexpr std::int64_t kQp = 17;
inline constexpr std::int64_t kMicrosecond = 1'000'000;

inline Field text_field(std::string name, std::string text) {
    return {.name = std::move(name), .text = std::move(text), .is_text = true};
}

// Two hosts without a switch, h0 with node 0 and h1 with node 1.
class LadderOf {
  public:
    LadderOf() {
        for (const std::int64_t node : {0, 1}) {
            add(0, node, "object", "node",
                {text_field("label", "h" + std::to_string(node)), text_field("kind", "hca")});
            add(0, node, "object", "queue_pair", {{"qpn", kQp}, text_field("service", "RC")});
        }
    }

    void add(std::int64_t time, std::int64_t node, std::string category, std::string name,
             std::vector<Field> fields) {
        trace_.records.push_back({.time = time,
                                  .seq = trace_.records.size(),
                                  .node = static_cast<std::uint32_t>(node),
                                  .category = std::move(category),
                                  .name = std::move(name),
                                  .fields = std::move(fields)});
    }
    void send(std::int64_t time, const std::string& opcode, std::int64_t psn,
              std::int64_t dest_qpn = kQp) {
        add(time, 0, "packet", "packet_sent",
            {{"qpn", kQp},
             {"frame", psn},
             {"dest_qpn", dest_qpn},
             {"bth_opcode", 4},
             text_field("opcode", opcode),
             {"psn", psn},
             {"payload", 1024}});
    }
    void arrive(std::int64_t time, std::int64_t psn) {
        add(time, 1, "packet", "frame_received", frame(psn));
    }
    // A queue pair of h1 takes what came last.
    void deliver(std::int64_t time, std::int64_t qpn) {
        add(time, 1, "message", "delivered",
            {{"qpn", qpn}, text_field("kind", "SEND"), {"bytes", 1}});
    }
    void lose(std::int64_t time, std::int64_t node, std::int64_t psn) {
        add(time, 0, "fault", "fault_fired",
            {{"fault", 3}, text_field("action", "drop"), {"source", 0}, {"flow", kQp}});
        std::vector<Field> fields = frame(psn);
        fields.push_back(text_field("reason", "fault"));
        add(time, node, "packet", "frame_dropped", std::move(fields));
    }
    void discard(std::int64_t time, std::int64_t psn, std::string fate = "queue pair not ready",
                 std::int64_t dest_qpn = kQp) {
        add(time, 1, "packet", "packet_discarded",
            {{"dest_qpn", dest_qpn}, {"psn", psn}, text_field("fate", std::move(fate))});
    }

    [[nodiscard]] Run run() const { return simverbs::viz::read_run(trace_); }
    [[nodiscard]] Drawing drawing(const LadderOptions& options = {}) const {
        const std::string svg = simverbs::viz::ladder(trace_, run(), options);
        expect_readable(svg, "ladder");
        return read_drawing(svg);
    }

  private:
    static std::vector<Field> frame(std::int64_t psn) {
        return {{"port", 1}, {"source", 0}, {"flow", kQp}, {"frame", psn}};
    }
    Trace trace_;
};

inline std::optional<DrawnText> find_text(const Drawing& drawing, const std::string& part) {
    for (const DrawnText& text : drawing.texts) {
        if (text.content.find(part) != std::string::npos) {
            return text;
        }
    }
    return std::nullopt;
}

}  // namespace viz_test
