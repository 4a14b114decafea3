// Queue pairs of both ends, and what takes them from RESET to RTS.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>

#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kDefaultPsn = 100;
constexpr std::uint64_t kDefaultQkey = 0x1111'1111;

// How reasons of refusals name what keys of connections say, later ones over earlier ones.
constexpr auto kKeysOfAttributes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"AV", "lid"},
    {"sgid_index", "gid_index"},
    {"pkey_index", "pkey_index"},
    {"port_num", "port"},
    {"path_mtu", "mtu"},
    {"max_rd_atomic", "initiator_depth"},
    {"max_dest_rd_atomic", "responder_resources"},
    {"max_send_wr", "sends"},
    {"max_recv_wr", "receives"},
    {"max_inline_data", "inline"},
});

ibv_qp_type type_of(std::string_view service) {
    return service == "UC" ? IBV_QPT_UC : service == "UD" ? IBV_QPT_UD : IBV_QPT_RC;
}

ibv_mtu mtu_of(std::uint64_t bytes) {
    int code = IBV_MTU_256;
    for (std::uint64_t size = 256; size < bytes; size *= 2) {
        ++code;
    }
    return static_cast<ibv_mtu>(code);
}

// On Ethernet: RoCE v2 over IPv4, which lies elsewhere with each device.
std::uint8_t ipv4_gid_index(ibv_context* context, std::uint8_t port) {
    constexpr std::uint8_t kEntries = 8;
    ibv_gid_entry entry{};
    for (std::uint8_t i = 0; i < kEntries; ++i) {
        if (ibv_query_gid_ex(context, port, i, &entry, 0) == 0 &&
            entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid.global.subnet_prefix == 0) {
            return i;
        }
    }
    return 0;
}

ibv_qp_cap capacity_of(const End& end) {
    constexpr std::uint64_t kSlots = 256;
    ibv_qp_cap cap{};
    cap.max_send_wr = static_cast<std::uint32_t>(end.number("sends", kSlots));
    cap.max_recv_wr = static_cast<std::uint32_t>(end.number("receives", kSlots));
    cap.max_send_sge = cap.max_recv_sge = 1;
    cap.max_inline_data = static_cast<std::uint32_t>(end.number("inline", 256));
    return cap;
}

}  // namespace

bool is_of_xrc(const Scenario& scenario, std::string_view host, std::string_view srq) {
    return std::ranges::any_of(scenario.at("connections").entries(), [&](const auto& connection) {
        const Checked body(connection.value);
        const Checked own = body.at("ends").at(host);
        return body.text("type") == "XRC" && body.at("between").items()[1].text == host &&
               (own.has("srq") ? own : body).text("srq") == srq;
    });
}

Checked End::say(std::string_view key) const {
    return own.has(key) ? own.at(key) : both.at(key);
}

std::uint64_t End::number(std::string_view key, std::uint64_t otherwise) const {
    const Checked said = say(key);
    return said.value() == nullptr ? otherwise : said.own_number();
}

void World::make_connections(const Scenario& scenario) {
    for (const auto& [name, body] : scenario.at("connections").entries()) {
        const Checked both(body);
        const std::span<const fabric::yaml::Value> hosts = both.at("between").items();
        std::array<End*, 2> ends{};
        for (std::size_t i = 0; i < 2; ++i) {
            Host& owner = hosts_.find(hosts[i].text)->second;
            End& end = owner.ends[name.text];
            end.connection = name.text;
            end.name = owner.name + "/" + name.text;
            end.host = &owner;
            end.both = both;
            end.own = both.at("ends").at(owner.name);
            end.type = type_of(both.text("type", "RC"));
            end.is_by_cm = both.flag("cm");
            ends[i] = &end;
        }
        ends[0]->peer = ends[1];
        ends[1]->peer = ends[0];
        if (both.text("type") == "XRC") {
            ends[0]->type = IBV_QPT_XRC_SEND;
            ends[1]->type = IBV_QPT_XRC_RECV;
        }
        for (End* const end : ends) {
            make_end(*end);
            if (error_.empty() && end->qp == nullptr) {
                refuse(scenario, *end, "ibv_create_qp", errno);
            }
        }
        for (End* const end : ends) {
            const int error = error_.empty() && !end->is_by_cm ? connect(*end) : 0;
            if (error != 0) {
                refuse(scenario, *end, "ibv_modify_qp", error);
            }
        }
    }
}

