// The functions of simverbs.h that tell of a run: trace files, captures, records one by one, and
// why something failed.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "simverbs/abi/control.hpp"
#include "simverbs/abi/export.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/model/timers.hpp"
#include "simverbs/simverbs.h"
#include "simverbs/world/hang_report.hpp"

namespace simverbs::abi {

namespace {

using driver::EmbeddedWorld;

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

// Tells a C function of records.
class RecordCallback {
  public:
    RecordCallback(const fabric::Network& network, simverbs_record_callback callback,
                   void* argument)
        : network_(&network), callback_(callback), argument_(argument) {}

    void operator()(const fabric::trace::TraceRecord& record) {
        fields_.clear();
        for (const fabric::trace::Field& field : record.fields) {
            fields_.push_back(
                {c_text(field.name), kind_of(field.kind), field.number, field.text.c_str()});
        }
        const simverbs_record out{to_picoseconds(record.time),
                                  network_->node(record.node).name().c_str(),
                                  c_text(to_string(record.category)),
                                  c_text(record.name),
                                  fields_.data(),
                                  fields_.size()};
        callback_(&out, argument_);
    }
    [[nodiscard]] bool is(simverbs_record_callback callback, const void* argument) const {
        return callback_ == callback && argument_ == argument;
    }

  private:
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): literals end with a zero
    static const char* c_text(std::string_view literal) { return literal.data(); }

    const fabric::Network* network_;
    simverbs_record_callback callback_;
    void* argument_;
    std::vector<simverbs_field> fields_;
};

// How the module that explains is given the records that a world has kept.
struct KeptRecords {
    EmbeddedWorld& world;
    const fabric::trace::MemorySink& sink;
};

void give_kept(void* from, simverbs_record_callback see, void* argument) {
    const auto& kept = *static_cast<const KeptRecords*>(from);
    RecordCallback tell(kept.world.simulation().network(), see, argument);
    for (const fabric::trace::TraceRecord& record : kept.sink.records()) {
        tell(record);
    }
}

// Good until the thread's next call; nullptr where it failed.
const char* explain_with(const char* function, ScenarioModuleSubject subject) {
    thread_local std::string told;
    std::string& text = told;
    const int error = in_turn([function, &subject, &text](EmbeddedWorld& world) {
        const fabric::trace::MemorySink* const sink = world.traces().kept();
        if (sink == nullptr) {
            return fail(ENOENT,
                        "{}: no records are kept: simverbs_set_kept_records() before the world is "
                        "made",
                        function);
        }
        KeptRecords kept{world, *sink};
        subject.is_cut = sink->forgotten() > 0;
        auto explained = explain_records(give_kept, &kept, subject);
        if (!explained) {
            return fail(ENOSYS, "{}: {}", function, explained.error());
        }
        text = std::move(*explained);
        if (!text.empty() && sink->forgotten() > 0) {
            text += fmt::format("    (of {} records the first {} were forgotten)\n",
                                sink->records().size() + sink->forgotten(), sink->forgotten());
        }
        return 0;
    });
    return error == 0 ? text.c_str() : nullptr;  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

}  // namespace

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
        return error == 0 ? 0
                          : fail(error, "simverbs_trace_close: the trace is not complete: {}",
                                 std::strerror(error));
    });
}

SIMVERBS_ABI int simverbs_capture_open(const char* path) {
    if (path == nullptr || *path == '\0') {
        return fail(EINVAL, "simverbs_capture_open: no path");
    }
    return in_turn([path](EmbeddedWorld& world) {
        const int error = world.traces().open_capture(path);
        if (error == EBUSY) {
            return fail(EBUSY,
                        "simverbs_capture_open: a capture is open; simverbs_capture_close() it");
        }
        return error == 0 ? 0
                          : fail(error, "simverbs_capture_open: '{}' cannot be written: {}", path,
                                 std::strerror(error));
    });
}

SIMVERBS_ABI int simverbs_capture_close(void) {
    return in_turn([](EmbeddedWorld& world) {
        const int error = world.traces().close_capture();
        if (error == ENOENT) {
            return fail(ENOENT, "simverbs_capture_close: no capture is open");
        }
        return error == 0 ? 0
                          : fail(error, "simverbs_capture_close: the capture is not complete: {}",
                                 std::strerror(error));
    });
}

SIMVERBS_ABI int simverbs_trace_flush(void) {
    return in_turn([](EmbeddedWorld& world) {
        world.traces().flush();
        const std::vector<std::string> incomplete = world.traces().incomplete();
        return incomplete.empty() ? 0 : fail(EIO, "simverbs_trace_flush: {}", incomplete.front());
    });
}

SIMVERBS_ABI int simverbs_trace_callback(simverbs_record_callback callback, void* argument) {
    return in_turn([=](EmbeddedWorld& world) {
        const auto* const before = world.traces().listener();
        if (callback == nullptr) {
            world.traces().listen({});
        } else if (before == nullptr) {
            world.traces().listen(RecordCallback(world.simulation().network(), callback, argument));
        } else if (const auto* same = before->target<RecordCallback>();
                   same == nullptr || !same->is(callback, argument)) {
            return fail(EBUSY,
                        "simverbs_trace_callback: another one is called (SIMVERBS_SCENARIO has "
                        "one); NULL ends it");
        }
        return 0;
    });
}

SIMVERBS_ABI const char* simverbs_explain(const char* host, uint32_t qp_num) {
    return explain_with("simverbs_explain", {host == nullptr ? "" : host, qp_num, false, 0, 0, 0});
}

SIMVERBS_ABI const char* simverbs_explain_completion(ibv_cq* cq, const ibv_wc* wc) {
    if (cq == nullptr || wc == nullptr) {
        fail(EINVAL, "simverbs_explain_completion: NULL");
        return nullptr;
    }
    const std::string& host = as_object(cq->context->device).info().host;
    return explain_with("simverbs_explain_completion",
                        {host.c_str(), wc->qp_num, false, cq->handle,
                         as_object(cq).queue.unread(wc->qp_num), wc->status});
}

SIMVERBS_ABI const char* simverbs_waits(void) {
    thread_local std::string told;
    std::string& text = told;
    const int error = in_turn([&text](EmbeddedWorld& world) {
        text = describe_queue_pairs(world.simulation());
        return 0;
    });
    return error == 0 ? text.c_str() : nullptr;  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

SIMVERBS_ABI int simverbs_report_queue_pairs(
    void (*see)(const struct simverbs_queue_pair_report* report, void* argument), void* argument) {
    if (see == nullptr) {
        return fail(EINVAL, "simverbs_report_queue_pairs: the function to call is NULL");
    }
    return in_turn([see, argument](EmbeddedWorld& world) {
        const Simulation& simulation = world.simulation();
        for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
            const Hca& hca = simulation.hca(i);
            hca.for_each_qp([&](const auto& qp) {
                const QueuePairReport report = qp.report();
                if (report.state == QpState::kReset) {
                    return;
                }
                const auto timer = report.rnr_until ? report.rnr_until : report.answer_until;
                const simverbs_queue_pair_report out{
                    hca.name().c_str(),
                    report.qpn,
                    report.sends,
                    report.sends_started,
                    report.receives,
                    timer ? to_picoseconds(*timer) : -1,
                    report.rnr_naks,
                    report.rnr_retries_left == kRnrRetryForever
                        ? -1
                        : static_cast<int>(report.rnr_retries_left)};
                see(&out, argument);
            });
        }
        return 0;
    });
}

}  // namespace simverbs::abi
