#include "simverbs/world/trace_outlets.hpp"

#include <cerrno>
#include <utility>

namespace simverbs {

class TraceOutlets::ListenerSink final : public fabric::trace::Sink {
  public:
    explicit ListenerSink(Listener listener) : listener_(std::move(listener)) {}
    void record(const fabric::trace::TraceRecord& record) override { listener_(record); }

  private:
    Listener listener_;
};

TraceOutlets::TraceOutlets(fabric::trace::Bus& bus) : bus_(bus) {}

TraceOutlets::~TraceOutlets() {
    close_file();
    listen({});
}

int TraceOutlets::open_file(const std::string& path) {
    if (file_ != nullptr) {
        return EBUSY;
    }
    errno = 0;
    auto file = std::make_unique<fabric::trace::JsonLinesSink>(path);
    if (!file->ok()) {
        return errno != 0 ? errno : EIO;
    }
    file_ = std::move(file);
    bus_.attach(*file_, fabric::trace::CategorySet::all());
    return 0;
}

int TraceOutlets::close_file() {
    if (file_ == nullptr) {
        return ENOENT;
    }
    bus_.detach(*file_);
    file_->flush();
    const bool written = file_->ok();
    file_.reset();
    return written ? 0 : EIO;
}

void TraceOutlets::flush() {
    if (file_ != nullptr) {
        file_->flush();
    }
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
