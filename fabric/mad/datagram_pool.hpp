// Datagrams as cargo of frames. Recycled, so that a steady state allocates nothing.
#pragma once

#include <memory>
#include <vector>

#include "fabric/mad/datagram.hpp"
#include "fabric/net/frame.hpp"

namespace fabric {

class DatagramPool;

class DatagramCargo final : public FrameCargo {
  public:
    explicit DatagramCargo(DatagramPool& pool) : pool_(pool) {}

    mad::Datagram datagram;

    [[nodiscard]] DatagramPool& pool() const { return pool_; }

    void retain() override { ++frames_; }
    void release() override;

  private:
    DatagramPool& pool_;
    std::uint32_t frames_ = 1;  // that carry it
};

// Outlives every frame that carries one of its datagrams.
class DatagramPool {
  public:
    DatagramPool() = default;
    DatagramPool(const DatagramPool&) = delete;
    DatagramPool& operator=(const DatagramPool&) = delete;

    DatagramCargo& take() {
        if (free_.empty()) {
            all_.push_back(std::make_unique<DatagramCargo>(*this));
            return *all_.back();
        }
        DatagramCargo& cargo = *free_.back();
        free_.pop_back();
        return cargo;
    }
    void give_back(DatagramCargo& cargo) { free_.push_back(&cargo); }

  private:
    std::vector<std::unique_ptr<DatagramCargo>> all_;
    std::vector<DatagramCargo*> free_;
};

inline void DatagramCargo::release() {
    if (--frames_ == 0) {
        frames_ = 1;
        pool_.give_back(*this);
    }
}

// Returns the datagram that a management frame carries.
inline const mad::Datagram& datagram_of(const Frame& frame) {
    return static_cast<const DatagramCargo*>(frame.cargo)->datagram;
}

}  // namespace fabric
