#include "scenarios/engine/world.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "simverbs/model/settings.hpp"

#include "scenarios/engine/own_world.hpp"
#include "scenarios/engine/topology_file.hpp"
#include "scenarios/engine/topology_records.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kDefaultMemory = std::uint64_t{1} << 20;
constexpr std::size_t kAddressesOfByte = 256;
// Room for them from the start: the records of a small run are neither moved as they grow in number
// nor given back to the system, page by page, at its end.
constexpr std::size_t kUsualRecords = 2048;

}  // namespace

unsigned access_of(Checked list, unsigned otherwise) {
    if (list.value() == nullptr) {
        return otherwise;
    }
    constexpr std::pair<const char*, unsigned> kRights[] = {
        {"local_write", IBV_ACCESS_LOCAL_WRITE}, {"remote_write", IBV_ACCESS_REMOTE_WRITE},
        {"remote_read", IBV_ACCESS_REMOTE_READ}, {"remote_atomic", IBV_ACCESS_REMOTE_ATOMIC},
        {"mw_bind", IBV_ACCESS_MW_BIND},
    };
    unsigned access = 0;
    for (const fabric::yaml::Value& item : list.items()) {
        for (const auto& [name, right] : kRights) {
            access |= item.text == name ? right : 0U;
        }
    }
    return access;
}

std::uint8_t pattern_byte(std::uint64_t number, std::uint64_t index) {
    const std::uint64_t mixed =
        (number * 0x9E37'79B9'7F4A'7C15 + index + 1) * 0xBF58'476D'1CE4'E5B9;
    return static_cast<std::uint8_t>(mixed >> 56U);
}

void fill_pattern(std::uint8_t* bytes, std::size_t length, std::uint64_t number) {
    for (std::size_t i = 0; i < length; ++i) {
        bytes[i] = pattern_byte(number, i);
    }
}

std::uint8_t Memory::byte_at_start(std::uint64_t index) const {
    return fill ? pattern_byte(*fill, index) : 0;
}

World::World(const Scenario& scenario, const RunFiles& files)
    : invariants_(scenario.at("expect").at("invariants")) {
    if (!prepare(scenario)) {
        return;
    }
    if (!files.trace.empty() && simverbs_trace_open(files.trace.c_str()) != 0) {
        fail(simverbs_last_error());
        return;
    }
    files_.trace = files.trace;
    if (!files.capture.empty() && simverbs_capture_open(files.capture.c_str()) != 0) {
        fail(simverbs_last_error());
        return;
    }
    files_.capture = files.capture;
    open_hosts(scenario);
    if (error_.empty()) {
        make_connections(scenario);
    }
}

World::~World() {
    end();
    simverbs_restart();
}

std::vector<std::string> World::end() {
    simverbs_trace_callback(nullptr, nullptr);
    destroy_objects();
    hosts_.clear();
    std::vector<std::string> cut;
    const auto close = [&cut](const std::string& file, int (*close_it)()) {
        if (!file.empty() && close_it() != 0) {
            cut.push_back(fmt::format("{}: {}", file, simverbs_last_error()));
        }
    };
    close(std::exchange(files_.trace, {}), &simverbs_trace_close);
    close(std::exchange(files_.capture, {}), &simverbs_capture_close);
    return cut;
}

void World::destroy_objects() {
    cm_.close();
    for (auto& [name, host] : hosts_) {
        for (auto& [unused, end] : host.ends) {
            if (end.qp != nullptr) {
                ibv_destroy_qp(end.qp);
            }
            if (end.ah != nullptr) {
                ibv_destroy_ah(end.ah);
            }
        }
        for (auto& [unused, wq] : host.wqs) {
            ibv_destroy_wq(wq);
        }
        for (auto& [unused, shared] : host.srqs) {
            if (shared.srq != nullptr) {
                ibv_destroy_srq(shared.srq);
            }
            if (shared.domain != nullptr) {
                ibv_close_xrcd(shared.domain);
            }
        }
        for (auto& [unused, window] : host.windows) {
            ibv_dealloc_mw(window);
        }
        for (auto& [unused, memory] : host.memories) {
            if (memory.mr != nullptr) {
                ibv_dereg_mr(memory.mr);
            }
        }
        for (auto& [unused, queue] : host.cqs) {
            ibv_destroy_cq(queue.cq);
            if (queue.channel != nullptr) {
                ibv_destroy_comp_channel(queue.channel);
            }
        }
        for (ibv_pd* const pd : {host.pd, host.other_pd}) {
            if (pd != nullptr) {
                ibv_dealloc_pd(pd);
            }
        }
        if (host.context != nullptr) {
            ibv_close_device(host.context);
        }
    }
}

bool World::fail(std::string_view what) {
    if (error_.empty()) {
        error_ = what;
    }
    return false;
}

namespace {

// A scenario says all there is to say: of the environment only what watches a run is kept. Its
// programs never spin on memory, however long they are busy, and time moves by simverbs_step_ps().
bool settle_environment() {
    for (const simverbs::SettingRow& row : simverbs::kSettings) {
        if (row.scope != simverbs::SettingScope::kEverywhere) {
            unsetenv(row.variable.data());
        }
    }
    return simverbs_restart() == 0 && simverbs_set("spin_ms", "0") == 0 &&
           simverbs_set("helper_thread", "off") == 0;
}

}  // namespace

bool World::prepare(const Scenario& scenario) {
    if (!settle_environment()) {
        return fail(simverbs_last_error());
    }
    records_ = records_of_topology(scenario.topology);
    records_.reserve(kUsualRecords);
    const TopologyFile topology(scenario);
    if (!topology.error().empty()) {
        return fail(topology.error());
    }
    const bool set =
        simverbs_set_topology(topology.spec().c_str()) == 0 && apply_settings(scenario.at("run")) &&
        simverbs_trace_callback(&World::on_record, this) == 0 && simverbs_port_speed_events(1) == 0;
    return set || fail(simverbs_last_error());
}

// The first HCA of each host.
void World::open_hosts(const Scenario& scenario) {
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    std::vector<std::string> names;  // devices come in the order of HCAs
    for (const fabric::NodeSpec& node : scenario.topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca) {
            names.push_back(fabric::host_of(node));
        }
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), static_cast<unsigned>(count));
         ++i) {
        if (hosts_.contains(names[i])) {
            continue;
        }
        Host& host = hosts_[names[i]];
        host.name = names[i];
        host.address = fmt::format("127.77.{}.{}", i / kAddressesOfByte, i % kAddressesOfByte);
        host.context = ibv_open_device(devices[i]);
        if (host.context == nullptr) {
            fail(fmt::format("the device of {} cannot be opened: {}", host.name,
                             std::strerror(errno)));
            break;
        }
        fcntl(host.context->async_fd, F_SETFL, O_NONBLOCK);
        host.pd = ibv_alloc_pd(host.context);
        make_objects(host, scenario);
    }
    ibv_free_device_list(devices);
    if (hosts_.empty()) {
        fail(simverbs_last_error());
    }
}

