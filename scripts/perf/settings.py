"""What a run of the suite does, from its mode, and from the environment where that says otherwise."""

import os

from . import paired

# name: (quick, full, what it is)
PARAMETERS = {
    "REPEATS": (4, 6, "rounds in which each subject runs once; even"),
    "SECONDS": (0.15, 1.0, "about how long one run measures"),
    "ROUND_TRIPS": (0, 0, "instead of SECONDS: so many in each run"),
    "SIZES": ("64", "64,1024,16384", "bytes of a message"),
    "CONNECTIONS": ("1,100", "1,8,10,100,1000", "of async_tcp_echo"),
    "CHURN_CONNECTIONS": ("16", "16,32,64", "at once, of connection_churn"),
    "IDLE_CONNECTIONS": (1000, 10000, "of memory_per_connection"),
    "PIPELINE": (16, 16, "messages on the way on each connection, of pipelined_echo"),
    "STREAM_MIB": (64, 1024, "that a run of streaming moves"),
    "AB_REQUESTS": (10000, 200000, "of a run of ab"),
    "AB_CONNECTIONS": (1000, 1000, "of ab"),
    "BUSY_POLL_US": (50, 50, "of two_cores, with busy polling"),
    "SERVER_CPU": (0, 0, "on which servers run"),
    "CLIENT_CPU": (1, 1, "on which clients run where the scenario is for two"),
    "BENCHMARK_MIN_TIME": (0.02, 0.5, "seconds, of Google Benchmark"),
    "SUBJECTS": ("", "", "only subjects whose name matches this regular expression"),
    "TIMEOUT": (120, 120, "seconds after which a run is given up"),
}


class Settings:
    """Parameters as attributes in lower case."""

    def __init__(self, mode, environment=os.environ):
        self.mode = mode
        self.changed = {}
        for name, (quick, full, _) in PARAMETERS.items():
            value = quick if mode == "quick" else full
            given = environment.get(f"PERF_{name}")
            if given is not None:
                try:
                    value = type(value)(given)
                except ValueError:
                    raise SystemExit(f"PERF_{name}={given} is not a number") from None
                self.changed[name] = value
            setattr(self, name.lower(), value)
        try:
            paired.check_repeats(self.repeats)
        except ValueError as wrong:
            raise SystemExit(f"PERF_REPEATS: {wrong}") from None

    def numbers(self, name):
        return [int(each) for each in getattr(self, name).split(",")]

    def as_dict(self):
        return {name.lower(): getattr(self, name.lower()) for name in PARAMETERS}


def describe():
    rows = ["  variable                 quick      full              what"]
    for name, (quick, full, what) in PARAMETERS.items():
        rows.append(f"  PERF_{name:<20}{str(quick) or '-':<11}{str(full) or '-':<18}{what}")
    return "\n".join(rows)
