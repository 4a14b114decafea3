// Checks the target of a request for a fault, and the values that it takes.
#include <algorithm>
#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "simverbs/faults/fault_request.hpp"
#include "simverbs/faults/link_rates.hpp"
#include "simverbs/faults/named.hpp"
#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/fault_phrases.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs {

namespace {

bool has_infiniband_port(fabric::Network& network) {
    for (std::size_t i = 0; i < network.host_count(); ++i) {
        const fabric::EndNode& host = network.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            if (host.port(fabric::PortNumber{number}).attributes().link_layer ==
                fabric::LinkLayer::kInfiniband) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace

int FaultRequest::read_target() {
    switch (action_->subject) {
        case FaultSubject::kFault:
            spec_.target.fault = fabric::FaultId(asked_.target.fault);
            return board_.has(spec_.target.fault)
                       ? 0
                       : fail(ENOENT, "target.fault: there is no fault {}", asked_.target.fault);
        case FaultSubject::kLink:
            return read_target_link(false);
        case FaultSubject::kLinkEnd:
            return read_target_link(true);
        case FaultSubject::kPort:
            return read_target_port();
        case FaultSubject::kSwitch:
            return read_target_switch();
        case FaultSubject::kHost:
        case FaultSubject::kPrograms:
        case FaultSubject::kDevice:
            return read_target_device();
        case FaultSubject::kQueuePair:
        case FaultSubject::kWorkQueue:
            return read_target_queue_pair();
        case FaultSubject::kSharedReceiveQueue:
        case FaultSubject::kCompletionQueue:
        case FaultSubject::kMemoryRegion:
            spec_.target.object = asked_.target.object;
            return read_target_device();
        case FaultSubject::kSubnetManager:
            if (!has_infiniband_port(environment_.network())) {
                return fail(EOPNOTSUPP,
                            "{}: all ports are Ethernet ports, which no subnet manager manages",
                            action_->name);
            }
            return environment_.subnet_manager() != nullptr
                       ? 0
                       : fail(EOPNOTSUPP, "{}: this world has no subnet manager", action_->name);
        case FaultSubject::kNothing:
        case FaultSubject::kPacket:
        case FaultSubject::kWorkRequest:
        case FaultSubject::kSendRequest:
        case FaultSubject::kCall:
        case FaultSubject::kPoll:
        case FaultSubject::kCompletion:
        case FaultSubject::kCompletionEvent:
            break;
    }
    return 0;
}

int FaultRequest::read_target_link(bool one_end) {
    const char* name = is_given(asked_.target.link) ? asked_.target.link : asked_.match.link;
    const auto link = find_link(environment_, "target.link", name);
    if (!link) {
        return fail(ENOENT, "{}", link.error());
    }
    spec_.target.link = *link;
    if (one_end) {
        const auto direction = find_direction(**link, "target.node", asked_.target.node);
        if (!direction) {
            return fail(ENOENT, "{}", direction.error());
        }
        spec_.target.direction = *direction;
        spec_.target.port = &spec_.target.direction->from();
    }
    return 0;
}

int FaultRequest::read_target_port() {
    fabric::Network& network = environment_.network();
    fabric::Node* node = network.find_node(text_of(asked_.target.node));
    if (node == nullptr) {
        node = network.find_host(text_of(asked_.target.node));
    }
    if (node == nullptr) {
        const std::string_view name = text_of(asked_.target.node);
        return name.empty()
                   ? fail(EINVAL, "target.node is missing: a host or a switch of topology '{}'",
                          environment_.topology())
                   : fail(ENOENT, "target.node: there is no node '{}' in topology '{}'", name,
                          environment_.topology());
    }
    const std::uint8_t number = std::max<std::uint8_t>(asked_.target.port, 1);
    if (number > node->port_count() || node->port(fabric::PortNumber{number}).link() == nullptr) {
        return fail(ENOENT, "target.port: {} has no port {} with a link", node->name(), number);
    }
    fabric::Port& port = node->port(fabric::PortNumber{number});
    spec_.target.port = &port;
    if (spec_.action == SIMVERBS_FAULT_PORT_ERROR) {
        return 0;
    }
    if (port.attributes().link_layer == fabric::LinkLayer::kEthernet) {
        return fail(EOPNOTSUPP, "{}: port {} of {} is an Ethernet port, which nobody manages",
                    to_string(spec_.action), number, node->name());
    }
    if (environment_.subnet_manager() == nullptr) {
        return fail(EOPNOTSUPP, "{}: this world has no subnet manager of its own",
                    to_string(spec_.action));
    }
    return 0;
}

int FaultRequest::read_target_switch() {
    fabric::Node* node = environment_.network().find_node(text_of(asked_.target.node));
    if (node == nullptr || node->kind() != fabric::NodeKind::kSwitch) {
        const std::string_view name = text_of(asked_.target.node);
        return name.empty()
                   ? fail(EINVAL, "target.node is missing: a switch of topology '{}'",
                          environment_.topology())
                   : fail(ENOENT, "target.node: '{}' is no switch of topology '{}'{}{}", name,
                          environment_.topology(), node == nullptr ? "" : "; for a host take ",
                          node == nullptr ? "" : api_words(FaultPhrase::kHostKill));
    }
    spec_.target.node = node;
    return 0;
}

int FaultRequest::read_target_device() {
    if (!is_given(asked_.target.node) &&
        (trigger_->trigger == SIMVERBS_ON_WORK_REQUEST || trigger_->trigger == SIMVERBS_ON_CALL)) {
        return 0;
    }
    const auto hca = find_device(environment_, "target.node", asked_.target.node);
    if (!hca) {
        return fail(ENOENT, "{}", hca.error());
    }
    spec_.target.hca = *hca;
    spec_.target.node = &environment_.network().node(spec_.target.hca->node());
    return 0;
}

int FaultRequest::read_target_queue_pair() {
    if (const int error = read_target_device(); error != 0) {
        return error;
    }
    if (const int error =
            read_queue("target.queue", number_of(asked_.target.queue), spec_.target.queue);
        error != 0) {
        return error;
    }
    spec_.target.qp = {.qpn = asked_.target.qp_num, .ordinal = asked_.target.qp};
    if (spec_.target.hca == nullptr) {
        return trigger_->trigger == SIMVERBS_ON_WORK_REQUEST
                   ? 0
                   : fail(EINVAL,
                          "target.node is missing: a call has no queue "
                          "pair");
    }
    if (asked_.target.qp == 0 && asked_.target.qp_num == 0) {
        return fail(EINVAL, "{}", api_words(FaultPhrase::kQueuePairMissing));
    }
    if (asked_.target.qp_num != 0) {
        const auto qp = find_queue_pair(*spec_.target.hca, "target.qp_num", asked_.target.qp_num);
        return qp ? 0 : fail(ENOENT, "{}", qp.error());
    }
    return 0;
}

int FaultRequest::read_arguments() {
    const simverbs_fault_arguments& with = asked_.with;
    spec_.with.duration = fabric::SimDuration(with.duration_ps);
    spec_.with.interval = fabric::SimDuration(with.interval_ps);
    spec_.with.times = std::max<std::uint64_t>(with.times, 1);
    spec_.with.value = with.value;
    spec_.with.offset = with.offset;
    spec_.with.bits = with.bits == 0 ? std::uint8_t{0xFF} : with.bits;
    if (const int error = read_ranges(); error != 0) {
        return error;
    }
    switch (spec_.action) {
        case SIMVERBS_FAULT_LINK_FLAP:
            return with.times <= 1 || with.interval_ps != 0
                       ? 0
                       : fail(EINVAL, "{}: with.interval_ps is missing, for more than one time",
                              action_->name);
        case SIMVERBS_FAULT_CM_REJECT:
            return with.value != static_cast<std::uint64_t>(RejectReason::kTimeout)
                       ? 0
                       : fail(EINVAL,
                              "{}: with.value is 4 (timeout), the reason of a side that gives up, "
                              "which answers nothing",
                              action_->name);
        case SIMVERBS_FAULT_REWRITE:
            return read_header_field();
        case SIMVERBS_FAULT_PKEY:
            return read_pkey_index();
        case SIMVERBS_FAULT_LINK_RATE:
            return read_rate();
        default:
            return 0;
    }
}

int FaultRequest::read_ranges() {
    const auto given = given_members(asked_);
    for (const FaultMemberRow& row : kFaultMembers) {
        const bool is_needed = action_->needs.contains(row.member);
        if (!is_needed && !action_->takes.contains(row.member)) {
            continue;
        }
        const std::uint64_t value = std::ranges::find(given, row.name, &GivenMember::name)->value;
        if (value < row.least || value > row.most) {
            return fail(EINVAL, "{}: {} is {}, not {}", action_->name, row.name, value, row.range);
        }
        if (is_needed && value == 0) {
            return fail(EINVAL, "{}: {} is missing", action_->name, row.name);
        }
    }
    return 0;
}

int FaultRequest::read_header_field() {
    const HeaderFieldRow* row = find_header_field(number_of(asked_.with.field));
    if (row == nullptr) {
        return fail(EINVAL, "with.field is {}; {}", number_of(asked_.with.field),
                    api_words(FaultPhrase::kFields));
    }
    spec_.with.field = row->field;
    return holds(row->field, asked_.with.value)
               ? 0
               : fail(EINVAL,
                      "with.value {:#x} does not fit the field; opcodes and "
                      "syndromes are those that have a meaning",
                      asked_.with.value);
}

int FaultRequest::read_pkey_index() {
    const Hca* hca = environment_.hca_at(spec_.target.port->node().id());
    const std::size_t entries = hca == nullptr ? 1 : hca->personality().limits.port.pkey_entries;
    return asked_.with.offset < entries ? 0
                                        : fail(EINVAL, "with.offset is {}; the table has 0 to {}",
                                               asked_.with.offset, entries - 1);
}

int FaultRequest::read_rate() {
    const auto rate = link_rate(asked_.with.width, asked_.with.speed);
    if (!rate) {
        return fail(EINVAL, "with.width {} and with.speed {}; {}", asked_.with.width,
                    asked_.with.speed, kLinkRatesInWords);
    }
    spec_.with.width = rate->first;
    spec_.with.speed = rate->second;
    return 0;
}

}  // namespace simverbs