// A verb has refused what the scenario says about an end: with the place of the key that the reason
// of the library speaks of, or else that of the connection.
void World::refuse(const Scenario& scenario, const End& end, std::string_view verb, int error) {
    const std::string said = simverbs_last_error();
    const bool is_about_it = said.starts_with(verb);
    std::string key;
    for (const auto& [attribute, its_key] : kKeysOfAttributes) {
        if (is_about_it && said.find(attribute) != std::string::npos &&
            end.say(its_key).value() != nullptr) {
            key = its_key;
        }
    }
    const Checked where = key.empty() ? end.both : end.say(key);
    fabric::yaml::Errors errors(scenario.files());
    errors.add(where.position(),
               fmt::format("{}{}: {}", key.empty() ? "" : key + ": ", end.name,
                           is_about_it ? said : fmt::format("{}: {}", verb, std::strerror(error))));
    fail(errors.text());
}

void World::make_end(End& end) {
    Host& host = *end.host;
    const auto queue = [&](std::string_view key) -> CompletionQueue& {
        const Checked said = end.say(key);
        const std::string name = said.value() == nullptr ? end.connection : said.own_text();
        const auto found = host.cqs.find(name);
        return found == host.cqs.end()
                   ? make_cq(host, name, end.number("completions", kDefaultCompletions), false)
                   : found->second;
    };
    end.receive_cq = &queue("cq");
    end.send_cq = end.say("send_cq").value() == nullptr ? end.receive_cq : &queue("send_cq");
    if (!error_.empty()) {
        return;
    }
    if (end.type == IBV_QPT_XRC_SEND || end.type == IBV_QPT_XRC_RECV) {
        make_xrc_end(end);
    } else {
        if (const Checked shared = end.say("srq"); shared.value() != nullptr) {
            const auto found = host.srqs.find(shared.own_text());
            end.shared = found == host.srqs.end() ? nullptr : &found->second;
        }
        ibv_qp_init_attr init{};
        init.send_cq = end.send_cq->cq;
        init.recv_cq = end.receive_cq->cq;
        init.srq = end.shared == nullptr ? nullptr : end.shared->srq;
        init.cap = capacity_of(end);
        init.qp_type = end.type;
        init.sq_sig_all = end.say("signal_all").own_text() == "true" ? 1 : 0;
        end.qp = ibv_create_qp(host.pd, &init);
    }
    if (end.qp == nullptr) {
        return;
    }
    end.qpn = end.qp->qp_num;
    ends_[{host.name, end.qpn}] = &end;
}

// The first host is the initiator, the second the target.
void World::make_xrc_end(End& end) {
    Host& host = *end.host;
    ibv_qp_init_attr_ex init{};
    init.qp_type = end.type;
    if (end.type == IBV_QPT_XRC_SEND) {
        init.comp_mask = IBV_QP_INIT_ATTR_PD;
        init.pd = host.pd;
        init.send_cq = end.send_cq->cq;
        init.cap = capacity_of(end);
        init.sq_sig_all = end.say("signal_all").own_text() == "true" ? 1 : 0;
        end.qp = ibv_create_qp_ex(host.context, &init);
        return;
    }
    const Checked named = end.say("srq");
    SharedReceives& shared =
        host.srqs[named.value() == nullptr ? end.connection : named.own_text()];
    if (shared.srq == nullptr) {
        make_xrc_srq(end, shared);
        if (!error_.empty()) {
            return;
        }
    }
    end.shared = &shared;
    end.receive_cq = shared.cq;
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = shared.domain;
    end.qp = ibv_create_qp_ex(host.context, &init);
}

// Makes the shared receive queue of the target `end`, and its domain. Completions go to the queue
// of `end`, and those of further ends that share it, too.
void World::make_xrc_srq(const End& end, SharedReceives& shared) {
    if (shared.name.empty()) {
        shared.name = end.connection;
        shared.size = end.number("receives", shared.size);
    }
    ibv_context* const context = end.host->context;
    ibv_xrcd_init_attr domain{};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    domain.oflags = O_CREAT;
    shared.domain = ibv_open_xrcd(context, &domain);
    shared.cq = end.receive_cq;
    ibv_srq_init_attr_ex receives{};
    receives.attr.max_wr = static_cast<std::uint32_t>(shared.size);
    receives.attr.max_sge = 1;
    receives.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                         IBV_SRQ_INIT_ATTR_PD;
    receives.srq_type = IBV_SRQT_XRC;
    receives.xrcd = shared.domain;
    receives.cq = shared.cq->cq;
    receives.pd = end.host->pd;
    shared.srq = ibv_create_srq_ex(context, &receives);
    if (shared.srq == nullptr || ibv_get_srq_num(shared.srq, &shared.number) != 0) {
        fail(fmt::format("{}: no XRC shared receive queue: {}", end.name, std::strerror(errno)));
    }
}

