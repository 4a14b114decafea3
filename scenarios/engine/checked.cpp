#include "scenarios/engine/checked.hpp"

#include <algorithm>

#include "fabric/yaml/quantities.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

const yaml::Value* Checked::find(std::string_view key) const {
    for (const yaml::Entry& entry : entries()) {
        if (entry.key.text == key) {
            return &entry.value;
        }
    }
    return nullptr;
}

Checked Checked::at(std::string_view key) const {
    const yaml::Value* const found = find(key);
    return found == nullptr ? Checked() : Checked(*found);
}

yaml::Position Checked::position() const {
    return value_ == nullptr ? yaml::Position{} : value_->position;
}

std::string Checked::own_text() const {
    return value_ == nullptr ? std::string() : value_->text;
}

std::uint64_t Checked::own_number() const {
    return yaml::parse_number(value_->text).value_or(0);
}

std::int64_t Checked::own_duration() const {
    return yaml::parse_duration(value_->text).value_or(fabric::SimDuration{}).count();
}

std::string Checked::text(std::string_view key, std::string_view otherwise) const {
    const yaml::Value* const found = find(key);
    return found == nullptr ? std::string(otherwise) : found->text;
}

std::uint64_t Checked::number(std::string_view key, std::uint64_t otherwise) const {
    const yaml::Value* const found = find(key);
    return found == nullptr ? otherwise : Checked(*found).own_number();
}

bool Checked::flag(std::string_view key, bool otherwise) const {
    const yaml::Value* const found = find(key);
    return found == nullptr ? otherwise : found->text == "true";
}

std::int64_t Checked::duration(std::string_view key, std::int64_t otherwise) const {
    const yaml::Value* const found = find(key);
    return found == nullptr ? otherwise : Checked(*found).own_duration();
}

std::uint64_t Checked::size(std::string_view key, std::uint64_t otherwise) const {
    const yaml::Value* const found = find(key);
    if (found == nullptr) {
        return otherwise;
    }
    return yaml::parse_bytes(found->text).value_or(Checked(*found).own_number());
}

std::size_t Checked::word(std::string_view key, std::span<const std::string_view> words,
                          std::size_t otherwise) const {
    const yaml::Value* const found = find(key);
    return found == nullptr
               ? otherwise
               : static_cast<std::size_t>(std::ranges::find(words, found->text) - words.begin());
}

bool Checked::lists(std::string_view key, std::string_view word) const {
    const std::span<const yaml::Value> all = at(key).items();
    return std::ranges::any_of(all, [word](const yaml::Value& item) { return item.text == word; });
}

std::span<const yaml::Value> Checked::items() const {
    return value_ == nullptr ? std::span<const yaml::Value>() : value_->items;
}

std::span<const yaml::Entry> Checked::entries() const {
    return value_ == nullptr ? std::span<const yaml::Entry>() : value_->entries;
}

}  // namespace scenarios
