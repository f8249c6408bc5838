"""Writes and reads .npy files as NumPy's format description has them, without NumPy."""

import re
import struct

FORMATS = {"<f2": "e", "<f4": "f", "<f8": "d", "<u2": "H", ">f2": "e", "<i4": "i", "|u1": "B"}


def save(path, rows, descr="<f2", fortran_order=False, shape=None, extra=b""):
    """`rows`: lists of numbers. `shape` may lie; `extra` follows the elements."""
    shape = shape or (len(rows), len(rows[0]))
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    order = ">" if descr.startswith(">") else "<"
    values = [value for row in rows for value in row]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"{order}{len(values)}{FORMATS[descr]}", *values) + extra)
    return path


def load(path):
    """(descr, rows)."""
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length, = struct.unpack_from("<H", data, 8)
    header = data[10:10 + length].decode()
    descr = re.search(r"'descr': '([^']+)'", header).group(1)
    rows, columns = map(int, re.search(r"'shape': \((\d+), (\d+)\)", header).groups())
    assert "'fortran_order': False" in header
    values = struct.unpack_from(f"<{rows * columns}{FORMATS[descr]}", data, 10 + length)
    return descr, [list(values[row * columns:(row + 1) * columns]) for row in range(rows)]


def bf16(value):
    """The bits of a number that bf16 holds exactly."""
    bits, = struct.unpack("<I", struct.pack("<f", value))
    assert bits & 0xFFFF == 0, value
    return bits >> 16
