// The control API of simverbs.h over the embedded world: check, call, say what was wrong.
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/net/topology.hpp"

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

using driver::EmbeddedWorld;

constexpr std::size_t kMaxActorName = 63;

thread_local std::string t_last_error;

// Keeps the text for simverbs_last_error; returns `error`.
template <class... Args>
int fail(int error, fmt::format_string<Args...> format, Args&&... args) {
    t_last_error = fmt::format(format, std::forward<Args>(args)...);
    return error;
}

int fail_without_world() {
    return fail(ENODEV,
                "no world in this process: it could not be made (the reason went to stderr), or "
                "the process is attached to a server's");
}

// Runs act(world) with the world held, in the caller's turn; what it returns is the answer.
template <class F>
int in_turn(F&& act) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    class Call final : public PendingCommand {
      public:
        Call(EmbeddedWorld& world, F& act) : world_(world), act_(act) {}
        void run() override { error = act_(world_); }
        int error = 0;

      private:
        EmbeddedWorld& world_;
        F& act_;
    };
    Call call(*world, act);
    world->conductor().execute(call);
    return call.error;
}

int fail_in_use(const char* function) {
    return fail(EBUSY,
                "{}: the world exists already; call it before the first use of a device, or after "
                "simverbs_restart()",
                function);
}

std::string names_of_links(const fabric::Network& network) {
    constexpr std::size_t kMost = 8;
    std::string names;
    for (std::size_t i = 0; i < network.link_count() && i < kMost; ++i) {
        names += (i == 0 ? "" : ", ") + network.link(i).name();
    }
    return network.link_count() > kMost ? names + ", ..." : names;
}

fabric::Link* find_link(EmbeddedWorld& world, const char* function, const char* name) {
    const fabric::Network& network = world.simulation().network();
    fabric::Link* link = name == nullptr ? nullptr : network.find_link(name);
    if (link == nullptr) {
        fail(ENOENT, "{}: there is no link '{}'; topology '{}' has {}", function,
             name == nullptr ? "" : name, world.simulation().options().topology,
             names_of_links(network));
    }
    return link;
}

fabric::LinkDirection* find_direction(EmbeddedWorld& world, const char* function, const char* name,
                                      const char* from_node) {
    fabric::Link* link = find_link(world, function, name);
    if (link == nullptr) {
        return nullptr;
    }
    for (const std::size_t which : {0U, 1U}) {
        fabric::Port& port = link->end(which);
        if (from_node != nullptr && port.node().name() == from_node) {
            return &link->direction_from(port);
        }
    }
    fail(ENOENT, "{}: '{}' is no end of link '{}'; its ends are {} and {}", function,
         from_node == nullptr ? "" : from_node, link->name(), link->end(0).node().name(),
         link->end(1).node().name());
    return nullptr;
}

simverbs_field_kind kind_of(fabric::trace::Field::Kind kind) {
    using Kind = fabric::trace::Field::Kind;
    switch (kind) {
        case Kind::kSigned:
            return SIMVERBS_FIELD_SIGNED;
        case Kind::kUnsigned:
            return SIMVERBS_FIELD_UNSIGNED;
        case Kind::kBool:
            return SIMVERBS_FIELD_BOOL;
        case Kind::kText:
            return SIMVERBS_FIELD_TEXT;
        case Kind::kEnum:
            break;
    }
    return SIMVERBS_FIELD_ENUM;
}

// Tells a C function of each record.
class RecordCallback {
  public:
    RecordCallback(const fabric::Network& network, simverbs_record_callback callback,
                   void* argument)
        : network_(&network), callback_(callback), argument_(argument) {}

    void operator()(const fabric::trace::TraceRecord& record) {
        names_.clear();
        fields_.clear();
        for (const fabric::trace::Field& field : record.fields) {
            names_.emplace_back(field.name);
        }
        for (std::size_t i = 0; i < record.fields.size(); ++i) {
            const fabric::trace::Field& field = record.fields[i];
            fields_.push_back(
                {names_[i].c_str(), kind_of(field.kind), field.number, field.text.c_str()});
        }
        const std::string category(to_string(record.category));
        const std::string name(record.name);
        const simverbs_record out{to_picoseconds(record.time),
                                  network_->node(record.node).name().c_str(),
                                  category.c_str(),
                                  name.c_str(),
                                  fields_.data(),
                                  fields_.size()};
        callback_(&out, argument_);
    }

  private:
    const fabric::Network* network_;
    simverbs_record_callback callback_;
    void* argument_;
    std::vector<std::string> names_;
    std::vector<simverbs_field> fields_;
};

}  // namespace

SIMVERBS_ABI int simverbs_set_topology(const char* topology) {
    const std::string_view wanted = topology == nullptr ? "" : topology;
    if (const fabric::TopologyResult made = fabric::make_topology(wanted); !made.topology) {
        return fail(EINVAL, "simverbs_set_topology: {}", made.error);
    }
    const bool set = Process::current().configure(
        [wanted](driver::EmbeddedOptions& options) { options.simulation.topology = wanted; });
    return set ? 0 : fail_in_use("simverbs_set_topology");
}

SIMVERBS_ABI int simverbs_set_seed(uint64_t seed) {
    const bool set = Process::current().configure(
        [seed](driver::EmbeddedOptions& options) { options.simulation.seed = seed; });
    return set ? 0 : fail_in_use("simverbs_set_seed");
}

