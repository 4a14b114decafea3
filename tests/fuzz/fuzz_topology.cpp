// Any text as a topology, in both formats: it is read, or refused with a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fabric/topology/ibnetdiscover_text.hpp"
#include "fabric/topology/yaml_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto check = [](const fabric::Outcome<fabric::Topology>& read) {
        if (!read && read.error().empty()) {
            std::abort();
        }
    };
    check(fabric::read_ibnetdiscover(text, "fuzz.topo"));
    if (text.find("star") == std::string_view::npos) {
        check(fabric::read_yaml(text, "fuzz.yaml"));
    }
    return 0;
}
