// The operations of programs that call verbs.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/core.h>

#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/program.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kLength = 64;
constexpr std::uint32_t kBadKey = 0x7FFF'FFF0;
constexpr std::uint64_t kDefaultQkey = 0x1111'1111;
constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;

enum class Key : std::uint8_t { kGood, kBad, kStale };
Key key_of(Checked body, std::string_view which) {
    const std::string word = body.text(which);
    return word == "bad" ? Key::kBad : word == "stale" ? Key::kStale : Key::kGood;
}
std::uint32_t choose(Key key, std::uint32_t good, std::uint32_t stale) {
    return key == Key::kBad ? kBadKey : key == Key::kStale ? stale : good;
}

struct Verb {
    std::string_view operation;
    ibv_wr_opcode plain;
    ibv_wr_opcode with_immediate;
};
constexpr auto kVerbs = std::to_array<Verb>({
    {"send", IBV_WR_SEND, IBV_WR_SEND_WITH_IMM},
    {"send_with_invalidate", IBV_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV},
    {"write", IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM},
    {"read", IBV_WR_RDMA_READ, IBV_WR_RDMA_READ},
    {"compare_and_swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
    {"fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
});

unsigned flags_of(Checked body) {
    unsigned flags = body.lists("flags", "unsignaled") ? 0U : unsigned{IBV_SEND_SIGNALED};
    flags |= body.lists("flags", "fence") ? unsigned{IBV_SEND_FENCE} : 0U;
    flags |= body.lists("flags", "solicited") ? unsigned{IBV_SEND_SOLICITED} : 0U;
    flags |= body.lists("flags", "inline") ? unsigned{IBV_SEND_INLINE} : 0U;
    return flags;
}

// Returns the message that the receiver shall find.
Message message_of(const Memory& from, std::uint64_t at, std::uint64_t length) {
    Message message;
    if (at + length <= from.size) {
        message.bytes.assign(from.bytes + at, from.bytes + at + length);
    }
    return message;
}

}  // namespace

void Programs::expect_errno(Checked body, std::string_view verb, int answer) {
    const std::string wanted = body.text("errno");
    const std::string found = answer == 0 ? std::string() : errno_name(answer);
    if (wanted != found) {
        fail(body,
             wanted.empty() ? fmt::format("{} succeeds", verb)
                            : fmt::format("{} answers {}", verb, wanted),
             found.empty() ? std::string("it succeeded") : fmt::format("it answered {}", found));
    }
}

void Programs::receive(Task& task, Checked body) {
    Memory& memory = memory_of(*task.host, body, "memory");
    const std::uint64_t count = body.number("count", 1);
    const std::uint64_t before = rounds_before(task) * count;
    const std::uint32_t lkey = choose(key_of(body, "lkey"), memory.lkey, memory.stale_lkey);
    for (std::uint64_t k = before; k < before + count; ++k) {
        const PostedReceive posted{body.number("id") + k, &memory,
                                   body.size("at") + body.size("step") * k,
                                   body.size("length", kLength)};
        ibv_sge range{reinterpret_cast<std::uint64_t>(memory.bytes) + posted.at,
                      static_cast<std::uint32_t>(posted.length), lkey};
        ibv_recv_wr wr{};
        wr.wr_id = posted.id;
        wr.sg_list = &range;
        wr.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        if (body.has("wq")) {
            const auto wq = task.host->wqs.find(body.text("wq"));
            expect_errno(
                body, "ibv_post_wq_recv",
                wq == task.host->wqs.end() ? ENOENT : ibv_post_wq_recv(wq->second, &wr, &bad));
            continue;
        }
        End* const end = body.has("qp") ? &end_of(task, body) : nullptr;
        SharedReceives* const shared =
            end == nullptr ? &task.host->srqs.find(body.text("srq"))->second : end->shared;
        const int error = end != nullptr && shared == nullptr
                              ? ibv_post_recv(end->qp, &wr, &bad)
                              : ibv_post_srq_recv(shared->srq, &wr, &bad);
        if (error == 0) {
            (shared != nullptr ? shared->posted : end->receives).push_back(posted);
            if (shared == nullptr) {
                end->ids_received.push_back(posted.id);
            }
        }
        expect_errno(body, "posting the receive", error);
    }
}

void Programs::send(Task& task, Checked body, std::string_view operation) {
    const Verb& verb = *std::ranges::find(kVerbs, operation, &Verb::operation);
    const bool is_atomic = operation == "compare_and_swap" || operation == "fetch_and_add";
    const bool is_send = operation == "send" || operation == "send_with_invalidate";
    End& end = end_of(task, body);
    Host& peer = *end.peer->host;
    Memory& memory = memory_of(*task.host, body, "memory");
    Memory& remote = memory_of(peer, body, "remote_memory");
    const std::uint64_t count = body.number("count", 1);
    const std::uint64_t before = rounds_before(task) * count;
    for (std::uint64_t k = before; k < before + count; ++k) {
        const std::uint64_t at = body.size("at") + body.size("step") * k;
        const std::uint64_t to = body.size("to") + body.size("step") * k;
        const std::uint64_t length = body.size("length", is_atomic ? 8 : kLength);
        ibv_sge range{reinterpret_cast<std::uint64_t>(memory.bytes) + at,
                      static_cast<std::uint32_t>(length),
                      choose(key_of(body, "lkey"), memory.lkey, memory.stale_lkey)};
        std::uint32_t rkey = choose(key_of(body, "rkey"), remote.rkey, remote.stale_rkey);
        if (body.has("window")) {
            rkey = peer.windows.find(body.text("window"))->second->rkey;
        }
        const std::uint64_t address = reinterpret_cast<std::uint64_t>(remote.bytes) + to;
        ibv_send_wr wr{};
        wr.wr_id = body.number("id") + k;
        wr.sg_list = &range;
        wr.num_sge = length == 0 ? 0 : 1;
        wr.opcode = body.has("imm") ? verb.with_immediate : verb.plain;
        wr.send_flags = flags_of(body);
        wr.imm_data = htonl(static_cast<std::uint32_t>(body.number("imm")));
        if (operation == "send_with_invalidate") {
            const auto window = peer.windows.find(body.text("invalidate"));
            wr.invalidate_rkey = window == peer.windows.end() ? kBadKey : window->second->rkey;
        }
        if (is_atomic) {
            const bool swaps = operation == "compare_and_swap";
            wr.wr.atomic = {address, swaps ? body.number("expected") : body.number("add", 1),
                            body.number("replacement"), rkey};
        } else if (!is_send) {
            wr.wr.rdma = {address, rkey};
        } else if (end.type == IBV_QPT_UD) {
            wr.wr.ud = {end.ah, end.group ? kMulticastQpn : end.peer->qpn,
                        static_cast<std::uint32_t>(body.number(
                            "qkey", end.qkey.value_or(end.peer->number("qkey", kDefaultQkey))))};
        }
        if (end.type == IBV_QPT_XRC_SEND) {
            wr.qp_type.xrc.remote_srqn =
                static_cast<std::uint32_t>(body.number("srq_number", end.peer->shared->number));
        }
        ibv_send_wr* bad = nullptr;
        const int error = ibv_post_send(end.qp, &wr, &bad);
        if (error == 0) {
            const bool signaled =
                !body.lists("flags", "unsignaled") || end.say("signal_all").own_text() == "true";
            world_.posted(end, {wr.wr_id, signaled});
            if (is_send || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
                Message message = message_of(memory, at, length);
                message.written = is_send ? nullptr : &remote;
                message.at = to;
                world_.left(end, std::move(message));
            }
        }
        expect_errno(body, "ibv_post_send", error);
    }
}

void Programs::bind(Task& task, Checked body) {
    constexpr std::uint64_t kWindowLength = 4096;
    End& end = end_of(task, body);
    Memory& memory = memory_of(*task.host, body, "memory");
    ibv_mw& window = *task.host->windows.find(body.text("window"))->second;
    if (memory.mr == nullptr) {
        fail(body, "a region", memory.name + " is not registered");
        return;
    }
    const ibv_mw_bind_info info{
        memory.mr, reinterpret_cast<std::uint64_t>(memory.bytes) + body.size("at"),
        body.size("length", kWindowLength),
        access_of(body.at("access"), IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)};
    const std::uint64_t id = body.number("id") + rounds_before(task);
    int error = 0;
    if (window.type == IBV_MW_TYPE_1) {
        ibv_mw_bind wanted{id, IBV_SEND_SIGNALED, info};
        error = ibv_bind_mw(end.qp, &window, &wanted);
    } else {
        ibv_send_wr wr{};
        wr.wr_id = id;
        wr.opcode = IBV_WR_BIND_MW;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.bind_mw.mw = &window;
        wr.bind_mw.rkey = ibv_inc_rkey(window.rkey);
        wr.bind_mw.bind_info = info;
        ibv_send_wr* bad = nullptr;
        error = ibv_post_send(end.qp, &wr, &bad);
        if (error == 0) {
            window.rkey = wr.bind_mw.rkey;
        }
    }
    if (error == 0) {
        world_.posted(end, {id, true});
    }
    expect_errno(body, "binding the window", error);
}

void Programs::local_invalidate(Task& task, Checked body) {
    End& end = end_of(task, body);
    ibv_send_wr wr{};
    wr.wr_id = body.number("id") + rounds_before(task);
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = task.host->windows.find(body.text("window"))->second->rkey;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(end.qp, &wr, &bad);
    if (error == 0) {
        world_.posted(end, {wr.wr_id, true});
    }
    expect_errno(body, "ibv_post_send", error);
}

void Programs::modify(Task& task, Checked body) {
    constexpr auto kStates =
        std::to_array<std::pair<const char*, ibv_qp_state>>({{"RESET", IBV_QPS_RESET},
                                                             {"INIT", IBV_QPS_INIT},
                                                             {"RTR", IBV_QPS_RTR},
                                                             {"RTS", IBV_QPS_RTS},
                                                             {"SQD", IBV_QPS_SQD},
                                                             {"SQE", IBV_QPS_SQE},
                                                             {"ERR", IBV_QPS_ERR}});
    End& end = end_of(task, body);
    ibv_qp_attr attr{};
    int mask = 0;
    for (const auto& [name, state] : kStates) {
        if (body.text("state") == name) {
            attr.qp_state = state;
            mask |= IBV_QP_STATE;
        }
    }
    if (body.flag("notify_drained")) {
        attr.en_sqd_async_notify = 1;
        mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
    }
    if (body.flag("alternate")) {
        ibv_port_attr there{};
        ibv_query_port(end.peer->host->context, 1, &there);
        attr.alt_ah_attr.dlid = static_cast<std::uint16_t>(body.number("alternate_lid", there.lid));
        attr.alt_ah_attr.port_num = attr.alt_port_num = 1;
        attr.alt_timeout = static_cast<std::uint8_t>(end.number("timeout", 14));
        mask |= IBV_QP_ALT_PATH;
    }
    if (body.has("migration")) {
        const std::string state = body.text("migration");
        attr.path_mig_state = state == "rearm"   ? IBV_MIG_REARM
                              : state == "armed" ? IBV_MIG_ARMED
                                                 : IBV_MIG_MIGRATED;
        mask |= IBV_QP_PATH_MIG_STATE;
    }
    if (body.has("access")) {
        attr.qp_access_flags = access_of(body.at("access"), 0);
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    if (body.has("min_rnr_timer")) {
        attr.min_rnr_timer = static_cast<std::uint8_t>(body.number("min_rnr_timer"));
        mask |= IBV_QP_MIN_RNR_TIMER;
    }
    if (body.has("pkey_index")) {
        attr.pkey_index = static_cast<std::uint16_t>(body.number("pkey_index"));
        mask |= IBV_QP_PKEY_INDEX;
    }
    if (body.has("qkey")) {
        attr.qkey = static_cast<std::uint32_t>(body.number("qkey"));
        mask |= IBV_QP_QKEY;
    }
    if (body.text("state") == "RESET") {
        expect_errno(body, "ibv_modify_qp", world_.reset(end));
        return;
    }
    expect_errno(body, "ibv_modify_qp", ibv_modify_qp(end.qp, &attr, mask));
}

void Programs::arm(Task& task, Checked body) {
    expect_errno(body, "ibv_req_notify_cq",
                 ibv_req_notify_cq(queue_of(task, body)->cq, body.flag("solicited") ? 1 : 0));
}

void Programs::reconnect(Task& task, Checked body) {
    End& end = end_of(task, body);
    for (End* const each : {&end, end.peer}) {
        expect_errno(body, "ibv_modify_qp to RESET", world_.reset(*each));
    }
    for (End* const each : {&end, end.peer}) {
        expect_errno(body, "ibv_modify_qp", world_.connect(*each));
    }
}

void Programs::destroy(Task& task, Checked body) {
    if (body.has("srq")) {
        SharedReceives& shared = task.host->srqs.find(body.text("srq"))->second;
        const int error = ibv_destroy_srq(shared.srq);
        shared.srq = error == 0 ? nullptr : shared.srq;
        expect_errno(body, "ibv_destroy_srq", error);
        return;
    }
    if (body.has("id")) {
        const CmAnswer answer =
            world_.cm().destroy_id(task.host->ends.find(body.text("id"))->second);
        expect_errno(body, answer.call, answer.error);
        return;
    }
    End& end = end_of(task, body);
    const int error = ibv_destroy_qp(end.qp);
    end.qp = error == 0 ? nullptr : end.qp;
    expect_errno(body, "ibv_destroy_qp", error);
}

void Programs::limit(Task& task, Checked body) {
    ibv_srq_attr attr{};
    attr.srq_limit = static_cast<std::uint32_t>(body.number("below"));
    expect_errno(
        body, "ibv_modify_srq",
        ibv_modify_srq(task.host->srqs.find(body.text("srq"))->second.srq, &attr, IBV_SRQ_LIMIT));
}

void Programs::change_gid(Task& task, Checked body) {
    in6_addr gid{};
    if (inet_pton(AF_INET6, body.text("gid").c_str(), &gid) != 1) {
        fail(body, "a GID as IPv6 is written", body.text("gid"));
    } else if (simverbs_port_set_gid(
                   task.host->name.c_str(), static_cast<std::uint8_t>(body.number("port", 1)),
                   static_cast<unsigned>(body.number("index", 1)), gid.s6_addr) != 0) {
        fail(body, "the GID changes", simverbs_last_error());
    }
}

void Programs::fill(Task& task, Checked body) {
    Memory& memory = memory_of(*task.host, body, "memory");
    const std::uint64_t at = std::min<std::uint64_t>(body.size("at"), memory.size);
    const std::uint64_t length =
        std::min<std::uint64_t>(body.size("length", memory.size), memory.size - at);
    fill_pattern(memory.bytes + at, length, body.number("pattern"));
}

}  // namespace scenarios