SIMVERBS_ABI int simverbs_set_personality(const char* personality) {
    const std::string_view wanted = personality == nullptr ? "" : personality;
    if (find_personality(wanted) == nullptr) {
        std::string known;
        for (const Personality* each : kPersonalities) {
            known += (known.empty() ? "" : ", ") + std::string(each->name);
        }
        return fail(EINVAL, "simverbs_set_personality: '{}' is not known; known are {}", wanted,
                    known);
    }
    const bool set = Process::current().configure(
        [wanted](driver::EmbeddedOptions& options) { options.simulation.personality = wanted; });
    return set ? 0 : fail_in_use("simverbs_set_personality");
}

SIMVERBS_ABI int simverbs_restart(void) {
    return Process::current().restart()
               ? 0
               : fail(EBUSY, "simverbs_restart: a device is open; ibv_close_device() it first");
}

SIMVERBS_ABI int simverbs_now_ps(int64_t* now) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    *now = fabric::to_picoseconds(world->conductor().now());
    return 0;
}

SIMVERBS_ABI int simverbs_advance_ps(int64_t duration) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    const std::int64_t most =
        std::numeric_limits<std::int64_t>::max() - fabric::to_picoseconds(world->conductor().now());
    if (duration < 0 || duration > most) {
        return fail(EINVAL, "simverbs_advance_ps: {} ps; from 0 to {} ps can pass", duration, most);
    }
    world->conductor().advance(fabric::SimDuration(duration));
    return 0;
}

SIMVERBS_ABI int simverbs_actor(const char* name) {
    const std::string_view wanted = name == nullptr ? "" : name;
    if (wanted.empty() || wanted.size() > kMaxActorName) {
        return fail(EINVAL, "simverbs_actor: a name has 1 to {} bytes, not {}", kMaxActorName,
                    wanted.size());
    }
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    return world->conductor().name_current(wanted)
               ? 0
               : fail(EEXIST, "simverbs_actor: another thread is called '{}'", wanted);
}

SIMVERBS_ABI int simverbs_drop_nth(const char* link, const char* from_node, uint64_t nth,
                                   uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_drop_nth: frames are counted from 1");
    }
    return in_turn([=](EmbeddedWorld& world) {
        auto* direction = find_direction(world, "simverbs_drop_nth", link, from_node);
        if (direction == nullptr) {
            return ENOENT;
        }
        const fabric::FaultId id = world.faults().drop_nth(*direction, nth);
        if (fault != nullptr) {
            *fault = id.value();
        }
        return 0;
    });
}

SIMVERBS_ABI int simverbs_drop_all(const char* link, const char* from_node, uint32_t* fault) {
    return in_turn([=](EmbeddedWorld& world) {
        auto* direction = find_direction(world, "simverbs_drop_all", link, from_node);
        if (direction == nullptr) {
            return ENOENT;
        }
        const fabric::FaultId id = world.faults().drop_all(*direction);
        if (fault != nullptr) {
            *fault = id.value();
        }
        return 0;
    });
}

SIMVERBS_ABI int simverbs_clear_fault(uint32_t fault) {
    return in_turn([=](EmbeddedWorld& world) {
        return world.faults().clear(fabric::FaultId(fault))
                   ? 0
                   : fail(ENOENT, "simverbs_clear_fault: there is no fault {}", fault);
    });
}

SIMVERBS_ABI int simverbs_set_link(const char* link, int up) {
    return in_turn([=](EmbeddedWorld& world) {
        fabric::Link* found = find_link(world, "simverbs_set_link", link);
        if (found == nullptr) {
            return ENOENT;
        }
        const auto wanted = up != 0 ? fabric::LinkState::kUp : fabric::LinkState::kDown;
        if (found->state() != wanted) {
            found->set_state(wanted);
        }
        return 0;
    });
}

SIMVERBS_ABI int simverbs_trace_open(const char* path) {
    if (path == nullptr || *path == '\0') {
        return fail(EINVAL, "simverbs_trace_open: no path");
    }
    return in_turn([path](EmbeddedWorld& world) {
        const int error = world.traces().open_file(path);
        if (error == EBUSY) {
            return fail(EBUSY, "simverbs_trace_open: a trace is open; simverbs_trace_close() it");
        }
        return error == 0 ? 0
                          : fail(error, "simverbs_trace_open: '{}' cannot be written: {}", path,
                                 std::strerror(error));
    });
}

SIMVERBS_ABI int simverbs_trace_close(void) {
    return in_turn([](EmbeddedWorld& world) {
        const int error = world.traces().close_file();
        if (error == ENOENT) {
            return fail(ENOENT, "simverbs_trace_close: no trace is open");
        }
        return error == 0 ? 0 : fail(error, "simverbs_trace_close: the trace is not complete");
    });
}

SIMVERBS_ABI int simverbs_trace_callback(simverbs_record_callback callback, void* argument) {
    return in_turn([=](EmbeddedWorld& world) {
        if (callback == nullptr) {
            world.traces().listen({});
        } else {
            world.traces().listen(RecordCallback(world.simulation().network(), callback, argument));
        }
        return 0;
    });
}

SIMVERBS_ABI int simverbs_run_digest(uint64_t* digest) {
    return in_turn([digest](EmbeddedWorld& world) {
        *digest = world.simulation().bus().run_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_packet_digest(uint64_t* digest) {
    return in_turn([digest](EmbeddedWorld& world) {
        world.simulation().bus().enable_packet_digest();
        *digest = world.simulation().bus().packet_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_is_deterministic(int* deterministic) {
    return in_turn([deterministic](EmbeddedWorld& world) {
        const RunMarks& marks = world.conductor().marks();
        *deterministic = marks.deterministic() ? 1 : 0;
        if (!marks.deterministic()) {
            t_last_error = "simverbs_is_deterministic: " + marks.describe();
        }
        return 0;
    });
}

SIMVERBS_ABI const char* simverbs_last_error(void) {
    return t_last_error.c_str();
}

}  // namespace simverbs::abi
