#include "simverbs/abi/scenario_module.hpp"

#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

namespace simverbs::abi {
namespace {

constexpr const char* kName = "simverbs/libsimverbs-scenario.so";

// In the folder beside the file that this code is in.
std::string path_of_module() {
    Dl_info own{};
    if (dladdr(reinterpret_cast<const void*>(&path_of_module), &own) == 0) {
        return kName;
    }
    const std::string path = own.dli_fname;
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? kName : path.substr(0, slash + 1) + kName;
}

template <class Function>
fabric::Outcome<Function*> function_of_module(const char* name) {
    void* const module = dlopen(path_of_module().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
        return fabric::Failure(dlerror());
    }
    void* const found = dlsym(module, name);
    if (found == nullptr) {
        return fabric::Failure(fmt::format("{} is of another version", path_of_module()));
    }
    return reinterpret_cast<Function*>(found);
}

}  // namespace

fabric::Outcome<std::string> explain_records(ScenarioModuleRecords* records, void* from,
                                             const ScenarioModuleSubject& subject) {
    const auto explain = function_of_module<ScenarioModuleExplain>("simverbs_scenario_explain");
    if (!explain) {
        return fabric::Failure(explain.error());
    }
    return (*explain)(records, from, &subject);
}

std::string ScenarioModule::begin(const char* file, const std::string& topology) {
    const auto begin = function_of_module<ScenarioModuleBegin>("simverbs_scenario_begin");
    const auto end = function_of_module<ScenarioModuleEnd>("simverbs_scenario_end");
    if (!begin || !end) {
        return begin ? end.error() : begin.error();
    }
    if (const char* wrong = (*begin)(file, topology.c_str())) {
        return wrong;
    }
    end_ = *end;
    return {};
}

std::string ScenarioModule::end(const ScenarioModuleRun& run) {
    const char* const report = std::exchange(end_, nullptr)(&run);
    return report == nullptr ? "" : report;
}

}  // namespace simverbs::abi