void World::give_address(End& end, ibv_ah_attr& address) {
    const auto port = static_cast<std::uint8_t>(end.number("port", 1));
    const auto peer_port = static_cast<std::uint8_t>(end.peer->number("port", 1));
    ibv_port_attr there{};
    ibv_query_port(end.peer->host->context, peer_port, &there);
    address.port_num = port;
    address.dlid = static_cast<std::uint16_t>(end.number("lid", there.lid));
    if (there.link_layer == IBV_LINK_LAYER_ETHERNET) {
        address.is_global = 1;
        address.grh.hop_limit = 64;
        address.grh.sgid_index = static_cast<std::uint8_t>(
            end.number("gid_index", ipv4_gid_index(end.host->context, port)));
        const auto remote = static_cast<std::uint8_t>(
            end.peer->number("gid_index", ipv4_gid_index(end.peer->host->context, peer_port)));
        ibv_query_gid(end.peer->host->context, peer_port, remote, &address.grh.dgid);
    }
}

// As far as `state` says, from RESET or INIT.
int World::connect(End& end) {
    const Checked wanted = end.say("state");
    const std::string state = wanted.value() == nullptr ? "RTS" : wanted.own_text();
    const bool is_acknowledged =
        end.type == IBV_QPT_RC || end.type == IBV_QPT_XRC_SEND || end.type == IBV_QPT_XRC_RECV;
    const bool responds = end.type == IBV_QPT_RC || end.type == IBV_QPT_XRC_RECV;
    const bool requests = end.type == IBV_QPT_RC || end.type == IBV_QPT_XRC_SEND;
    if (state == "RESET") {
        return 0;
    }
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = static_cast<std::uint16_t>(end.number("pkey_index", 0));
    attr.port_num = static_cast<std::uint8_t>(end.number("port", 1));
    attr.qkey = static_cast<std::uint32_t>(end.number("qkey", kDefaultQkey));
    attr.qp_access_flags = access_of(end.say("access"), kAllAccess);
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    mask |= end.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    int error = ibv_modify_qp(end.qp, &attr, mask);
    if (error != 0 || state == "INIT") {
        return error;
    }
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_of(end.number("mtu", 1024));
    attr.dest_qp_num = end.peer->qpn;
    attr.rq_psn =
        static_cast<std::uint32_t>(end.number("receive_psn", end.peer->number("psn", kDefaultPsn)));
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(end.number("responder_resources", 16));
    attr.min_rnr_timer = static_cast<std::uint8_t>(end.number("min_rnr_timer", 12));
    give_address(end, attr.ah_attr);
    mask = IBV_QP_STATE;
    mask |=
        end.type == IBV_QPT_UD ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    mask |= responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
    error = ibv_modify_qp(end.qp, &attr, mask);
    if (end.type == IBV_QPT_UD && end.ah == nullptr) {
        end.ah = ibv_create_ah(end.host->pd, &attr.ah_attr);
    }
    if (error != 0 || state == "RTR") {
        return error;
    }
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = static_cast<std::uint32_t>(end.number("psn", kDefaultPsn));
    attr.timeout = static_cast<std::uint8_t>(end.number("timeout", 14));
    attr.retry_cnt = static_cast<std::uint8_t>(end.number("retries", 7));
    attr.rnr_retry = static_cast<std::uint8_t>(end.number("rnr_retries", 7));
    attr.max_rd_atomic = static_cast<std::uint8_t>(end.number("initiator_depth", 16));
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    mask |= is_acknowledged ? IBV_QP_TIMEOUT : 0;
    mask |= requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
    return ibv_modify_qp(end.qp, &attr, mask);
}

int World::reset(End& end) {
    end.has_ids = false;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    const int error = ibv_modify_qp(end.qp, &attr, IBV_QP_STATE);
    if (error == 0) {
        end.posted = 0;
        end.sends.clear();
        end.receives.clear();
        end.arriving.clear();
    }
    return error;
}

}  // namespace scenarios
