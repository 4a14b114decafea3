// Checks that connections and operations of rdma_cm fit together.
#pragma once

#include <string>

#include "fabric/yaml/fields.hpp"

#include "scenarios/engine/checked.hpp"

namespace scenarios {

// A connection that says `cm: true`: without keys that the communication manager decides.
void check_cm_connection(Checked connection, fabric::yaml::Errors& errors);
// `connection`: that of the operation; without a value where it has none.
void check_cm_operation(const fabric::yaml::Value& operation, Checked body, Checked connection,
                        fabric::yaml::Errors& errors);

}  // namespace scenarios
