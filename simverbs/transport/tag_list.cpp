#include "simverbs/transport/tag_list.hpp"

#include <algorithm>

namespace simverbs {
namespace {

bool matches(const TaggedBuffer& buffer, std::uint64_t tag) {
    return (tag & buffer.mask) == buffer.tag;
}

}  // namespace

void TagList::use_all_if_synchronized() {
    if (synchronized()) {
        in_use_ = tags_.size();
    }
}

bool TagList::would_match(std::uint64_t tag) const {
    return std::any_of(tags_.begin() + static_cast<std::ptrdiff_t>(in_use_), tags_.end(),
                       [tag](const TaggedBuffer& buffer) { return matches(buffer, tag); });
}

void TagList::report(std::uint16_t seen) {
    reported_ = seen;
    use_all_if_synchronized();
}

bool TagList::add(const TaggedBuffer& buffer) {
    if (tags_.size() >= capacity_ || buffer.handle >= capacity_) {
        return false;
    }
    tags_.push_back(buffer);
    use_all_if_synchronized();
    return true;
}

bool TagList::remove(std::uint8_t handle) {
    const auto found = std::ranges::find(tags_, handle, &TaggedBuffer::handle);
    if (found == tags_.end()) {
        return false;
    }
    if (static_cast<std::size_t>(found - tags_.begin()) < in_use_) {
        --in_use_;
    }
    tags_.erase(found);
    return true;
}

std::optional<TaggedBuffer> TagList::match(std::uint64_t tag) {
    const auto end = tags_.begin() + static_cast<std::ptrdiff_t>(in_use_);
    const auto found = std::find_if(
        tags_.begin(), end, [tag](const TaggedBuffer& buffer) { return matches(buffer, tag); });
    if (found == end) {
        return std::nullopt;
    }
    const TaggedBuffer buffer = *found;
    tags_.erase(found);
    --in_use_;
    return buffer;
}

void TagList::discount_unexpected() {
    --unexpected_;
    use_all_if_synchronized();
}

}  // namespace simverbs
