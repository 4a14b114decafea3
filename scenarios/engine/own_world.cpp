#include "scenarios/engine/own_world.hpp"

#include <string>
#include <utility>

#include "simverbs/model/settings.hpp"

namespace scenarios {

bool apply_settings(Checked run) {
    for (const simverbs::SettingRow& row : simverbs::kSettings) {
        if (!row.key.empty() && run.has(row.key) &&
            simverbs_set(row.key.data(), run.text(row.key).c_str()) != 0) {
            return false;
        }
    }
    return true;
}

Record record_of(const simverbs_record& record) {
    Record seen{record.time_ps, record.node, record.category, record.name, {}};
    seen.fields.reserve(record.field_count);
    for (std::size_t i = 0; i < record.field_count; ++i) {
        const simverbs_field& field = record.fields[i];
        std::string text;
        switch (field.kind) {
            case SIMVERBS_FIELD_SIGNED:
                text = std::to_string(static_cast<std::int64_t>(field.number));
                break;
            case SIMVERBS_FIELD_UNSIGNED:
                text = std::to_string(field.number);
                break;
            case SIMVERBS_FIELD_BOOL:
                text = field.number != 0 ? "true" : "false";
                break;
            default:
                text = field.text;
        }
        seen.fields.push_back({field.name, std::move(text), field.number});
    }
    return seen;
}

}  // namespace scenarios
