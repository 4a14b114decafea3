// The symbols that libsimverbs.so.0 exports from this folder: functions with C linkage and a
// visible name. Everything else in the library is hidden.
#pragma once

#define SIMVERBS_ABI extern "C" __attribute__((visibility("default")))
