#include "simverbs/outlets/coverage_file.hpp"

#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace simverbs {
namespace {

using fabric::trace::Category;
using fabric::trace::CategorySet;
using fabric::trace::Field;
using fabric::trace::TraceRecord;

constexpr CategorySet kCategories{Category::kCompletion, Category::kState,   Category::kAsyncEvent,
                                  Category::kFault,      Category::kMessage, Category::kPacket,
                                  Category::kObject};

// Those that the views of a trace count, beside all that have a cause.
constexpr std::array<std::string_view, 11> kCounted = {
    "qp_state",      "qp_stayed",   "port_state",  "cq_state",    "srq_state", "wq_state",
    "frame_dropped", "fault_fired", "packet_sent", "async_event", "completion"};

bool is_counted(const TraceRecord& record) {
    for (const std::string_view name : kCounted) {
        if (record.name == name) {
            return true;
        }
    }
    return record.find("cause") != nullptr;
}

// Returns the kind of a record, made of names, and the opcode, whose name transports share.
std::string kind_of(const TraceRecord& record) {
    std::string kind(record.name);
    for (const Field& field : record.fields) {
        if (field.kind == Field::Kind::kEnum || field.kind == Field::Kind::kText) {
            kind += fmt::format(" {}", field.text);
        } else if (field.name == "bth_opcode") {
            kind += fmt::format(" {}", field.number);
        }
    }
    return kind;
}

// Worlds may follow one another in a process, and numbers of processes come again.
std::string free_path(const std::string& folder) {
    for (unsigned number = 1;; ++number) {
        std::string path = fmt::format("{}/{}-{}-{}.jsonl", folder, program_invocation_short_name,
                                       getpid(), number);
        const int descriptor = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (descriptor >= 0) {
            close(descriptor);
            return path;
        }
        if (errno != EEXIST) {
            return {};
        }
    }
}

}  // namespace

std::unique_ptr<CoverageFile> CoverageFile::make(fabric::trace::Bus& bus,
                                                 const std::string& folder) {
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
        return nullptr;
    }
    const std::string path = free_path(folder);
    if (path.empty()) {
        return nullptr;
    }
    std::unique_ptr<CoverageFile> made(new CoverageFile(bus, path));
    return made->file_.ok() ? std::move(made) : nullptr;
}

CoverageFile::CoverageFile(fabric::trace::Bus& bus, const std::string& path)
    : bus_(bus), file_(path) {
    file_.flush();
    bus_.attach(*this, kCategories);
}

CoverageFile::~CoverageFile() {
    bus_.detach(*this);
}

void CoverageFile::record(const TraceRecord& record) {
    if (record.name == "queue_pair") {
        queue_pairs_.insert_or_assign({record.node, record.number("qpn")}, record);
        return;
    }
    if (!is_counted(record)) {
        return;
    }
    std::string kind = kind_of(record);
    const TraceRecord* queue_pair = nullptr;
    if (record.name == "qp_state" || record.name == "qp_stayed") {
        const auto known = queue_pairs_.find({record.node, record.number("qpn")});
        if (known == queue_pairs_.end()) {
            return;
        }
        queue_pair = &known->second;
        kind += fmt::format(" {}", queue_pair->text("service"));
    }
    if (!seen_.insert(std::move(kind)).second) {
        return;
    }
    if (queue_pair != nullptr) {
        file_.record(*queue_pair);
    }
    file_.record(record);
    file_.flush();  // its process may be killed at any time
}

}  // namespace simverbs
