// The load of fabric_star_bench.cpp in ns-3: PointToPointNetDevice, and a receive callback that
// forwards. Prints packets received a CPU second, set-up excluded: bench_ns3_star HOSTS...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <ns3/core-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

namespace {

constexpr std::uint32_t kPacketBytes = 1022;  // and 2 of the PPP header
constexpr std::int64_t kPeriodPs = 81'920;    // 1024 bytes at 100 Gb/s
constexpr std::uint16_t kProtocol = 0x0800;

using Device = ns3::Ptr<ns3::PointToPointNetDevice>;

class Star {
  public:
    explicit Star(std::uint32_t hosts) {
        const ns3::Ptr<ns3::Node> forwarder = ns3::CreateObject<ns3::Node>();
        for (std::uint32_t i = 0; i < hosts; ++i) {
            const ns3::Ptr<ns3::Node> host = ns3::CreateObject<ns3::Node>();
            const auto channel = ns3::CreateObject<ns3::PointToPointChannel>();
            channel->SetAttribute("Delay", ns3::TimeValue(ns3::NanoSeconds(500)));
            hosts_.push_back(attach(host, channel));
            ports_.push_back(attach(forwarder, channel));
        }
        for (std::uint32_t i = 0; i < hosts; ++i) {
            const Device out = ports_[(i + 1) % hosts];
            ports_[i]->SetReceiveCallback(ns3::MakeBoundCallback(&Star::forward, out));
            hosts_[i]->SetReceiveCallback(ns3::MakeBoundCallback(&Star::count, this));
            ns3::Simulator::ScheduleNow(&Star::send, this, i);
        }
    }

    void run_until(ns3::Time limit) {
        ns3::Simulator::Stop(limit - ns3::Simulator::Now());
        ns3::Simulator::Run();
    }

    [[nodiscard]] std::uint64_t received() const { return received_; }

  private:
    static Device attach(const ns3::Ptr<ns3::Node>& node,
                         const ns3::Ptr<ns3::PointToPointChannel>& channel) {
        Device device = ns3::CreateObject<ns3::PointToPointNetDevice>();
        device->SetAddress(ns3::Mac48Address::Allocate());
        device->SetDataRate(ns3::DataRate("100Gbps"));
        device->SetQueue(ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>());
        node->AddDevice(device);
        device->Attach(channel);
        return device;
    }

    void send(std::uint32_t host) {
        hosts_[host]->Send(ns3::Create<ns3::Packet>(kPacketBytes), hosts_[host]->GetBroadcast(),
                           kProtocol);
        ns3::Simulator::Schedule(ns3::PicoSeconds(kPeriodPs), &Star::send, this, host);
    }

    static bool forward(Device out, ns3::Ptr<ns3::NetDevice> /*in*/,
                        ns3::Ptr<const ns3::Packet> packet, std::uint16_t protocol,
                        const ns3::Address& /*source*/) {
        out->Send(packet->Copy(), out->GetBroadcast(), protocol);
        return true;
    }

    static bool count(Star* star, ns3::Ptr<ns3::NetDevice> /*in*/,
                      ns3::Ptr<const ns3::Packet> /*packet*/, std::uint16_t /*protocol*/,
                      const ns3::Address& /*source*/) {
        ++star->received_;
        return true;
    }

    std::vector<Device> hosts_;
    std::vector<Device> ports_;
    std::uint64_t received_ = 0;
};

double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void measure(std::uint32_t hosts) {
    constexpr std::int64_t kPackets = 1'000'000;
    {
        Star star(hosts);
        star.run_until(ns3::MicroSeconds(2));
        const std::uint64_t before = star.received();
        const double start = cpu_seconds();
        star.run_until(ns3::MicroSeconds(2) + ns3::PicoSeconds(kPackets / hosts * kPeriodPs));
        const auto packets = static_cast<double>(star.received() - before);
        std::printf("ns3_star/%u: %.0f packets, %.3f M packet/s of CPU time\n", hosts, packets,
                    packets / (cpu_seconds() - start) / 1e6);
    }
    ns3::Simulator::Destroy();
}

}  // namespace

int main(int count, char** words) {
    ns3::Time::SetResolution(ns3::Time::PS);
    for (int i = 1; i < count; ++i) {
        measure(static_cast<std::uint32_t>(std::strtoul(words[i], nullptr, 10)));
    }
    return 0;
}
