// SIGUSR2 to a program that uses devices of a served world by their files alone, as OpenSM does: it
// says on stderr what the world waits for, as programs of verbs do, and goes on.
#pragma once

namespace simverbs::devices {

// Installs the handler, unless the program handles or ignores the signal.
void report_on_signal();

}  // namespace simverbs::devices
