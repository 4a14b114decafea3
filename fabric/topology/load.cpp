#include "fabric/topology/load.hpp"

#include "fabric/topology/generators.hpp"
#include "fabric/topology/ibnetdiscover_text.hpp"
#include "fabric/topology/text_file.hpp"
#include "fabric/topology/yaml_text.hpp"

namespace fabric {

bool names_a_file(std::string_view spec) {
    return spec.find_first_of("/.") != std::string_view::npos;
}

TopologyResult load_topology(std::string_view spec,
                             std::span<const std::string_view> personalities) {
    if (!names_a_file(spec)) {
        return generate_topology(spec);
    }
    const std::string path(spec);
    std::string error;
    const auto text = read_text_file(path, error);
    if (!text) {
        return {std::nullopt, error};
    }
    const bool is_yaml = spec.ends_with(".yaml") || spec.ends_with(".yml");
    return is_yaml ? read_yaml(*text, path, personalities) : read_ibnetdiscover(*text, path);
}

}  // namespace fabric
