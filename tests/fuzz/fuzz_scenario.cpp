// Any text as a scenario: it is read, or refused with a reason. What is read is written and read
// again, to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "scenarios/engine/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.find("include") != std::string_view::npos ||
        text.find("file") != std::string_view::npos) {
        return 0;  // whatever the machine has there
    }
    const auto scenario = scenarios::parse(text, "fuzz.yaml", {});
    if (!scenario) {
        if (scenario.error().find("fuzz.yaml") == std::string::npos) {
            std::abort();  // refused without a place
        }
        return 0;
    }
    const std::string written = scenarios::to_text(*scenario);
    const auto again = scenarios::parse(written, "fuzz.yaml", {});
    if (!again || scenarios::to_text(*again) != written) {
        std::abort();
    }
    return 0;
}
