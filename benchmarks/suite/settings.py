"""The parameters of a run, from its mode and from the environment, which overrides the mode."""

import math
import os
import re

from . import paired


class Wrong(SystemExit):
    """An invalid parameter; the text names it."""


def allowed_processors():
    return sorted(os.sched_getaffinity(0))


# --- kinds of values: text to value, ValueError with the valid values ---------------------------------


def whole(least, most=10**9):
    def parse(text):
        value = int(text) if re.fullmatch(r"[+-]?\d+", text) else None
        if value is None or not least <= value <= most:
            raise ValueError(f"is not a whole number from {least} to {most}")
        return value

    return parse


def real(least, most):
    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:  # NaN is in no range
            raise ValueError(f"is not a number from {least} to {most}")
        return value

    return parse


def whole_list(least, most=10**9):
    """Text with commas stays text: it is shown, written and read like that."""
    each = whole(least, most)

    def parse(text):
        try:
            values = [each(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"is not a list like 1,10 of whole numbers from {least} to {most}") from None
        if len(set(values)) != len(values):
            raise ValueError("names a number twice")
        return ",".join(map(str, values))

    return parse


def pattern(text):
    try:
        re.compile(text)
    except re.error as wrong:
        raise ValueError(f"is not a regular expression: {wrong}") from None
    return text


def even(text):
    try:
        return paired.check_repeats(int(text))
    except ValueError as wrong:
        raise ValueError(f"is wrong: {wrong}") from None


def processor(text):
    allowed = allowed_processors()
    if not text.isdigit() or int(text) not in allowed:
        raise ValueError(f"is not a processor that this process may use: {','.join(map(str, allowed))}")
    return int(text)


CONNECTIONS = whole_list(1, 50_000)

# name: (quick, full, kind, what it is)
PARAMETERS = {
    "REPEATS": (4, 6, even, "rounds in which each subject runs once; even"),
    "SECONDS": (0.08, 0.5, real(0.001, 60), "about how long one run measures"),
    "PING_PONG_SECONDS": (0.08, 0.25, real(0.001, 60), "the same for ping_pong_matrix"),
    "ROUND_TRIPS": (0, 0, whole(0), "number in each run, instead of SECONDS"),
    "WARM_UP": (0.25, 0.25, real(0, 10), "warm-up before a run, as a fraction of it"),
    "SIZES": ("64", "64,1024,16384", whole_list(1, 2**20), "bytes of a message"),
    "CONNECTIONS": ("1,100", "1,8,10,100,1000", CONNECTIONS, "of async_tcp_echo"),
    "CHURN_CONNECTIONS": ("16", "16,32,64", CONNECTIONS, "at once, in connection_churn"),
    "STORM_CONNECTIONS": ("100", "1000", CONNECTIONS, "at once, in accept_storm"),
    "PIPELINE": (16, 16, whole(1, 1000), "messages in flight on each connection, in pipelined_echo"),
    "PIPELINE_CONNECTIONS": ("100", "1,100", CONNECTIONS, "of pipelined_echo"),
    "TWO_CORES_CONNECTIONS": ("1", "1,100", CONNECTIONS, "of two_cores"),
    "BUSY_POLL_US": (50, 50, whole(1), "in two_cores, with busy polling"),
    "PING_PONG_SIZES": ("4096", "1024,4096,16384", whole_list(1, 2**20), "of ping_pong_matrix"),
    "PING_PONG_CONNECTIONS": ("10", "1,10,100", CONNECTIONS, "of ping_pong_matrix"),
    "LOOPS": (2, 2, whole(2, 64), "of servers on several loops"),
    "LOOPS_CONNECTIONS": ("100", "100,1000", CONNECTIONS, "of many_loops"),
    "LOOPS_MATRIX_CONNECTIONS": ("100", "100,1000,5000", CONNECTIONS, "of 64 bytes, in many_loops_matrix"),
    "BALANCE_LOOPS": ("4", "2,4,8", whole_list(2, 64), "of loop_balance"),
    "BALANCE_CONNECTIONS": (1000, 1000, whole(1, 20_000), "of loop_balance"),
    "BALANCE_REPETITIONS": (3, 10, whole(1), "of which loop_balance takes the median and the worst"),
    "STREAM_MIB": (64, 1024, whole(1), "moved by a run of streaming"),
    "STREAM_WARM_UP_MIB": (8, 8, whole(0), "before that"),
    "STREAM_BLOCK": (65536, 65536, whole(1, 2**24), "bytes that the server of streaming writes at a time"),
    "STREAM_CONNECTIONS": ("1", "1,8", CONNECTIONS, "of streaming"),
    "COPIES": (16, 16, whole(1, 1000), "sent back in queued_writer"),
    "QUEUE_CONNECTIONS": ("100", "1,100", CONNECTIONS, "of queued_writer"),
    "IDLE_CONNECTIONS": (1000, 10000, whole(1, 500_000), "of memory_per_connection"),
    "TLS_SIZES": ("64", "64,16384", whole_list(1, 2**20), "of tls_echo"),
    "TLS_CONNECTIONS": ("100", "1,100", CONNECTIONS, "of tls_echo"),
    "TLS_MIB": (64, 256, whole(1), "moved by a run of tls_send or tls_receive"),
    "TLS_BLOCKS": ("65536,16384", "65536,16384", whole_list(1, 2**24), "bytes that the server of tls_send writes at a time"),
    "TLS_IDLE_CONNECTIONS": (200, 1000, whole(1, 500_000), "of tls_idle_memory"),
    "HTTP_IDLE_CONNECTIONS": (500, 5000, whole(1, 500_000), "of http_idle_memory"),
    "WEB_REQUESTS": (10000, 50000, whole(10), "in a run of web_ab; a tenth of it for PHP"),
    "WEB_CONNECTIONS": (100, 1000, whole(1, 20000), "of web_ab"),
    "WEB_IDLE_CONNECTIONS": (500, 10000, whole(1, 500_000), "of web_idle_memory"),
    "WEB_TIMEOUT": (120, 600, whole(1), "seconds after which a run of web_ab is aborted"),
    "IDLE_WAITS": (500, 5000, whole(1), "in a run of idle_wait"),
    "UDP_IN_FLIGHT": (64, 64, whole(1, 64), "datagrams at a time, in udp"),
    "AB_REQUESTS": (10000, 50000, whole(1), "in a run of ab_matrix or file_answers"),
    "AB_CONNECTIONS": (1000, 1000, whole(1, 20000), "of ab_matrix"),
    "ANSWER_FILE": (612, 612, whole(1, 2**24), "bytes of the file of file_answers"),
    "ANSWER_CONNECTIONS": (100, 100, whole(1, 20000), "of file_answers"),
    "BENCHMARK_MIN_TIME": (0.02, 0.1, real(0.001, 60), "seconds, for Google Benchmark"),
    "MICRO": ("", "", pattern, "only pieces of micro whose name matches this regular expression"),
    "ALLOCATION_ROUND_TRIPS": (4000, 20000, whole(1), "in a run of allocations"),
    "CALLGRIND_ROUND_TRIPS": (2000, 5000, whole(1), "in the short run of instructions; the long run has three times as many"),
    "STRACE_ROUND_TRIPS": (300, 1000, whole(1), "in the short run of system_calls; the long run has three times as many"),
    "SERVER_CPU": (None, None, processor, "processor for servers (default: the first this process may use)"),
    "CLIENT_CPU": (None, None, processor, "processor for clients in scenarios for two (default: the second)"),
    "SCENARIOS": ("", "", pattern, "only scenarios whose whole name matches; --scenario wins"),
    "SUBJECTS": ("", "", pattern, "only subjects whose name matches this regular expression"),
    "TIMEOUT": (120, 120, whole(1), "seconds after which a run is aborted"),
}

# Read by Linux's perf(1), not by the suite.
FOREIGN = {"PERF_CONFIG", "PERF_PAGER", "PERF_EXEC_PATH", "PERF_BUILDID_DIR"}


class Settings:
    """The parameters as attributes in lower case."""

    def __init__(self, mode, environment=os.environ):
        self.mode = mode
        self.changed = {}
        for name in sorted(environment):
            if name.startswith("PERF_") and name not in FOREIGN and name[5:] not in PARAMETERS:
                raise Wrong(f"{name} is not a parameter of the suite; see --parameters")
        for name, (quick, full, parse, _) in PARAMETERS.items():
            value = quick if mode == "quick" else full
            given = environment.get(f"PERF_{name}")
            if given is not None:
                try:
                    value = parse(given)
                except ValueError as wrong:
                    raise Wrong(f"PERF_{name}={given} {wrong}") from None
                self.changed[name] = value
            setattr(self, name.lower(), value)
        allowed = allowed_processors()
        if self.server_cpu is None:
            self.server_cpu = allowed[0]
        if self.client_cpu is None:
            self.client_cpu = next((each for each in allowed if each != self.server_cpu), self.server_cpu)

    @property
    def one_processor(self):
        return self.client_cpu == self.server_cpu

    def numbers(self, name):
        return [int(each) for each in getattr(self, name).split(",")]

    def as_dict(self):
        return {name.lower(): getattr(self, name.lower()) for name in PARAMETERS}


def describe():
    def show(value):
        return "-" if value in ("", None) else str(value)

    rows = ["  variable                      quick    full             what"]
    for name, (quick, full, _, what) in PARAMETERS.items():
        rows.append(f"  PERF_{name:<25}{show(quick):<9}{show(full):<17}{what}")
    return "\n".join(rows)
