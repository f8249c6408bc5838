"""What the build needs from the machine, and how it gets there: C++ compiler, build tools, libraries, GPU."""

import os
import re
import shutil
import subprocess

from tools.terminal import Refusal, note, output_of

OLDEST_GCC = 12
OLDEST_CLANG = 15
OLDEST_CMAKE = (3, 22)

# Header that shows a library is there -> Debian's package.
LIBRARIES = {
    "catch2/catch_all.hpp|catch2/catch.hpp": "catch2",
    "hwy/highway.h": "libhwy-dev",
    "fmt/format.h": "libfmt-dev",
    "CLI/CLI.hpp": "libcli11-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "zstd.h": "libzstd-dev",
    "lz4.h": "liblz4-dev",
}
PROGRAMS = {"cmake": "cmake", "ninja": "ninja-build", "pkg-config": "pkg-config"}


def compiler():
    """Path of a C++20 compiler: $CXX, or the first one that is new enough."""
    chosen = os.environ.get("CXX")
    names = [chosen] if chosen else ["g++", "c++", *(f"g++-{v}" for v in range(15, OLDEST_GCC - 1, -1)), "clang++"]
    too_old = None
    for name in names:
        path = shutil.which(name)
        about = path and output_of([path, "--version"])
        if not about:
            continue
        clang = "clang" in about
        version = output_of([path, "-dumpversion"]) or "0"
        oldest = OLDEST_CLANG if clang else OLDEST_GCC
        if int(re.match(r"\d*", version).group() or 0) >= oldest:
            return path
        too_old = too_old or f"{path} is {'clang' if clang else 'GCC'} {version.strip()}, and C++20 here needs {oldest}"
    if too_old:
        raise Refusal(f"{too_old} or newer. Install one (`{install_command(['g++-12'])}`) and name it: "
                      "`CXX=g++-12 ./ladder build`.")
    if chosen:
        raise Refusal(f"CXX={chosen} does not run. Unset it, or name a C++20 compiler (GCC {OLDEST_GCC} or newer).")
    raise Refusal(f"No C++ compiler found. Install one: `{install_command(['g++'])}`.")


def missing_packages(cxx):
    """Debian packages for what is not there; looked for by what they bring, so other systems' packages count too."""
    packages = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    probe = ""
    for headers, package in LIBRARIES.items():
        present = " || ".join(f"__has_include(<{header}>)" for header in headers.split("|"))
        probe += f"#if !({present})\nmissing:{package}\n#endif\n"
    done = subprocess.run([cxx, "-x", "c++", "-std=c++20", "-E", "-P", "-"], input=probe, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Refusal(f"{cxx} cannot preprocess a C++ file:\n{done.stderr.strip()}")
    packages += [re.sub(r"\s", "", found) for found in re.findall(r"missing:(.+)", done.stdout)]
    cmake = output_of(["cmake", "--version"]) or ""
    version = re.search(r"version (\d+)\.(\d+)", cmake)
    if version and tuple(map(int, version.groups())) < OLDEST_CMAKE:
        raise Refusal(f"{shutil.which('cmake')} is {version.group(1)}.{version.group(2)}; {OLDEST_CMAKE[0]}.{OLDEST_CMAKE[1]} "
                      "is needed. Install a newer CMake, for example `python3 -m pip install --user cmake`.")
    return packages


def install_command(packages, sudo=None):
    if sudo is None:
        sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install -y --no-install-recommends {' '.join(packages)}"


def install(packages):
    """Installs Debian packages as root or through a sudo that asks nothing; otherwise says the one command to type."""
    if not packages:
        return
    wanted = ", ".join(packages)
    if not shutil.which("apt-get"):
        raise Refusal(f"Missing (Debian's names): {wanted}. Install them with this system's package manager, "
                      "or use the Dockerfile.")
    command = install_command(packages)
    if os.environ.get("LADDER_INSTALL") == "never":
        raise Refusal(f"Missing: {wanted}. LADDER_INSTALL=never is set, so please type: {command}")
    root = os.geteuid() == 0
    if not root and output_of(["sudo", "-n", "true"]) is None:
        raise Refusal(f"Missing: {wanted}. Installing takes root; please type: {command}")

    note(f"Installing {wanted} ...")
    apt = [*([] if root else ["sudo", "-n"]), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "Dpkg::Use-Pty=0"]
    install_them = [*apt, "install", "-y", "--no-install-recommends", *packages]

    def run(arguments):
        return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")

    run([*apt, "update"])  # a fresh image has no lists, an old one outdated ones; the install itself tells whether it worked
    done = run(install_them)
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-6:])
        raise Refusal(f"apt-get could not install {wanted} (no network? another apt running?). Its last words:\n{tail}\n"
                      f"When that is settled: {command}")


def gpus():
    """[(name, driver version)] of the GPUs that the driver shows."""
    listing = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) or ""
    return [tuple(part.strip() for part in line.split(",")) for line in listing.splitlines() if "," in line]
