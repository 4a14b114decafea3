#include "simverbs/abi/scenario_module.hpp"

#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

namespace simverbs::abi {
namespace {

constexpr const char* kName = "libsimverbs-scenario.so";

// Beside the file that this code is in.
std::string path_of_module() {
    Dl_info own{};
    if (dladdr(reinterpret_cast<const void*>(&path_of_module), &own) == 0) {
        return kName;
    }
    const std::string path = own.dli_fname;
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? kName : path.substr(0, slash + 1) + kName;
}

}  // namespace

std::string ScenarioModule::begin(const char* file) {
    void* const module = dlopen(path_of_module().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
        return fmt::format("SIMVERBS_SCENARIO: {}", dlerror());
    }
    auto* const begin =
        reinterpret_cast<ScenarioModuleBegin*>(dlsym(module, "simverbs_scenario_begin"));
    auto* const end = reinterpret_cast<ScenarioModuleEnd*>(dlsym(module, "simverbs_scenario_end"));
    if (begin == nullptr || end == nullptr) {
        return fmt::format("SIMVERBS_SCENARIO: {} is of another version", path_of_module());
    }
    if (const char* wrong = begin(file)) {
        return fmt::format("SIMVERBS_SCENARIO: {}", wrong);
    }
    end_ = end;
    return {};
}

bool ScenarioModule::end(const ScenarioModuleRun& run) {
    return std::exchange(end_, nullptr)(&run);
}

}  // namespace simverbs::abi
