// The state of simverbs in this process: its channel to the devices, made at first use, and the
// ibv_device structures, which stay where they are as long as the process lives.
//
// A forked child starts anew: what it inherited belongs to its parent.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/scenario_module.hpp"
#include "simverbs/driver/channel.hpp"
#include "simverbs/driver/embedded.hpp"
#include "simverbs/driver/pinned_memory.hpp"
#include "simverbs/driver/served.hpp"

namespace simverbs::abi {

// The kernel's name for the memory behind ibv_context.cmd_fd, which tells contexts apart.
inline constexpr const char* kCommandDescriptorName = "simverbs-context";

class Process {
  public:
    static Process& current();
    // Changes in a forked child: what was made in another generation is not usable here.
    static std::uint64_t generation();

    // nullptr when there is none; the reason was printed to stderr, once.
    Channel* channel();
    // The world in this process; nullptr when it cannot be made, or is a server's.
    driver::EmbeddedWorld* embedded();
    [[nodiscard]] std::vector<Device*> devices();
    // Why there was no room for the world just now: EMFILE, ENFILE or ENOMEM; else 0. The next use
    // tries again.
    [[nodiscard]] int shortage() const { return shortage_; }

    // Changes the options of a world that does not exist yet; false when it does.
    template <class F>
    bool configure(F&& change) {
        const std::lock_guard lock(mutex_);
        if (tried_) {
            return false;
        }
        change(options());
        return true;
    }
    // Ends the embedded world, so that the next use makes another. Returns why it cannot, else "":
    // a device is open, or a thread is in a call of rdma_cm. librdmacm never closes a device:
    // those that it has open and nothing is made on count as closed.
    std::string restart();
    // "simverbs0 with 1 queue pairs and 2 completion queues; ...": the devices that are open.
    [[nodiscard]] std::string describe_open();
    // Closes them, with their objects; how many there were.
    unsigned close_devices();
    // Makes the world as a scenario says. An errno and why it cannot, or 0.
    std::pair<int, std::string> begin_scenario(const char* path);
    // The report of the scenario that began, which it ends: "" where all was as expected. Nothing:
    // none has begun.
    std::optional<std::string> end_scenario();
    // Prints what a world has to say at its end; nothing where none was made.
    void finish();
    // A scenario that the program did not end itself found what must not be.
    [[nodiscard]] bool scenario_failed() const { return scenario_failed_; }

    driver::PinnedMemory& pinned() { return pinned_; }

    void context_opened(Context& context);
    // True once a context was opened, in any world of this process.
    [[nodiscard]] bool has_opened_any() const { return has_opened_any_; }
    void context_closed(Context& context);
    // The context behind a handle; nullptr: it is not open.
    Context* find_open(const ibv_context* handle);
    // The open context whose command channel this descriptor is a duplicate of; nullptr: of none.
    Context* find_context(int command_descriptor);

  private:
    Process() = default;
    void find_world();
    void begin_scenario_of_environment();
    // Returns why it cannot be made, else "".
    std::string make_embedded();
    void name_what_is_left();
    // Closes what librdmacm has open, for it to find other devices in the next world. Returns how
    // many there were.
    unsigned abandon_devices();
    [[nodiscard]] std::unique_ptr<Device> device(std::uint32_t index, const DeviceInfo& info);
    driver::EmbeddedOptions& options();

    std::recursive_mutex mutex_;
    bool tried_ = false;
    std::atomic<int> shortage_ = 0;
    std::atomic<bool> has_opened_any_ = false;
    bool scenario_asked_for_ = false;  // of the world that is, or is about to be
    bool scenario_failed_ = false;     // of any world of this process
    ScenarioModule scenario_;
    std::vector<Context*> contexts_;  // open, in the order of opening
    std::unique_ptr<driver::EmbeddedOptions> options_;
    std::string options_error_;
    std::unique_ptr<driver::EmbeddedWorld> embedded_;  // one of the two, or none
    std::unique_ptr<driver::ServedChannel> served_;
    driver::PinnedMemory pinned_;
    std::vector<std::unique_ptr<Device>> devices_;
    // Devices of worlds that were ended, by index: programs may still hold their pointers. One that
    // comes again in another world with the number that it had is the same.
    std::multimap<std::uint32_t, std::unique_ptr<Device>> former_devices_;
    // Those that never come again.
    std::vector<std::unique_ptr<Device>> abandoned_devices_;
    std::uint32_t first_device_number_ = 0;
    bool has_abandoned_ = false;  // a device of the world that is
};

}  // namespace simverbs::abi
