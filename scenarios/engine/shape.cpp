#include "scenarios/engine/shape.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "fabric/core/nearest.hpp"
#include "fabric/yaml/fields.hpp"

#include "scenarios/engine/observation.hpp"

namespace scenarios {

namespace {

namespace yaml = fabric::yaml;
using yaml::Kind;
using yaml::Value;

std::vector<std::string_view> names_of(std::span<const Key> keys, std::span<const Key> more) {
    std::vector<std::string_view> names;
    for (const std::span<const Key> each : {keys, more}) {
        for (const Key& key : each) {
            names.push_back(key.name);
        }
    }
    return names;
}

const Key* find_key(const Shape& shape, std::string_view name) {
    for (const std::span<const Key> keys : {shape.keys, shape.more}) {
        const auto found = std::ranges::find(keys, name, &Key::name);
        if (found != keys.end()) {
            return &*found;
        }
    }
    return nullptr;
}

Kind yaml_kind(const Shape& shape) {
    switch (shape.kind) {
        case ShapeKind::kList:
            return Kind::kList;
        case ShapeKind::kMapping:
        case ShapeKind::kOneOf:
        case ShapeKind::kNamed:
            return Kind::kMapping;
        default:
            return Kind::kScalar;
    }
}

class Checker {
  public:
    Checker(const KnownNames& names, yaml::Errors& errors) : names_(names), errors_(errors) {}

    void check(const Value& value, const Shape& shape) {
        if (shape.instead != nullptr && value.kind != yaml_kind(shape)) {
            check(value, *shape.instead);
            return;
        }
        switch (shape.kind) {
            case ShapeKind::kText:
                yaml::text_of(value, errors_);
                break;
            case ShapeKind::kNumber:
                check_number(value, shape);
                break;
            case ShapeKind::kFlag:
                check_flag(value);
                break;
            case ShapeKind::kDuration:
                check_duration(value, shape);
                break;
            case ShapeKind::kSize:
                check_size(value, shape);
                break;
            case ShapeKind::kWord:
                yaml::choice_of(value, shape.words, errors_);
                break;
            case ShapeKind::kName:
                check_name(value, shape.refers_to);
                break;
            case ShapeKind::kList:
                for (const Value& item : yaml::items_of(value, errors_)) {
                    check(item, *shape.item);
                }
                break;
            case ShapeKind::kNamed:
                check_named(value, shape);
                break;
            case ShapeKind::kMapping:
            case ShapeKind::kOneOf:
                check_mapping(value, shape);
                break;
            case ShapeKind::kAnything:
                break;
        }
    }

  private:
    void check_number(const Value& value, const Shape& shape) {
        if (shape.words.empty()) {
            yaml::number_of(value, errors_, shape.least, shape.most);
            return;
        }
        yaml::Errors ignored("");
        if (std::ranges::count(shape.words, value.text) == 0 &&
            !yaml::number_of(value, ignored, shape.least, shape.most)) {
            errors_.add(value.position,
                        fmt::format("\"{}\": expected a number from {} on, or {}", value.text,
                                    shape.least, yaml::join(shape.words)));
        }
    }

    void check_flag(const Value& value) {
        constexpr auto kFlags = std::to_array<std::string_view>({"true", "false"});
        yaml::choice_of(value, kFlags, errors_);
    }

    void check_duration(const Value& value, const Shape& shape) {
        const auto duration = yaml::duration_of(value, errors_);
        if (duration && static_cast<std::uint64_t>(duration->count()) < shape.least) {
            errors_.add(value.position,
                        fmt::format("\"{}\": expected more than nothing", value.text));
        }
    }

    void check_size(const Value& value, const Shape& shape) {
        if (yaml::parse_number(value.text)) {
            yaml::number_of(value, errors_, shape.least, shape.most);
        } else {
            yaml::bytes_of(value, errors_, shape.least, shape.most);
        }
    }

    void check_name(const Value& value, Names kind) {
        const auto name = yaml::text_of(value, errors_);
        if (name && !names_.has(kind, *name)) {
            errors_.add(value.position, fmt::format("unknown {} \"{}\"{}",
                                                    kNamesText[static_cast<std::size_t>(kind)],
                                                    *name, names_.advice(kind, *name)));
        }
    }

    void check_named(const Value& value, const Shape& shape) {
        std::set<std::string_view> seen;
        for (const yaml::Entry& entry : yaml::entries_of(value, errors_)) {
            if (shape.refers_to != Names::kNone) {
                check_name(entry.key, shape.refers_to);
            }
            if (!seen.insert(entry.key.text).second) {
                errors_.add(entry.key.position,
                            fmt::format("\"{}\" a second time", entry.key.text));
            }
            check(entry.value, *shape.item);
        }
    }

    void check_mapping(const Value& value, const Shape& shape) {
        if (value.kind != Kind::kMapping && value.kind != Kind::kNothing) {
            yaml::entries_of(value, errors_);  // says what it is
            return;
        }
        const std::vector<std::string_view> names = names_of(shape.keys, shape.more);
        const yaml::Fields fields(value, names, errors_);
        for (const yaml::Entry& entry : value.entries) {
            if (const Key* const key = find_key(shape, entry.key.text)) {
                check(entry.value, *key->shape);
            }
        }
        for (const std::span<const Key> keys : {shape.keys, shape.more}) {
            for (const Key& key : keys) {
                if (key.required && fields.find(key.name) == nullptr) {
                    errors_.add(value.position, fmt::format("\"{}\" is missing", key.name));
                }
            }
        }
        const auto is_one = [&shape](const yaml::Entry& entry) {
            return std::ranges::find(shape.keys, entry.key.text, &Key::name) != shape.keys.end();
        };
        const auto found = std::ranges::count_if(value.entries, is_one);
        if (shape.kind == ShapeKind::kOneOf && found != 1) {
            errors_.add(value.position, fmt::format("expected one of {}; found {}",
                                                    yaml::join(names_of(shape.keys, {})),
                                                    found == 0 ? "none" : "several"));
        }
    }

    const KnownNames& names_;
    yaml::Errors& errors_;
};

}  // namespace

bool KnownNames::has(Names kind, std::string_view name) const {
    if (kind == Names::kEnd && numbered_ends_) {
        const auto end = numbered_end(name);
        return end && has(Names::kHca, end->host);
    }
    if (accepted_.contains(kind)) {
        return true;
    }
    const auto found = names_.find(kind);
    return found != names_.end() && found->second.contains(name);
}

std::string KnownNames::advice(Names kind, std::string_view name) const {
    constexpr std::size_t kMostListed = 12;
    if (kind == Names::kEnd && numbered_ends_) {
        return ": expected HOST/N, the N-th queue pair made on that host, from 1";
    }
    const auto found = names_.find(kind);
    if (found == names_.end()) {
        return ": there is none";
    }
    const std::vector<std::string_view> all(found->second.begin(), found->second.end());
    const std::string meant = fabric::suggestion(name, all);
    const Words first(all.data(), std::min(all.size(), kMostListed));
    return fmt::format("{}{} there are {}{}", meant, meant.empty() ? ":" : "", yaml::join(first),
                       all.size() > kMostListed ? ", ..." : "");
}

void check(const Value& value, const Shape& shape, const KnownNames& names, yaml::Errors& errors) {
    Checker(names, errors).check(value, shape);
}

}  // namespace scenarios
