"""The goals, as stated before anything was measured, and whether a run met them."""

import dataclasses
import re


@dataclasses.dataclass
class Goal:
    name: str
    scenario: str
    cases: str  # regular expression for the whole name of a case
    measure: str
    ours: str  # regular expression for subjects
    other: str  # "" for an absolute figure
    want: str  # "cost <= 0.89" (ours to theirs), "ratio >= 1.03" (above 1: we are faster), "value <= 300"
    noise_allowed: bool = False  # within the noise of the run is good enough


SMALL = r"(64|1024)B_(10|100|1000)"

GOALS = [
    Goal("echo_cpu_epoll", "async_tcp_echo", SMALL, "server_cpu_ns", "ours_epoll_.*", "asio_epoll", "cost <= 0.89"),
    Goal("echo_cpu_io_uring", "async_tcp_echo", SMALL, "server_cpu_ns", "ours_io_uring_.*", "asio_epoll", "cost <= 0.88"),
    Goal("echo_cpu_epoll_1", "async_tcp_echo", r"(64|1024)B_1", "server_cpu_ns", "ours_epoll_.*", "asio_epoll", "cost <= 0.92"),
    Goal("echo_cpu_io_uring_1", "async_tcp_echo", r"(64|1024)B_1", "server_cpu_ns", "ours_io_uring_.*", "asio_epoll", "cost <= 0.93"),
    Goal("echo_cpu_epoll_16K", "async_tcp_echo", r"16384B_100", "server_cpu_ns", "ours_epoll_.*", "asio_epoll", "cost <= 0.90"),
    Goal("echo_cpu_io_uring_16K", "async_tcp_echo", r"16384B_100", "server_cpu_ns", "ours_io_uring_.*", "asio_epoll", "cost <= 0.89"),
    Goal("churn_cpu_epoll", "connection_churn", "16", "server_cpu_ns", "ours_epoll_.*", "asio_epoll", "cost <= 0.96"),
    Goal("churn_cpu_io_uring", "connection_churn", "16", "server_cpu_ns", "ours_io_uring_.*", "asio_epoll", "cost <= 0.90"),
    Goal("bare_epoll", "async_tcp_echo", ".*", "server_cpu_ns", "ours_epoll_.*", "bare_epoll", "cost <= 1.02"),
    Goal("bare_io_uring", "async_tcp_echo", ".*", "server_cpu_ns", "ours_io_uring_.*", "bare_io_uring", "cost <= 1.02"),
    Goal("bare_epoll_churn", "connection_churn", "16", "server_cpu_ns", "ours_epoll_.*", "bare_epoll", "cost <= 1.02"),
    Goal("bare_io_uring_churn", "connection_churn", "16", "server_cpu_ns", "ours_io_uring_.*", "bare_io_uring", "cost <= 1.02"),
    Goal("echo_wall_asio", "async_tcp_echo", r"\d+B_(8|100)", "wall_ns", "ours_.*", "asio_epoll", "ratio >= 1.03"),
    Goal("echo_wall_tokio", "async_tcp_echo", r"\d+B_(8|100)", "wall_ns", "ours_.*", "tokio", "ratio >= 1.0", True),
    Goal("instructions_100", "instructions", "epoll-100", "instructions", "ours_epoll_read_some", "", "value <= 300"),
    Goal("instructions_1", "instructions", "epoll-1", "instructions", "ours_epoll_read_some", "", "value <= 330"),
    Goal("instructions_limit_100", "instructions", "epoll-100", "adds", "ours_epoll_limits", "", "value <= 120"),
    Goal("instructions_limit_1", "instructions", "epoll-1", "adds", "ours_epoll_limits", "", "value <= 120"),
    Goal("busy_poll_rate", "two_cores", "64B_1", "round_trips_per_s", "ours_.*_busy_poll", "asio_epoll", "ratio >= 2.5"),
    Goal("busy_poll_latency", "two_cores", "64B_1", "p50_ns", "ours_.*_busy_poll", "asio_epoll", "cost <= 0.4"),
    Goal("fairness", "async_tcp_echo", r"\d+B_1000", "p99_to_p50", "ours_.*", "", "value <= 1.3"),
    Goal("idle_wait", "idle_wait", ".*", "cpu_ns", "ours_.*", "asio_epoll", "ratio >= 1.10"),
    Goal("connection_churn", "connection_churn", ".*", "wall_ns", "ours_.*", "asio_epoll", "ratio >= 1.05"),
    Goal("tcp_echo", "tcp_echo", ".*", "wall_ns", "ours", "asio", "ratio >= 1.0", True),
    Goal("spawn_join", "micro", "spawn_join", "cpu_ns", "ours_.*", "asio", "cost <= 0.10"),
    Goal("yield", "micro", "yield", "cpu_ns", "ours_.*", "asio", "cost <= 0.15"),
    Goal("timer_arm_cancel", "micro", "timer_arm_cancel_100000", "cpu_ns", "ours_.*", "asio", "cost <= 0.10"),
    Goal("channel", "micro", "channel", "cpu_ns", "ours_.*", "asio", "cost <= 0.20"),
    Goal("post_awake_system_calls", "post_system_calls", ".*", "system_calls", "ours_.*", "", "value <= 0.01"),
    Goal("udp_batch", "udp", "64B_batch", "cpu_ns", "ours_.*", "asio", "ratio >= 2"),
    Goal("memory", "memory_per_connection", "10000", "bytes_per_connection", "ours_.*_receive", "", "value <= 1024"),
    Goal("callbacks_epoll", "callbacks_echo", ".*", "server_cpu_ns", "ours_epoll", "coroutines_epoll", "cost <= 1.05"),
    Goal("callbacks_io_uring", "callbacks_echo", ".*", "server_cpu_ns", "ours_io_uring", "coroutines_io_uring", "cost <= 1.05"),
    Goal("two_loops_epoll", "many_loops", ".*", "server_cpu_ns", "ours_epoll", "one_loop_epoll", "cost <= 1.03"),
    Goal("two_loops_io_uring", "many_loops", ".*", "server_cpu_ns", "ours_io_uring", "one_loop_io_uring", "cost <= 1.06"),
    Goal("steered_epoll", "many_loops", ".*", "server_cpu_ns", "ours_epoll_steered", "one_loop_epoll", "cost <= 0.92"),
    Goal("steered_io_uring", "many_loops", ".*", "server_cpu_ns", "ours_io_uring_steered", "one_loop_io_uring", "cost <= 0.92"),
    Goal("loops_matrix_1", "many_loops_matrix", r".*_1", "server_cpu_ns", "ours_.*", "asio_threads", "cost <= 0.93"),
    Goal("loops_matrix", "many_loops_matrix", r".*_(10|100|1000|5000)", "server_cpu_ns", "ours_.*", "asio_threads", "cost <= 0.90"),
    Goal("loop_balance", "loop_balance", ".*", "worst_busiest", "ours_.*", "", "value <= 1.05"),
    Goal("file_answers_epoll", "file_answers", ".*", "server_cpu_ns", "ours_epoll", "apart_epoll", "cost <= 0.71"),
    Goal("file_answers_io_uring", "file_answers", ".*", "server_cpu_ns", "ours_io_uring", "apart_io_uring", "cost <= 0.71"),
    Goal("file_answers_nginx", "file_answers", ".*", "server_cpu_ns", "ours_.*", "nginx", "cost <= 0.75"),
    Goal("tls_echo_epoll", "tls_echo", "64B_100", "server_cpu_ns", "ours_epoll", "asio_epoll", "cost <= 0.86"),
    Goal("tls_echo_io_uring", "tls_echo", "64B_100", "server_cpu_ns", "ours_io_uring", "asio_epoll", "cost <= 0.83"),
    Goal("tls_send_64K", "tls_send", "65536B", "server_cpu_us_per_mib", "ours_.*", "asio_epoll", "cost <= 0.76"),
    Goal("tls_send_16K", "tls_send", "16384B", "server_cpu_us_per_mib", "ours_.*", "asio_epoll", "cost <= 0.86"),
    Goal("tls_receive_epoll", "tls_receive", ".*", "server_cpu_us_per_mib", "ours_epoll", "asio_epoll", "cost <= 0.85"),
    Goal("tls_receive_io_uring", "tls_receive", ".*", "server_cpu_us_per_mib", "ours_io_uring", "asio_epoll", "cost <= 0.78"),
    Goal("tls_handshake_full", "tls_handshakes", "full", "server_cpu_ns", "ours_.*", "asio_epoll", "cost <= 0.93"),
    Goal("tls_handshake_resumed", "tls_handshakes", "resumed", "server_cpu_ns", "ours_.*", "asio_epoll", "cost <= 0.91"),
    Goal("tls_idle_memory", "tls_idle_memory", ".*", "bytes_per_connection", "ours_.*", "", "value <= 14848"),
    Goal("tls_idle_memory_asio", "tls_idle_memory", ".*", "bytes_per_connection", "ours_.*", "asio_epoll", "cost <= 0.19"),
    Goal("tls_two_loops_epoll", "tls_many_loops", ".*", "server_cpu_ns", "ours_epoll", "one_loop_epoll", "cost <= 1.03"),
    Goal("tls_two_loops_io_uring", "tls_many_loops", ".*", "server_cpu_ns", "ours_io_uring", "one_loop_io_uring", "cost <= 1.07"),
    *(
        Goal(f"http_{case}_{backend}", "http_answers", case, "server_cpu_ns", f"ours_{backend}", "nginx", f"cost <= {most}")
        for case, on_epoll, on_io_uring in (
            ("hello_100", 0.87, 0.82),
            ("browser_100", 0.75, 0.75),
            ("pipelined_16", 0.10, 0.10),
            ("file_612B_100", 0.73, 0.73),
            ("memory_612B_100", 0.57, 0.57),
            ("file_1MiB_100", 1.0, 1.0),
        )
        for backend, most in (("epoll", on_epoll), ("io_uring", on_io_uring))
    ),
    *(
        Goal(f"web_{case}_{backend}", "web_answers", case, "server_cpu_ns", f"ours_{backend}", "nginx", f"cost <= {most}")
        for case, on_epoll, on_io_uring in (
            ("hello_100", 0.90, 0.85),
            ("file_612B_100", 0.62, 0.62),
            ("file_10KiB_100", 0.85, 0.85),
            ("file_1MiB_100", 1.0, 1.0),
            ("tls_612B_100", 0.85, 0.85),
            ("proxied_612B_100", 0.85, 0.85),
            ("php_4", 0.75, 0.75),
        )
        for backend, most in (("epoll", on_epoll), ("io_uring", on_io_uring))
    ),
    Goal("web_latency", "web_latency", ".*", "p99_ns", "ours_.*", "nginx", "cost <= 1.0", True),
    Goal("web_log_epoll", "web_log", ".*", "server_cpu_ns", "ours_epoll_.*", "no_log_epoll", "cost <= 1.03"),
    Goal("web_log_io_uring", "web_log", ".*", "server_cpu_ns", "ours_io_uring_.*", "no_log_io_uring", "cost <= 1.03"),
    Goal("web_idle_memory", "web_idle_memory", ".*", "bytes_per_connection", "ours_.*", "nginx", "cost <= 1.0"),
    Goal("web_start", "web_start", ".*", "start_ms", "ours_.*", "", "value <= 50"),
    Goal("http_idle_memory", "http_idle_memory", ".*", "bytes_per_connection", "ours_.*", "", "value <= 1024"),
    Goal("http_allocations", "http_allocations", ".*", "allocations", "ours_.*", "", "value <= 0"),
    Goal("allocations", "allocations", "echo_.*", "allocations", "ours_.*", "", "value <= 0.001"),
]


