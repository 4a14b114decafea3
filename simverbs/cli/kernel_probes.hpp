// Tries what served worlds need of the kernel, as they use it: containers (seccomp), Yama and lean
// kernels refuse some of it.
#pragma once

namespace simverbs::cli {

// Each returns 0, or the errno of the refusal.

// Reads and writes a word of a process that allows it (PR_SET_PTRACER) and is no child of the
// reader.
int try_memory_of_another_process();
// Reads in /proc in which system call a process is that allows it, as above.
int try_system_call_of_another_process();
// Makes a shared segment of memory, and seals it.
int try_sealed_memory();
// Opens a descriptor of a process.
int try_process_descriptor();
// Asks for addresses that are not random, in a process of its own.
int try_fixed_addresses();

}  // namespace simverbs::cli
