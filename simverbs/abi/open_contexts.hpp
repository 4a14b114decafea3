// The addresses of the contexts that are open, for ibv_close_device() to refuse any other pointer
// without reading what it points to. A new context may have the address of a closed one; a stale
// pointer cannot be told from it then.
#pragma once

#include <infiniband/verbs.h>

namespace simverbs::abi {

// A forked child keeps the set: it may close the contexts that it inherited.
void add_open_context(const ibv_context* handle);

// Removes the context, and returns true for one caller alone: who gets true destroys the context.
bool take_open_context(const ibv_context* handle);

}  // namespace simverbs::abi
