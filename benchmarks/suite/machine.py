"""What a figure depends on besides the code: machine, kernel, compiler, versions."""

import datetime
import os
import platform
import re
import subprocess
import time

from .settings import Wrong


def said(*command, directory=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def first_match(path, pattern):
    try:
        with open(path, errors="replace") as file:
            found = re.search(pattern, file.read(), re.M)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def package(name):
    return said("pkg-config", "--modversion", name) or "none"


def check_build(meta):
    """Rejects builds that nobody ships: their figures would be read as ours."""
    if meta["build_type"] != "Release":
        raise Wrong(f"the build is of type {meta['build_type']}; only Release is measured")
    if "-fsanitize" in meta["flags"]:
        raise Wrong(f"the build has a sanitizer: {meta['flags']}")


def processor_ticks():
    """(used, idle) ticks of all processors together; time taken by a hypervisor counts as used."""
    with open("/proc/stat") as file:
        user, nice, system, idle, waiting, *others = map(int, file.readline().split()[1:9])
    return user + nice + system + sum(others), idle + waiting


def busy(seconds=0.25):
    """How many processors other programs use at the moment, while nothing of ours runs."""
    try:
        spent, idle = processor_ticks()
        time.sleep(seconds)
        spent_now, idle_now = processor_ticks()
    except (OSError, ValueError):
        return 0.0
    spent, idle = spent_now - spent, idle_now - idle
    return (os.cpu_count() or 1) * spent / max(spent + idle, 1)


def describe(root, build):
    began = datetime.datetime.now().astimezone()
    cache = os.path.join(build, "CMakeCache.txt")
    compiler = first_match(cache, r"^CMAKE_CXX_COMPILER:\w+=(.*)$")
    build_type = first_match(cache, r"^CMAKE_BUILD_TYPE:\w+=(.*)$") or "none"
    flags = " ".join(
        first_match(cache, rf"^{name}:\w+=(.*)$")
        for name in ("CMAKE_CXX_FLAGS", f"CMAKE_CXX_FLAGS_{build_type.upper()}")
    ).strip()
    commit = said("git", "rev-parse", "--short=12", "HEAD", directory=root)
    if commit and said("git", "status", "--porcelain", "-uno", directory=root):
        commit += "+changes"
    boost = first_match("/usr/include/boost/version.hpp", r'BOOST_LIB_VERSION "(.*)"')
    tokio = first_match(
        os.path.join(root, "benchmarks", "tokio", "Cargo.lock"), r'name = "tokio"\nversion = "(.*)"'
    )
    return {
        "date": began.date().isoformat(),
        "began": began.isoformat(timespec="seconds"),
        "commit": commit or "unknown",
        "processor": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine(),
        "processors": os.cpu_count(),
        "memory_mib": int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) // 1024,
        "governor": first_match("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(\w+)") or "none",
        "load": f"{os.getloadavg()[0]:.2f}",
        "kernel": platform.release(),
        "compiler": (said(compiler, "--version").splitlines() or ["unknown"])[0],
        "build_type": build_type,
        "flags": flags,
        "boost": boost.replace("_", ".") or "none",
        "libuv": package("libuv"),
        "libevent": package("libevent"),
        "liburing": package("liburing"),
        "tokio": tokio or "none",
        "rust": said("rustc", "--version") or "none",
        "python": platform.python_version(),
    }
