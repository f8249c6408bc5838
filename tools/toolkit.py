"""Which CUDA 13 toolkit builds the kernels: one on the machine, or the compiler from its wheels in .toolkit/.

LADDER_TOOLKIT=pypi forces the wheels, LADDER_TOOLKIT=/path/to/cuda a particular toolkit. What disassembles machine code
comes from wheels in any case.
"""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools import machine
from tools.terminal import Refusal, note, output_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".toolkit"
WHEELS = ROOT / "tools" / "toolkit-wheels.txt"
CUBLAS = ROOT / "tools" / "cublas-wheel.txt"
DISASSEMBLER = ROOT / "tools" / "disassembler-wheels.txt"
MAJOR = 13
OLDEST_DRIVER = 580


def version(nvcc):
    """(major, minor) of a compiler, or None."""
    found = re.search(r"release (\d+)\.(\d+)", output_of([str(nvcc), "--version"]) or "")
    return found and (int(found.group(1)), int(found.group(2)))


def on_this_machine():
    """The first CUDA 13 compiler found, and a remark on one that does not fit when that is all there is."""
    places = [os.environ.get("CUDACXX"), shutil.which("nvcc")]
    for home in [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda",
                 *sorted(glob.glob("/usr/local/cuda-13*"), reverse=True), "/opt/cuda"]:
        places.append(home and os.path.join(home, "bin", "nvcc"))
    remark = None
    for nvcc in filter(None, places):
        found = version(nvcc)
        if found and found[0] == MAJOR:
            return nvcc, None
        if found:
            remark = remark or f"{nvcc} is CUDA {found[0]}.{found[1]}, and these kernels need CUDA {MAJOR}"
    return None, remark


def find(with_cublas=False):
    """Path of the nvcc to build with; downloads the wheels when they are needed and not there yet."""
    wish = os.environ.get("LADDER_TOOLKIT", "")
    if wish and wish != "pypi":
        nvcc = os.path.join(wish, "bin", "nvcc")
        found = version(nvcc)
        if not found:
            raise Refusal(f"LADDER_TOOLKIT={wish}: there is no working bin/nvcc in it. Name the folder of a CUDA {MAJOR} "
                          "toolkit, or say LADDER_TOOLKIT=pypi.")
        if found[0] != MAJOR:
            raise Refusal(f"LADDER_TOOLKIT={wish} is CUDA {found[0]}.{found[1]}; these kernels need CUDA {MAJOR}. Install "
                          "it, or say LADDER_TOOLKIT=pypi for a compiler inside this folder.")
        return nvcc
    remark = None
    if not wish:
        nvcc, remark = on_this_machine()
        if nvcc:
            return nvcc
    return from_wheels(with_cublas, remark)


def from_wheels(with_cublas, remark=None):
    home = FOLDER / "cuda"
    wanted = WHEELS.read_text() + (CUBLAS.read_text() if with_cublas else "")
    stamp = home / "wheels.sha256"
    have = stamp.read_text().split() if stamp.exists() else []
    fingerprint = hashlib.sha256(wanted.encode()).hexdigest()
    if fingerprint in have:
        return str(home / "bin" / "nvcc")

    if remark:
        note(f"{remark}.")
    note(f"Fetching the CUDA 13.0 compiler into {os.path.relpath(FOLDER)}/ (about 105 MB) ...")
    unpacked = unpacked_wheels([WHEELS] + ([CUBLAS] if with_cublas else []), "the CUDA 13.0 compiler",
                               f"install a CUDA {MAJOR} toolkit and name it: LADDER_TOOLKIT=/usr/local/cuda-13.0", remark)
    # nvcc looks for lib64, the linker for names without a number.
    (unpacked / "lib64").symlink_to("lib")
    for library in (unpacked / "lib").glob("lib*.so.*"):
        link = library.with_name(library.name.split(".so.")[0] + ".so")
        if not link.exists():
            link.symlink_to(library.name)
    (unpacked / "wheels.sha256").write_text(
        hashlib.sha256(WHEELS.read_bytes()).hexdigest() + "\n" + fingerprint + "\n")
    shutil.rmtree(home, ignore_errors=True)
    unpacked.rename(home)
    return str(home / "bin" / "nvcc")


def disassembler():
    """Folder of cuobjdump and nvdisasm; downloads their wheels when they are not there yet."""
    home = FOLDER / ("disassembler-" + hashlib.sha256(DISASSEMBLER.read_bytes()).hexdigest()[:8])
    if not home.exists():
        note(f"Fetching the disassembler into {os.path.relpath(FOLDER)}/ (about 6 MB) ...")
        unpacked = unpacked_wheels([DISASSEMBLER], "the disassembler")
        try:
            unpacked.rename(home)
        except OSError:  # somebody else has just put it there
            shutil.rmtree(unpacked, ignore_errors=True)
    return home / "bin"


def unpacked_wheels(lists, what, otherwise=None, remark=None):
    """A fresh folder in .toolkit/ with the wheels that the files name, laid out as an installation. `what` and `otherwise`:
    what cannot be had, for the user to read, and what to do instead."""
    or_else = f", or {otherwise}" if otherwise else ""
    if not output_of([sys.executable, "-m", "pip", "--version"]):
        machine.install(["python3-pip"])
        if not output_of([sys.executable, "-m", "pip", "--version"]):
            raise Refusal(f"{sys.executable} has no pip, which fetches {what}. Install pip for it{or_else}.")
    unpacked = None
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        unpacked = Path(tempfile.mkdtemp(prefix="unpacked-", dir=FOLDER))
        unpacked.chmod(0o755)
        with tempfile.TemporaryDirectory(prefix="download-", dir=FOLDER) as download:
            for each in lists:
                subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes",
                                "--disable-pip-version-check", "-r", str(each), "-d", download],
                               stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)
            for wheel in sorted(Path(download).glob("*.whl")):
                unpack(wheel, unpacked)
        return unpacked
    except BaseException as error:
        if unpacked:
            shutil.rmtree(unpacked, ignore_errors=True)
        if isinstance(error, OSError):
            raise Refusal(f"There is no storing {what} in {FOLDER}: {error.strerror or error}. Make room or give write access "
                          f"there{or_else}.") from None
        if isinstance(error, subprocess.CalledProcessError):
            raise Refusal((f"{remark}. " if remark else "") +
                          f"{what[0].upper()}{what[1:]} could not be fetched from PyPI (no network, or a proxy that pip does "
                          f"not know? pip's own words are above). Run the command again when there is one{or_else}.") from None
        raise


def unpack(wheel, into):
    """Lays the toolkit's tree out as an installation does; wheels keep it under nvidia/cu13."""
    prefix = f"nvidia/cu{MAJOR}/"
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.startswith(prefix) or entry.is_dir() or "/.metadata/" in entry.filename:
                continue
            target = into / entry.filename[len(prefix):]
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            mode = entry.external_attr >> 16
            target.chmod(0o755 if mode & 0o100 else 0o644)
