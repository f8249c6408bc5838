"""What a Linux executable says about itself: its CUDA runtime, and the PTX it carries.

Only what the front door needs to refuse a program before it runs. The emulator reads the same containers when the
program hands them to it (emulator/fatbin).
"""

import platform
import struct
from dataclasses import dataclass, field

CHIPS = {"b200": (10, 0), "h200": (9, 0)}  # compute capability of each chip the emulator can be
PTX_FLAGS = {"b200": "-gencode arch=compute_100f,code=compute_100f", "h200": "-gencode arch=compute_90a,code=compute_90a"}
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

FATBIN_MAGIC = 0xBA55ED50
KIND_PTX = 1
FLAG_EXACT = 0x100000   # compute_100a: that chip only
FLAG_FAMILY = 0x200000  # compute_100f: that chip and later ones of its family


class NotElf(Exception):
    pass


@dataclass(frozen=True)
class Ptx:
    arch: int      # 100 for compute_100, compute_100a and compute_100f
    suffix: str    # "a", "f" or ""

    def __str__(self):
        return f"compute_{self.arch}{self.suffix}"

    def fits(self, capability):
        """Whether the driver would compile this PTX for a chip. CUDA C++ programming guide, "Feature set compiler targets"."""
        major, minor = divmod(self.arch, 10)
        if self.suffix == "a":
            return (major, minor) == capability
        if self.suffix == "f":
            return major == capability[0] and minor <= capability[1]
        return (major, minor) <= capability


@dataclass
class Program:
    machine: int
    needed: list = field(default_factory=list)     # sonames
    rpath: str = ""                                # DT_RPATH, which goes before LD_LIBRARY_PATH
    registers_statically: bool = False             # holds kernels but does not import the runtime's functions
    has_kernels: bool = False
    ptx: list = field(default_factory=list)

    @property
    def fits_this_machine(self):
        return self.machine == ELF_MACHINES.get(platform.machine())


def inspect(path):
    """Reads an executable. NotElf when it is something else; OSError when it cannot be read."""
    with open(path, "rb") as stream:
        data = stream.read()
    if data[:4] != b"\x7fELF" or len(data) < 64:
        raise NotElf
    if data[4] != 2 or data[5] != 1:
        raise NotElf
    try:
        return _inspect(data)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise NotElf from None


def _inspect(data):
    program = Program(machine=struct.unpack_from("<H", data, 18)[0])
    sections = _sections(data)
    _dynamic(data, sections, program)
    if ".nv_fatbin" in sections:
        program.has_kernels = True
        offset, size = sections[".nv_fatbin"]
        program.ptx = list(_ptx_entries(data, offset, offset + size))
        imports = _undefined_symbols(data, sections)
        program.registers_statically = "__cudaRegisterFatBinary" not in imports
    return program


def _sections(data):
    """Name -> (file offset, size)."""
    table, = struct.unpack_from("<Q", data, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", data, 58)
    entries = [struct.unpack_from("<IIQQQQ", data, table + i * entry_bytes) for i in range(count)]
    if not entries:
        return {}
    names = entries[names_index][4]
    nobits = 8
    return {_text(data, names + name): (offset, 0 if kind == nobits else size)
            for name, kind, _, _, offset, size in entries}


def _text(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def _dynamic(data, sections, program):
    if ".dynamic" not in sections or ".dynstr" not in sections:
        return
    (offset, size), (strings, _) = sections[".dynamic"], sections[".dynstr"]
    needed, rpath, runpath = 1, 15, 29
    tags = [struct.unpack_from("<QQ", data, at) for at in range(offset, offset + size, 16)]
    program.needed = [_text(data, strings + value) for tag, value in tags if tag == needed]
    if not any(tag == runpath for tag, _ in tags):  # a RUNPATH makes the loader ignore the RPATH
        program.rpath = ":".join(_text(data, strings + value) for tag, value in tags if tag == rpath)


def _undefined_symbols(data, sections):
    if ".dynsym" not in sections or ".dynstr" not in sections:
        return set()
    (offset, size), (strings, _) = sections[".dynsym"], sections[".dynstr"]
    symbols = (struct.unpack_from("<IBBH", data, at) for at in range(offset, offset + size, 24))
    return {_text(data, strings + name) for name, _, _, section in symbols if section == 0}


def _ptx_entries(data, at, end):
    """Walks the fat binary containers: a 16-byte header, then entries, each with its own header before the payload."""
    while at + 16 <= end:
        magic, _, header, body = struct.unpack_from("<IHHQ", data, at)
        if magic != FATBIN_MAGIC:
            at += 8  # padding between containers
            continue
        entry, stop = at + header, at + header + body
        while entry + 64 <= stop:
            kind, _, entry_header, payload = struct.unpack_from("<HHIQ", data, entry)
            arch, = struct.unpack_from("<I", data, entry + 28)
            flags, = struct.unpack_from("<Q", data, entry + 40)
            if kind == KIND_PTX:
                yield Ptx(arch, "a" if flags & FLAG_EXACT else "f" if flags & FLAG_FAMILY else "")
            entry += entry_header + payload
        at = stop
