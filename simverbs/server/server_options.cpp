#include "simverbs/server/server_options.hpp"

#include "simverbs/world/environment.hpp"

namespace simverbs {

ServerOptions::ServerOptions() {
    for (const SettingRow& row : kSettings) {
        if (!row.served_default.empty()) {
            set(*this, row.setting, row.served_default);
        }
        const std::string_view value = environment_value(row.setting);
        if (row.scope == SettingScope::kEverywhere && !value.empty()) {
            set(*this, row.setting, value);
        }
    }
}

}  // namespace simverbs
