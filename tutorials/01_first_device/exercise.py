"""Lesson 1: find the devices, open each, ask its port how it is, and close it again."""

import pyverbs.enums as e
from pyverbs.device import Context, get_device_list


def show(name):
    # YOUR TURN 1: open the device: Context(name=name).

    # YOUR TURN 2: ask for the attributes of its first port with context.query_port(1), and print
    # a line of this form: "simverbs0 port 1: active, LID 1, MTU 4096". The LID is port.lid; the
    # MTU in bytes is 128 << port.active_mtu.
    print(f"{name} port 1: nobody asked")

    # YOUR TURN 3: close the device with context.close().


devices = get_device_list()
print(f"{len(devices)} devices")
# YOUR TURN 4: call show() for each of the devices, not for the first alone.
show(devices[0].name.decode())
