#include "simverbs/outlets/trace_outlets.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace simverbs {

class TraceOutlets::ListenerSink final : public fabric::trace::Sink {
  public:
    explicit ListenerSink(Listener listener) : listener_(std::move(listener)) {}
    void record(const fabric::trace::TraceRecord& record) override { listener_(record); }
    [[nodiscard]] const Listener& listener() const { return listener_; }

  private:
    Listener listener_;
};

TraceOutlets::TraceOutlets(Simulation& simulation)
    : simulation_(simulation), bus_(simulation.bus()) {}

TraceOutlets::~TraceOutlets() {
    close_file();
    close_capture();
    stop_keeping();
    listen({});
}

int TraceOutlets::open_file(const std::string& path, bool flushes_each) {
    if (file_ != nullptr) {
        return EBUSY;
    }
    errno = 0;
    auto file = std::make_unique<fabric::trace::JsonLinesSink>(path);
    if (!file->ok()) {
        return errno != 0 ? errno : EIO;
    }
    if (flushes_each) {
        file->flush_each();
    }
    file_ = std::move(file);
    file_path_ = path;
    bus_.attach(*file_, fabric::trace::CategorySet::all());
    simulation_.describe();
    return 0;
}

int TraceOutlets::close_file() {
    if (file_ == nullptr) {
        return ENOENT;
    }
    bus_.detach(*file_);
    file_->flush();
    const int error = file_->error();
    const bool written = file_->ok();
    file_.reset();
    return written ? 0 : error != 0 ? error : EIO;
}

void TraceOutlets::flush() {
    if (file_ != nullptr) {
        file_->flush();
    }
    if (capture_ != nullptr) {
        capture_->flush();
    }
}

std::vector<std::string> TraceOutlets::incomplete() const {
    std::vector<std::string> all;
    const auto look = [&all](std::string_view what, const std::string& path, int error) {
        if (error != 0) {
            all.push_back(
                fmt::format("{} '{}' is not complete: {}", what, path, std::strerror(error)));
        }
    };
    look("trace file", file_path_, file_ == nullptr ? 0 : file_->error());
    look("capture file", capture_path_, capture_ == nullptr ? 0 : capture_->error());
    look("coverage folder", coverage_folder_, coverage_ == nullptr ? 0 : coverage_->error());
    return all;
}

int TraceOutlets::open_capture(const std::string& path) {
    if (capture_ != nullptr) {
        return EBUSY;
    }
    errno = 0;
    auto capture = std::make_unique<Capture>(simulation_, path);
    if (!capture->ok()) {
        return errno != 0 ? errno : EIO;
    }
    capture_ = std::move(capture);
    capture_path_ = path;
    return 0;
}

int TraceOutlets::close_capture() {
    if (capture_ == nullptr) {
        return ENOENT;
    }
    capture_->flush();
    const int error = capture_->error();
    const bool written = capture_->ok();
    capture_.reset();
    return written ? 0 : error != 0 ? error : EIO;
}

int TraceOutlets::open_coverage(const std::string& folder) {
    errno = 0;
    coverage_folder_ = folder;
    coverage_ = CoverageFile::make(bus_, folder);
    return coverage_ != nullptr ? 0 : errno != 0 ? errno : EIO;
}

void TraceOutlets::stop_keeping() {
    if (kept_ != nullptr) {
        bus_.detach(*kept_);
        kept_.reset();
    }
}

void TraceOutlets::keep(std::size_t records) {
    stop_keeping();
    kept_ = std::make_unique<fabric::trace::MemorySink>(records);
    bus_.attach(*kept_, fabric::trace::CategorySet::all());
}

const TraceOutlets::Listener* TraceOutlets::listener() const {
    return listener_ == nullptr ? nullptr : &listener_->listener();
}

void TraceOutlets::listen(Listener listener) {
    if (listener_ != nullptr) {
        bus_.detach(*listener_);
        listener_.reset();
    }
    if (listener) {
        listener_ = std::make_unique<ListenerSink>(std::move(listener));
        bus_.attach(*listener_, fabric::trace::CategorySet::all());
    }
}

}  // namespace simverbs
