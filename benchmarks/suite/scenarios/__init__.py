"""The scenarios: each yields cases, and a case knows how to measure one subject once."""

from .counts import count_allocations, instructions, instructions_io_uring, memory_per_connection
from .counts import post_system_calls, system_calls
from .http import http_allocations, http_answers, http_idle_memory
from .loops import callbacks_echo, loop_balance, many_loops, many_loops_matrix
from .pieces import idle_wait, micro, udp
from .servers import ab_matrix, accept_storm, async_tcp_echo, connection_churn, file_answers, ping_pong_matrix
from .servers import pipelined_echo, queued_writer, streaming, tcp_echo, two_cores
from .web import web_ab, web_answers, web_idle_memory, web_latency, web_log, web_start
from .tls import tls_allocations, tls_echo, tls_handshakes, tls_idle_memory, tls_many_loops, tls_receive, tls_send

SCENARIOS = {
    "async_tcp_echo": async_tcp_echo,
    "connection_churn": connection_churn,
    "idle_wait": idle_wait,
    "tcp_echo": tcp_echo,
    "pipelined_echo": pipelined_echo,
    "streaming": streaming,
    "queued_writer": queued_writer,
    "accept_storm": accept_storm,
    "two_cores": two_cores,
    "ping_pong_matrix": ping_pong_matrix,
    "callbacks_echo": callbacks_echo,
    "many_loops": many_loops,
    "many_loops_matrix": many_loops_matrix,
    "loop_balance": loop_balance,
    "ab_matrix": ab_matrix,
    "file_answers": file_answers,
    "tls_echo": tls_echo,
    "tls_send": tls_send,
    "tls_receive": tls_receive,
    "tls_handshakes": tls_handshakes,
    "tls_many_loops": tls_many_loops,
    "tls_idle_memory": tls_idle_memory,
    "tls_allocations": tls_allocations,
    "http_answers": http_answers,
    "http_idle_memory": http_idle_memory,
    "http_allocations": http_allocations,
    "web_answers": web_answers,
    "web_latency": web_latency,
    "web_log": web_log,
    "web_ab": web_ab,
    "web_idle_memory": web_idle_memory,
    "web_start": web_start,
    "udp": udp,
    "micro": micro,
    "system_calls": system_calls,
    "post_system_calls": post_system_calls,
    "memory_per_connection": memory_per_connection,
    "allocations": count_allocations,
    "instructions": instructions,
    "instructions_io_uring": instructions_io_uring,
}
