// Nodes: an end node hands what arrives to a listener (the HCA model, which lives elsewhere); a
// switch forwards (switch.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/core/strong_id.hpp"
#include "fabric/net/deferred_arrivals.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/management.hpp"
#include "fabric/net/port.hpp"

namespace fabric {

enum class NodeKind : std::uint8_t { kHca, kSwitch };

constexpr std::string_view to_string(NodeKind kind) {
    switch (kind) {
        case NodeKind::kHca:
            return "hca";
        case NodeKind::kSwitch:
            return "switch";
    }
    return "?";
}

// The description of a node in management datagrams.
struct NodeLabel {
    Guid guid;
    std::string description;
    std::string host;  // that an HCA is in; of a switch its own name
};

class Node {
  public:
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    [[nodiscard]] NodeId id() const { return id_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] NodeKind kind() const { return kind_; }
    [[nodiscard]] Guid guid() const { return label_.guid; }
    [[nodiscard]] const std::string& description() const { return label_.description; }
    [[nodiscard]] const std::string& host() const { return label_.host; }
    // At first: from its number and name.
    void set_label(NodeLabel label) { label_ = std::move(label); }

    // External ports, numbered from 1.
    [[nodiscard]] std::uint16_t port_count() const { return port_count_; }
    // 1..port_count(), and 0 on a switch (its management port). Asserts the range.
    [[nodiscard]] Port& port(PortNumber number) const;

    virtual void receive(Port& port, FramePtr frame) = 0;
    // A train, or a part of one, of which nobody sees the first packets, whose time it is, apart
    // from the last: whether they have all been taken as far as that goes. Then it is received when
    // the last has its time; otherwise nothing has changed, and its packets come one by one.
    virtual bool take_ahead(Port& /*port*/, Frame& /*train*/) { return false; }
    // A train whose last packet arrives at `last`: whether all of them would be taken ahead now, in
    // which case `touched` says what they touch. Nothing has changed.
    virtual bool would_take(Port& /*port*/, const Frame& /*train*/, SimTime /*last*/,
                            TouchedMemories& /*touched*/) {
        return false;
    }
    virtual void port_changed(Port& port, PortEvent event) = 0;

    // The frame takes no more room in the buffer of the port that it came in by, from `when` on.
    void release_buffer(Frame& frame, SimTime when) {
        if (frame.ingress != 0) {
            give_back_buffer(frame, when);
        }
    }

    // nullptr: management datagrams for this node are dropped (kNoConsumer).
    void set_management_listener(ManagementListener* listener) { management_ = listener; }

  protected:
    void receive_management(Port& port, FramePtr frame);

    Node(NodeId id, std::string name, NodeKind kind, std::uint16_t port_count,
         const NetworkServices& services);

    // No range check, for the forwarding path; nullptr past the end.
    [[nodiscard]] Port* port_or_null(std::uint16_t number) const {
        return number < ports_.size() ? ports_[number].get() : nullptr;
    }

  private:
    void give_back_buffer(Frame& frame, SimTime when);

    NodeId id_;
    std::string name_;
    NodeKind kind_;
    std::uint16_t port_count_;
    NodeLabel label_;
    std::vector<std::unique_ptr<Port>> ports_;  // [0] is a switch's own, else null
    ManagementListener* management_ = nullptr;
};

// The receiver of frames and port events at an end node.
class EndNodeListener {
  public:
    virtual void frame_arrived(Port& port, FramePtr frame) = 0;
    virtual bool take_ahead(Port& /*port*/, Frame& /*train*/) { return false; }
    virtual bool would_take(Port& /*port*/, const Frame& /*train*/, SimTime /*last*/,
                            TouchedMemories& /*touched*/) {
        return false;
    }
    virtual void port_event(Port& port, PortEvent event) = 0;

  protected:
    ~EndNodeListener() = default;
};

class EndNode final : public Node {
  public:
    EndNode(NodeId id, std::string name, std::uint16_t port_count, const NetworkServices& services)
        : Node(id, std::move(name), NodeKind::kHca, port_count, services) {}

    // nullptr: frames are dropped (kNoConsumer) and events go nowhere.
    void set_listener(EndNodeListener* listener) { listener_ = listener; }

    void receive(Port& port, FramePtr frame) override;
    bool take_ahead(Port& port, Frame& train) override {
        return listener_ != nullptr && listener_->take_ahead(port, train);
    }
    bool would_take(Port& port, const Frame& train, SimTime last,
                    TouchedMemories& touched) override {
        return listener_ != nullptr && listener_->would_take(port, train, last, touched);
    }
    void port_changed(Port& port, PortEvent event) override;

  private:
    EndNodeListener* listener_ = nullptr;
};

}  // namespace fabric
