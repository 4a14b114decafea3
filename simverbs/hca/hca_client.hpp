// Code of a host's kernel that uses a device, as a client of ib_core does in Linux.
#pragma once

#include "fabric/net/port.hpp"

#include "simverbs/model/statuses.hpp"

namespace simverbs {

class HcaClient {
  public:
    // The device is dead or has been removed; programs that have it open have been told.
    virtual void device_gone() = 0;
    // It works again.
    virtual void device_back() = 0;
    virtual void port_event(const fabric::Port& port, AsyncEvent event) = 0;

  protected:
    ~HcaClient() = default;
};

}  // namespace simverbs
