"""struct simverbs_fault of <simverbs/fault.h>, for ctypes. A test compares its size and members."""

from __future__ import annotations

from ctypes import (
    Structure,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
)


class MatchStruct(Structure):
    """struct simverbs_fault_match."""

    _fields_ = [
        ("link", c_char_p),
        ("transmitter", c_char_p),
        ("from", c_char_p),
        ("to", c_char_p),
        ("opcode", c_char_p),
        ("direction", c_int),
        ("qp", c_uint32),
        ("qp_num", c_uint32),
        ("psn", c_uint32),
        ("attempt", c_uint32),
        ("node", c_char_p),
        ("queue", c_int),
        ("call", c_char_p),
    ]


class TargetStruct(Structure):
    """struct simverbs_fault_target."""

    _fields_ = [
        ("link", c_char_p),
        ("node", c_char_p),
        ("port", c_uint8),
        ("qp", c_uint32),
        ("qp_num", c_uint32),
        ("queue", c_int),
        ("object", c_uint32),
        ("fault", c_uint32),
    ]


class ArgumentsStruct(Structure):
    """struct simverbs_fault_arguments."""

    _fields_ = [
        ("duration_ps", c_int64),
        ("interval_ps", c_int64),
        ("times", c_uint64),
        ("value", c_uint64),
        ("offset", c_uint32),
        ("bits", c_uint8),
        ("field", c_int),
        ("width", c_uint32),
        ("speed", c_uint32),
    ]


class FaultStruct(Structure):
    """struct simverbs_fault."""

    _fields_ = [
        ("size", c_size_t),
        ("action", c_int),
        ("on", c_int),
        ("after", c_uint32),
        ("after_delay_ps", c_int64),
        ("from_ps", c_int64),
        ("until_ps", c_int64),
        ("nth", c_uint64),
        ("count", c_uint64),
        ("chance", c_uint32),
        ("chance_of", c_uint32),
        ("delay_ps", c_int64),
        ("match", MatchStruct),
        ("target", TargetStruct),
        ("with", ArgumentsStruct),
        ("name", c_char_p),
    ]
