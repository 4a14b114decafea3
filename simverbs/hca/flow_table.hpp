// Flow steering: which queue pairs take a frame that no transport claims, and which frames leave
// (ibv_create_flow(3)).
//
// Rules are tried by priority, then in the order of their making. The first that matches takes the
// frame, and with it every rule that is its equal; one that does not trap lets the next be tried.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simverbs/hca/port_command.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

namespace simverbs {

class QueuePair;

// enum ibv_flow_attr_type.
enum class FlowType : std::uint8_t {
    kNormal = 0,
    kAllDefault = 1,    // what no normal rule takes
    kGroupDefault = 2,  // the same, of groups only
    kSniffer = 3,       // a copy of every frame
};

// The counts of what rules have matched, each kind at the indices that it was asked for at.
struct CounterSet {
    struct Point {
        bool bytes = false;  // instead of packets
        std::uint32_t index = 0;
    };
    std::vector<Point> points;
    std::array<std::uint64_t, kMaxCounters> values{};
    std::uint32_t uses = 0;  // rules that count here

    void count(std::uint32_t frame_bytes) {
        for (const Point& point : points) {
            values[point.index] += point.bytes ? frame_bytes : 1;
        }
    }
};

struct FlowRule {
    FlowType type = FlowType::kNormal;
    std::uint16_t priority = 0;  // 0 is tried first
    std::uint8_t port = 1;
    bool traps = true;
    bool egress = false;    // for frames that the port sends
    bool drops = false;     // instead of delivering
    std::uint32_t tag = 0;  // that completions of its frames carry
    FrameLayers layers;     // that a frame has to have
    FrameFields value;
    FrameFields mask;
    QueuePair* qp = nullptr;
    CounterSet* counters = nullptr;

    void count(std::uint32_t frame_bytes) const {
        if (counters != nullptr) {
            counters->count(frame_bytes);
        }
    }
};

class FlowTable {
  public:
    void add(const FlowRule& rule);
    void erase(const FlowRule& rule);
    [[nodiscard]] bool empty() const { return rules_.empty(); }
    // Returns true if a rule names the queue pair.
    [[nodiscard]] bool steers_to(const QueuePair& qp) const;

    // Calls deliver(const FlowRule&) for each that takes a frame which arrived at `port`; false
    // when there is none but sniffers.
    template <class F>
    bool match(std::uint8_t port, const FrameHeaders& headers, std::uint32_t bytes,
               F&& deliver) const {
        for (const FlowRule* rule : rules_) {
            if (rule->type == FlowType::kSniffer && rule->port == port) {
                rule->count(bytes);
                deliver(*rule);
            }
        }
        const auto take = [&deliver](const FlowRule& rule) {
            if (!rule.drops) {
                deliver(rule);
            }
        };
        return match_type(FlowType::kNormal, port, headers, bytes, take) ||
               (is_group(headers) &&
                match_type(FlowType::kGroupDefault, port, headers, bytes, take)) ||
               match_type(FlowType::kAllDefault, port, headers, bytes, take);
    }

    // The same of rules for what is sent: whether they let a frame leave by `port`. It may where
    // none matches.
    [[nodiscard]] bool lets_out(std::uint8_t port, const FrameHeaders& headers,
                                std::uint32_t bytes) const {
        bool passes = true;
        static_cast<void>(
            match_type(FlowType::kNormal, port, headers, bytes,
                       [&passes](const FlowRule& rule) { passes = passes && !rule.drops; }));
        return passes;
    }

  private:
    [[nodiscard]] static bool is_group(const FrameHeaders& headers) {
        return (headers.fields.outer.destination_mac[0] & 1U) != 0;
    }
    [[nodiscard]] static bool matches(const FlowRule& rule, const FrameHeaders& headers) {
        return headers.layers.contains(rule.layers) &&
               fields_match(headers.fields, rule.value, rule.mask);
    }
    [[nodiscard]] static bool are_equal(const FlowRule& a, const FlowRule& b);

    // Returns true if a trapping rule matched: rules of other types do not see the frame.
    template <class F>
    [[nodiscard]] bool match_type(FlowType type, std::uint8_t port, const FrameHeaders& headers,
                                  std::uint32_t bytes, F&& take) const {
        const FlowRule* trapped = nullptr;
        for (const FlowRule* rule : rules_) {
            if (rule->type != type || rule->port != port || !matches(*rule, headers) ||
                (trapped != nullptr && !are_equal(*rule, *trapped))) {
                continue;
            }
            rule->count(bytes);
            take(*rule);
            if (rule->traps) {
                trapped = rule;
            }
        }
        return trapped != nullptr;
    }

    std::vector<const FlowRule*> rules_;  // by priority, then age
};

}  // namespace simverbs
