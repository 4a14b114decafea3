// by_files FOLDER ROLE NAP: two programs that meet through files, as jobs on a cluster do that
// share a file system. ROLE `sends` connects and sends at once; ROLE `receives` sleeps NAP us at a
// time until it sees the other's file, and posts its receive 20 ms or three naps later. ROLE
// `computes` polls once instead, in vain, and then uses the processor for 20 ms. ROLE `alone` meets
// nobody: NAP writes from one of its queue pairs to another.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include <unistd.h>

#include "ends.hpp"

namespace {

using promises::End;
using promises::require;

void leave(const std::string& file, const End& end) {
    {
        std::ofstream out(file + ".tmp");
        out << end.qp->qp_num << ' ' << end.lid << '\n';
    }
    require(rename((file + ".tmp").c_str(), file.c_str()) == 0, "rename");
}

void find(const std::string& file, useconds_t nap, std::uint32_t& qpn, std::uint16_t& lid) {
    while (access(file.c_str(), R_OK) != 0) {
        usleep(nap);
    }
    std::ifstream in(file);
    require(static_cast<bool>(in >> qpn >> lid), "a whole file");
}

void compute(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
    }
}

int write_alone(unsigned count) {
    End from(0);
    End to(0);
    from.connect(to);
    to.connect(from);
    for (unsigned i = 0; i < count; ++i) {
        from.write(to, 1 + i * 331U % 9000U);
        from.wait();
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    require(count == 4, "by_files FOLDER ROLE NAP");
    const std::string folder = words[1];
    if (std::string(words[2]) == "alone") {
        return write_alone(static_cast<unsigned>(std::stoul(words[3])));
    }
    const std::string role = words[2];
    const bool sends = role == "sends";
    const auto nap = static_cast<useconds_t>(std::stoul(words[3]));
    End end(0);
    leave(folder + (sends ? "/sender" : "/receiver"), end);
    std::uint32_t qpn = 0;
    std::uint16_t lid = 0;
    find(folder + (sends ? "/receiver" : "/sender"), sends ? 100 : nap, qpn, lid);
    if (role == "computes") {
        require(end.poll() == 0, "a poll in vain");
        compute(std::chrono::milliseconds(20));
    } else if (!sends) {
        const useconds_t naps = std::clamp<useconds_t>(20'000 / nap, 3, 200);
        for (useconds_t i = 0; i < naps; ++i) {
            usleep(nap);
        }
    }
    end.connect(qpn, lid);
    if (sends) {
        end.send(100);
    } else {
        end.receive();
    }
    end.wait();
    return 0;
}