# A figure with more noise than this decides nothing inside its noise.
NOISE_CAP = 0.03

# Processors used by others just before a case: above this, measurements by the clock are disturbed.
BUSY_CAP = 0.15

# Counted measures, which a busy machine does not disturb.
COUNTED = {"instructions", "adds", "allocations", "system_calls", "bytes_per_connection", "busiest", "worst_busiest"}

# From worst to best; a goal has the worst verdict of its cases.
VERDICTS = ("missed", "cannot_tell", "missed_within_noise", "met_within_noise", "met")


def holds(want, value):
    sign, limit = want.split()[1:]
    return value <= float(limit) if sign == "<=" else value >= float(limit)


def verdict(goal, value, low, high, noise, busy=0.0):
    """The verdict of one case: `value` lies between `low` and `high` as far as is known; `noise` is the
    control's."""
    if noise is None or (busy > BUSY_CAP and goal.measure not in COUNTED):
        return "cannot_tell"
    low, high = min(low, value / (1 + noise)), max(high, value * (1 + noise))
    at_worst, at_best = (high, low) if "<=" in goal.want else (low, high)
    if holds(goal.want, at_worst):
        return "met"
    if not holds(goal.want, at_best):
        return "missed"
    towards = at_worst if holds(goal.want, value) else at_best
    if min(value, towards) <= 0 or max(value / towards, towards / value) - 1 > NOISE_CAP:
        return "cannot_tell"
    if goal.noise_allowed:
        allowed = value * (1 + noise) if ">=" in goal.want else value / (1 + noise)
        return "met" if holds(goal.want, allowed) else "missed_within_noise"
    return "met_within_noise" if holds(goal.want, value) else "missed_within_noise"


