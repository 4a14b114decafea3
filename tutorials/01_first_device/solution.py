"""Lesson 1: find the devices, open each, ask its port how it is, and close it again."""

import pyverbs.enums as e
from pyverbs.device import Context, get_device_list


def show(name):
    context = Context(name=name)

    port = context.query_port(1)
    state = "active" if port.state == e.IBV_PORT_ACTIVE else str(port.state)
    print(f"{name} port 1: {state}, LID {port.lid}, MTU {128 << port.active_mtu}")

    context.close()


devices = get_device_list()
print(f"{len(devices)} devices")
for device in devices:
    show(device.name.decode())
