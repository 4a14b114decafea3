#include "fabric/topology/load.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "fabric/topology/generators.hpp"
#include "fabric/topology/ibnetdiscover_text.hpp"
#include "fabric/topology/text_file.hpp"
#include "fabric/topology/yaml_attributes.hpp"
#include "fabric/topology/yaml_text.hpp"

namespace fabric {

namespace {

// Where the generator's own text ends: at the first comma, behind the numbers of a dragonfly
// ("a=4,p=2,h=2"), whose keys have one letter.
std::size_t end_of_generator(std::string_view spec) {
    std::size_t end = std::min(spec.find(','), spec.size());
    while (end + 2 < spec.size() && spec[end + 2] == '=') {
        end = std::min(spec.find(',', end + 1), spec.size());
    }
    return end;
}

// Cut out of a specification of one line.
yaml::Value scalar_in(std::string_view spec, std::size_t from, std::size_t to) {
    return {.kind = yaml::Kind::kScalar,
            .position = {1, from + 1},
            .text = std::string(spec.substr(from, to - from)),
            .items = {},
            .entries = {}};
}

// "1500B", or "[100,200]", which is `spec` from `from` to `to`.
yaml::Value value_in(std::string_view spec, std::size_t from, std::size_t to) {
    const std::string_view text = spec.substr(from, to - from);
    if (!text.starts_with('[') || !text.ends_with(']')) {
        return scalar_in(spec, from, to);
    }
    yaml::Value list{.kind = yaml::Kind::kList,
                     .position = {1, from + 1},
                     .text = {},
                     .items = {},
                     .entries = {}};
    const std::size_t closed = to - 1;
    for (std::size_t begin = from + 1; begin < closed;) {
        begin = std::min(spec.find_first_not_of(' ', begin), closed);
        const std::size_t end = std::min(spec.find(',', begin), closed);
        list.items.push_back(scalar_in(spec, begin, end));
        begin = end + 1;
    }
    return list;
}

// "mtu=1500B,pfc=none,vlans=[100,200]", which is `spec` from `begin` on, as a mapping.
yaml::Value attributes_in(std::string_view spec, std::size_t begin) {
    yaml::Value mapping{.kind = yaml::Kind::kMapping,
                        .position = {1, begin + 1},
                        .text = {},
                        .items = {},
                        .entries = {}};
    while (begin <= spec.size()) {
        const std::size_t name_end = std::min(spec.find_first_of("=,", begin), spec.size());
        const bool has_value = name_end < spec.size() && spec[name_end] == '=';
        const std::size_t value = has_value ? name_end + 1 : name_end;
        const bool is_list = has_value && spec.substr(value).starts_with('[');
        const std::size_t closed = is_list ? std::min(spec.find(']', value), spec.size()) : value;
        const std::size_t end = std::min(spec.find(',', closed), spec.size());
        mapping.entries.push_back({scalar_in(spec, begin, name_end), value_in(spec, value, end)});
        begin = end + 1;
    }
    return mapping;
}

Outcome<Topology> generate(std::string_view spec) {
    const std::size_t end = end_of_generator(spec);
    Outcome<Topology> result = generate_topology(spec.substr(0, end));
    if (!result || end == spec.size()) {
        return result;
    }
    yaml::Errors errors{std::string(spec)};
    const LinkAttributes attributes =
        read_link(yaml::Fields(attributes_in(spec, end + 1), kLinkDefaultKeys, errors));
    for (LinkSpec& link : result->links) {
        if (errors.empty()) {
            attributes.apply_to(link, errors);
        }
    }
    if (errors.empty()) {
        if (const auto wrong = result->error()) {
            errors.add({1, end + 2}, *wrong);
        }
    }
    return errors.empty() ? std::move(result) : Failure(errors.text());
}

}  // namespace

bool names_a_file(std::string_view spec) {
    return spec.substr(0, spec.find('=')).find_first_of("/.") != std::string_view::npos;
}

Outcome<Topology> load_topology(std::string_view spec,
                                std::span<const std::string_view> personalities) {
    if (!names_a_file(spec)) {
        return generate(spec);
    }
    const std::string path(spec);
    const auto text = read_text_file(path);
    if (!text) {
        return Failure(text.error());
    }
    const bool is_yaml = spec.ends_with(".yaml") || spec.ends_with(".yml");
    return is_yaml ? read_yaml(*text, path, personalities) : read_ibnetdiscover(*text, path);
}

}  // namespace fabric
