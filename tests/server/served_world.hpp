// A served world and processes on its hosts, for tests: started, spoken to over their standard
// streams, killed and counted. Everything that a test starts ends with it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace server_test {

// Waits longer than anything takes on a loaded machine; what never comes is a failed expectation.
inline constexpr std::chrono::seconds kPatience{60};

// The output of a command on both of its streams, and its exit status.
struct Ran {
    std::string text;
    int status = -1;
};
Ran run(const std::string& command);

class Process {
  public:
    Process() = default;
    // `environment`: NAME=VALUE. `forbid_process_vm`: with a seccomp filter that refuses
    // process_vm_readv and writev, as containers do. `errors`: a file for its stderr; "": ours.
    Process(const std::vector<std::string>& command, const std::vector<std::string>& environment,
            bool forbid_process_vm = false, const std::string& errors = "");
    Process(Process&& other) noexcept;
    Process& operator=(Process&& other) noexcept;
    ~Process();  // kills it

    [[nodiscard]] pid_t id() const { return process_; }
    void say(const std::string& line) const;
    // The next line of its stdout; "" when it has ended or says nothing.
    std::string hear();
    std::string ask(const std::string& line) {
        say(line);
        return hear();
    }
    void kill(int signal) const;
    // Closes its stdin and waits for its end: as a shell says it, 128 + the signal.
    int end();
    [[nodiscard]] bool ended();

  private:
    pid_t process_ = -1;
    int in_ = -1;
    int out_ = -1;
    std::string heard_;
    std::optional<int> status_;
};

// The resources of a process, from /proc.
struct Holdings {
    std::size_t descriptors = 0;
    std::size_t mappings = 0;
    std::size_t resident_kib = 0;
};

class ServedWorld {
  public:
    // `forbid_process_vm`: the server may not reach the memory of clients, and maps none of it.
    explicit ServedWorld(const std::string& topology, bool forbid_process_vm = false,
                         const std::vector<std::string>& options = {});
    ~ServedWorld();
    ServedWorld(const ServedWorld&) = delete;
    ServedWorld& operator=(const ServedWorld&) = delete;

    [[nodiscard]] const std::string& socket() const { return socket_; }
    // verbs_client on a host.
    [[nodiscard]] Process client(const std::string& host) const;
    [[nodiscard]] std::string status() const;
    // Returns what the server has said on stderr so far.
    [[nodiscard]] std::string complaints() const;
    [[nodiscard]] bool complains_at_last(const std::string& words) const;
    [[nodiscard]] Holdings holdings() const;
    // Waits until `status` no longer names any client, or this one.
    [[nodiscard]] bool is_empty_at_last() const { return loses("process"); }
    [[nodiscard]] bool forgets(const Process& client) const {
        return loses("process " + std::to_string(client.id()));
    }
    [[nodiscard]] bool serves() { return !server_.ended(); }
    Process& server() { return server_; }

  private:
    [[nodiscard]] Holdings look() const;
    [[nodiscard]] bool loses(const std::string& word) const;

    bool clients_copy_;
    std::string folder_;
    std::string socket_;
    Process server_;
};

// Two clients that have connected to each other.
struct Couple {
    Couple(const ServedWorld& world, const std::string& first, const std::string& second);
    Process a;
    Process b;

    // They exchange messages from begin() to finish(), which says whether both are content.
    void begin() const;
    [[nodiscard]] bool finish();
};

}  // namespace server_test
