// Flow steering: which queue pairs take a frame that no transport claims (ibv_create_flow(3)).
//
// Rules are tried by priority, then in the order of their making. The first that matches takes the
// frame, and with it every rule that is its equal; one that does not trap lets the next be tried.
#pragma once

#include <cstdint>
#include <vector>

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

struct FlowRule {
    FlowType type = FlowType::kNormal;
    std::uint16_t priority = 0;  // 0 is tried first
    std::uint8_t port = 1;
    bool traps = true;
    bool drops = false;  // instead of delivering
    FrameLayers layers;  // that a frame has to have
    FrameFields value;
    FrameFields mask;
    QueuePair* qp = nullptr;
};

class FlowTable {
  public:
    void add(const FlowRule& rule);
    void erase(const FlowRule& rule);
    [[nodiscard]] bool steers_to(const QueuePair& qp) const;

    // Calls deliver(QueuePair&) for each that takes a frame which arrived at `port`; false when
    // there is none but sniffers.
    template <class F>
    bool match(std::uint8_t port, const FrameHeaders& headers, F&& deliver) const {
        for (const FlowRule* rule : rules_) {
            if (rule->type == FlowType::kSniffer && rule->port == port) {
                deliver(*rule->qp);
            }
        }
        return match_type(FlowType::kNormal, port, headers, deliver) ||
               (is_group(headers) && match_type(FlowType::kGroupDefault, port, headers, deliver)) ||
               match_type(FlowType::kAllDefault, port, headers, deliver);
    }

  private:
    [[nodiscard]] static bool is_group(const FrameHeaders& headers) {
        return (headers.fields.destination_mac[0] & 1U) != 0;
    }
    [[nodiscard]] static bool matches(const FlowRule& rule, const FrameHeaders& headers) {
        return headers.layers.contains(rule.layers) &&
               fields_match(headers.fields, rule.value, rule.mask);
    }
    [[nodiscard]] static bool are_equal(const FlowRule& a, const FlowRule& b);

    template <class F>
    bool match_type(FlowType type, std::uint8_t port, const FrameHeaders& headers,
                    F& deliver) const {
        const FlowRule* trapped = nullptr;
        for (const FlowRule* rule : rules_) {
            if (rule->type != type || rule->port != port || !matches(*rule, headers) ||
                (trapped != nullptr && !are_equal(*rule, *trapped))) {
                continue;
            }
            if (!rule->drops) {
                deliver(*rule->qp);
            }
            if (rule->traps) {
                trapped = rule;
            }
        }
        return trapped != nullptr;
    }

    std::vector<const FlowRule*> rules_;  // by priority, then age
};

}  // namespace simverbs