def judge(goal, medians, pairs):
    """The worst verdict of everything measured for `goal`, as the fields of a PERF_GOAL line.

    `medians`: records with scenario, case, subject, measure, value, noise; `pairs`: with scenario, case,
    measure, ours, other, ratio, low, high, noise. Both may have `busy`.
    """

    def fits(record):
        return (
            record["scenario"] == goal.scenario
            and record["measure"] == goal.measure
            and re.fullmatch(goal.cases, record["case"])
        )

    found = []

    def add(record, subject, value, low, high):
        noise = record.get("noise")
        said = verdict(goal, value, low, high, noise, record.get("busy", 0.0))
        distance = -value if "<=" in goal.want else value
        found.append((VERDICTS.index(said), distance, value, record["case"], subject, noise))

    if goal.want.startswith("value"):
        for each in medians:
            if fits(each) and re.fullmatch(goal.ours, each["subject"]):
                add(each, each["subject"], each["value"], each["value"], each["value"])
    else:
        for each in pairs:
            if not fits(each) or not re.fullmatch(goal.ours, each["ours"]):
                continue
            if not re.fullmatch(goal.other, each["other"]):
                continue
            three = each["ratio"], each["low"], each["high"]
            if goal.want.startswith("cost"):
                three = 1 / each["ratio"], 1 / each["high"], 1 / each["low"]
            add(each, each["ours"], *three)
    if not found:
        return {"goal": goal.name, "want": goal.want, "verdict": "unmeasured"}
    worst, _, value, case, subject, noise = min(found, key=lambda each: each[:2])
    return {
        "goal": goal.name,
        "want": goal.want,
        "value": value,
        "case": case,
        "subject": subject,
        "noise": "unknown" if noise is None else noise,
        "cases": len(found),
        "verdict": VERDICTS[worst],
    }
