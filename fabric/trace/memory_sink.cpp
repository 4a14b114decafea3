#include "fabric/trace/memory_sink.hpp"

namespace fabric::trace {

void MemorySink::record(const TraceRecord& record) {
    if (records_.size() == capacity_) {
        records_.pop_front();
        ++forgotten_;
    }
    records_.push_back(record);
}

std::vector<const TraceRecord*> MemorySink::named(std::string_view name) const {
    std::vector<const TraceRecord*> found;
    for (const TraceRecord& record : records_) {
        if (record.name == name) {
            found.push_back(&record);
        }
    }
    return found;
}

std::size_t MemorySink::count(std::string_view name) const {
    return named(name).size();
}

void MemorySink::clear() {
    records_.clear();
    forgotten_ = 0;
}

}  // namespace fabric::trace
