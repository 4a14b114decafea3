#include "fabric/yaml/value_builder.hpp"

#include <algorithm>
#include <utility>

#include <yaml-cpp/exceptions.h>

namespace fabric::yaml {

Position position_of(const YAML::Mark& mark) {
    return {static_cast<std::size_t>(std::max(mark.line, 0)) + 1,
            static_cast<std::size_t>(std::max(mark.column, 0)) + 1};
}

void ValueBuilder::OnDocumentStart(const YAML::Mark& mark) {
    begin_ = position_of(mark);
}

void ValueBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Value value;
    value.position = position_of(mark);
    count(mark, value, open_.size());
    add(std::move(value), anchor);
}

void ValueBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
        throw YAML::ParserException(mark, "an alias inside of what it stands for");
    }
    count(mark, found->second, open_.size());
    add(found->second, YAML::NullAnchor);
}

void ValueBuilder::OnScalar(const YAML::Mark& mark, const std::string& /*tag*/,
                            YAML::anchor_t anchor, const std::string& text) {
    Value value;
    value.kind = Kind::kScalar;
    value.position = position_of(mark);
    value.text = text;
    count(mark, value, open_.size());
    add(std::move(value), anchor);
}

void ValueBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                                   YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) {
    open(mark, Kind::kList, anchor);
}

void ValueBuilder::OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/,
                              YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) {
    open(mark, Kind::kMapping, anchor);
}

void ValueBuilder::open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor) {
    Value value;
    value.kind = kind;
    value.position = position_of(mark);
    count(mark, value, open_.size());
    open_.push_back({std::move(value), anchor, std::nullopt});
}

void ValueBuilder::close() {
    Open ended = std::move(open_.back());
    open_.pop_back();
    add(std::move(ended.value), ended.anchor);
}

void ValueBuilder::add(Value value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
        anchored_[anchor] = value;
    }
    if (open_.empty()) {
        root_ = std::move(value);
        return;
    }
    Open& into = open_.back();
    if (into.value.kind == Kind::kList) {
        into.value.items.push_back(std::move(value));
    } else if (!into.key) {
        if (value.kind != Kind::kScalar) {
            errors_.add(value.position, "a key is a word, no list and no mapping");
        }
        into.key = std::move(value);
    } else {
        into.value.entries.push_back({std::move(*into.key), std::move(value)});
        into.key.reset();
    }
}

// The value and all in it, as it is copied or made at this depth.
void ValueBuilder::count(const YAML::Mark& mark, const Value& value, std::size_t depth) {
    text_ += value.text.size();
    if (depth > Value::kMaxDepth) {
        throw YAML::ParserException(mark, "nested too deep");
    }
    if (++values_ > Value::kMaxValues) {
        throw YAML::ParserException(mark, "too many values");
    }
    if (text_ > Value::kMaxText) {
        throw YAML::ParserException(mark, "too much text");
    }
    for (const Value& item : value.items) {
        count(mark, item, depth + 1);
    }
    for (const Entry& entry : value.entries) {
        count(mark, entry.key, depth + 1);
        count(mark, entry.value, depth + 1);
    }
}

}  // namespace fabric::yaml
