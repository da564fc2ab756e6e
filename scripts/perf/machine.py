"""What a figure depends on besides the code: machine, kernel, compiler, versions."""

import datetime
import os
import platform
import re
import subprocess


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


def describe(root, build):
    cache = os.path.join(build, "CMakeCache.txt")
    compiler = first_match(cache, r"^CMAKE_CXX_COMPILER:\w+=(.*)$")
    flags = " ".join(
        first_match(cache, rf"^{name}:\w+=(.*)$") for name in ("CMAKE_CXX_FLAGS", "CMAKE_CXX_FLAGS_RELEASE")
    ).strip()
    commit = said("git", "rev-parse", "--short=12", "HEAD", directory=root)
    if commit and said("git", "status", "--porcelain", "-uno", directory=root):
        commit += "+changes"
    boost = first_match("/usr/include/boost/version.hpp", r'BOOST_LIB_VERSION "(.*)"')
    tokio = first_match(
        os.path.join(root, "benchmarks", "tokio", "Cargo.lock"), r'name = "tokio"\nversion = "(.*)"'
    )
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
        "processor": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine(),
        "processors": os.cpu_count(),
        "memory_mib": int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) // 1024,
        "governor": first_match("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(\w+)") or "none",
        "load": f"{os.getloadavg()[0]:.2f}",
        "kernel": platform.release(),
        "compiler": (said(compiler, "--version").splitlines() or ["unknown"])[0],
        "flags": flags,
        "boost": boost.replace("_", ".") or "none",
        "libuv": package("libuv"),
        "libevent": package("libevent"),
        "liburing": package("liburing"),
        "tokio": tokio or "none",
        "rust": said("rustc", "--version") or "none",
        "python": platform.python_version(),
    }