void World::make_objects(Host& host, const Scenario& scenario) {
    const Checked body = scenario.at("hosts").at(host.name);
    if (!body.at("memory").has("mem")) {
        make_memory(host, "mem", {});
    }
    for (const auto& [name, memory] : body.at("memory").entries()) {
        make_memory(host, name.text, Checked(memory));
    }
    for (const auto& [name, queue] : body.at("completion_queues").entries()) {
        make_cq(host, name.text, Checked(queue).number("size", kDefaultCompletions),
                Checked(queue).flag("channel"));
    }
    for (const auto& [name, queue] : body.at("shared_receives").entries()) {
        SharedReceives& shared = host.srqs[name.text];
        shared.name = name.text;
        shared.size = Checked(queue).number("size", shared.size);
        if (!is_of_xrc(scenario, host.name, name.text)) {
            make_srq(host, shared);
        }
    }
    for (const auto& [name, window] : body.at("windows").entries()) {
        const bool first = Checked(window).text("type") == "1";
        ibv_mw* const made = ibv_alloc_mw(host.pd, first ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
        if (made == nullptr) {
            fail(fmt::format("window {}: {}", name.text, std::strerror(errno)));
            return;
        }
        host.windows[name.text] = made;
    }
    for (const auto& [name, queue] : body.at("work_queues").entries()) {
        make_wq(host, name.text, Checked(queue));
    }
}

void World::make_memory(Host& host, const std::string& name, Checked body) {
    Memory& memory = host.memories[name];
    memory.name = name;
    memory.size = body.size("size", kDefaultMemory);
    memory.bytes = memory_.take(memory.size);
    if (memory.bytes == nullptr) {
        fail(fmt::format("memory {} of {}: {} bytes: {}", name, host.name, memory.size,
                         std::strerror(errno)));
        return;
    }
    if (body.has("fill")) {
        memory.fill = body.number("fill");
        fill_pattern(memory.bytes, memory.size, *memory.fill);
    }
    memory.pd = host.pd;
    if (body.text("domain") == "other") {
        host.other_pd = host.other_pd == nullptr ? ibv_alloc_pd(host.context) : host.other_pd;
        memory.pd = host.other_pd;
    }
    if (const int error = register_again(memory, access_of(body.at("access"), kAllAccess));
        error != 0) {
        fail(fmt::format("memory {} of {}: {}", name, host.name, std::strerror(error)));
    }
}

CompletionQueue& World::make_cq(Host& host, const std::string& name, std::uint64_t entries,
                                bool has_channel) {
    CompletionQueue& queue = host.cqs[name];
    queue.name = name;
    queue.host = &host;
    queue.channel = has_channel ? ibv_create_comp_channel(host.context) : nullptr;
    queue.cq = ibv_create_cq(host.context, static_cast<int>(entries), &queue, queue.channel, 0);
    if (queue.cq == nullptr) {
        fail(fmt::format("completion queue {} of {}: {}", name, host.name, std::strerror(errno)));
        return queue;
    }
    if (queue.channel != nullptr) {
        fcntl(queue.channel->fd, F_SETFL, O_NONBLOCK);
    }
    cqs_[{host.name, queue.cq->handle}] = &queue;
    return queue;
}

void World::make_srq(const Host& host, SharedReceives& shared) {
    ibv_srq_init_attr init{};
    init.attr.max_wr = static_cast<std::uint32_t>(shared.size);
    init.attr.max_sge = 1;
    shared.srq = ibv_create_srq(host.pd, &init);
    if (shared.srq == nullptr) {
        fail(fmt::format("shared receive queue {} of {}: {}", shared.name, host.name,
                         std::strerror(errno)));
    }
}

void World::make_wq(Host& host, const std::string& name, Checked body) {
    ibv_wq_init_attr init{};
    init.wq_type = IBV_WQT_RQ;
    init.max_wr = 16;
    init.max_sge = 1;
    init.pd = host.pd;
    init.cq = host.cqs.find(body.text("cq"))->second.cq;
    ibv_wq* const wq = ibv_create_wq(host.context, &init);
    ibv_wq_attr ready{};
    ready.attr_mask = IBV_WQ_ATTR_STATE;
    ready.wq_state = IBV_WQS_RDY;
    if (wq == nullptr || ibv_modify_wq(wq, &ready) != 0) {
        fail(fmt::format("work queue {} of {}: {}", name, host.name, std::strerror(errno)));
        return;
    }
    host.wqs[name] = wq;
}

Host* World::host(std::string_view name) {
    const auto found = hosts_.find(name);
    return found == hosts_.end() ? nullptr : &found->second;
}

End* World::end(std::string_view name) {
    const std::size_t slash = std::min(name.find('/'), name.size() - 1);
    Host* const owner = host(name.substr(0, slash));
    if (owner == nullptr) {
        return nullptr;
    }
    const auto found = owner->ends.find(name.substr(slash + 1));
    return found == owner->ends.end() ? nullptr : &found->second;
}

std::int64_t World::now() const {
    std::int64_t now = 0;
    simverbs_now_ps(&now);
    return now;
}

int World::deregister(Memory& memory) {
    if (memory.mr == nullptr) {
        return EINVAL;
    }
    const int error = ibv_dereg_mr(memory.mr);
    if (error == 0) {
        memory.mr = nullptr;
        memory.stale_lkey = memory.lkey;
        memory.stale_rkey = memory.rkey;
    }
    return error;
}

int World::register_again(Memory& memory, unsigned access) {
    if (memory.mr != nullptr) {
        return EBUSY;
    }
    memory.access = access;
    memory.mr = ibv_reg_mr(memory.pd, memory.bytes, memory.size, static_cast<int>(access));
    if (memory.mr == nullptr) {
        return errno;
    }
    memory.lkey = memory.mr->lkey;
    memory.rkey = memory.mr->rkey;
    return 0;
}

void World::on_record(const simverbs_record* record, void* self) {
    World& world = *static_cast<World*>(self);
    ++world.seen_;
    const bool is_kept = world.records_.size() < kMostRecords;
    if (!is_kept && is_of_frame_on_its_way(record->name)) {
        return;
    }
    Record seen = record_of(*record);
    if (seen.name == "completion") {
        world.note_completion(seen);
    } else if (seen.name == "programs") {
        world.note_programs(seen);
    }
    world.announced_ += seen.name == "async_event" || seen.name == "port_event" ? 1 : 0;
    world.retries_.see(seen);
    if (is_kept) {
        world.records_.push_back(std::move(seen));
    }
}

void World::note_completion(const Record& record) {
    const auto found = cqs_.find({record.node, static_cast<std::uint32_t>(record.number("cq"))});
    if (found == cqs_.end()) {
        return;
    }
    CompletionQueue& queue = *found->second;
    queue.visible.push_back(record.time_ps);
    if (!std::exchange(queue.is_filled, true)) {
        filled_.push_back(&queue);
    }
}

void World::note_programs(const Record& record) {
    ++program_changes_;
    if (Host* const changed = host(record.text("host")); changed != nullptr) {
        changed->programs_stopped = record.text("change") == "stopped";
        changed->programs_ended = changed->programs_ended || record.text("change") == "ended";
    }
}

}  // namespace scenarios
