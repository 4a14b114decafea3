// The keys of a scenario file. docs/man/simverbs-scenario.5.md explains them; `simverbs scenario
// --schema` prints them.
#pragma once

#include "scenarios/engine/shape.hpp"

namespace scenarios::format {

extern const Shape kScenario;
extern const Shape kOperation;   // of a program
extern const Shape kOperations;  // a list of them
extern const Shape kListen;      // operations of rdma_cm (format_cm.cpp)
extern const Shape kConnect;
extern const Shape kAccept;
extern const Shape kReject;
extern const Shape kDisconnect;
extern const Shape kJoin;
extern const Shape kAwaitCm;
extern const Shape kExpect;
extern const Shape kFault;
extern const Shape kWorkload;
extern const Shape kWorkloads;
extern const Shape kDefaults;

}  // namespace scenarios::format
