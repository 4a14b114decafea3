// Reads what an executable file asks of the loader (elf(5)).
#pragma once

#include <optional>
#include <string>

namespace simverbs::cli {

struct ElfFile {
    bool is_32_bit = false;       // then nothing else is known
    bool has_interpreter = true;  // PT_INTERP: the loader takes part
    std::string name;             // DT_SONAME
    std::string rpath;            // DT_RPATH; "" where DT_RUNPATH takes its place
};

// Nothing: it is no ELF file of this processor, or cannot be read.
std::optional<ElfFile> read_elf(const std::string& path);

}  // namespace simverbs::cli
