"""A port for a program that cannot choose one itself, or cannot print the one that it has."""

import collections
import random
import socket

FIRST_OF_KERNEL = 32_768  # net.ipv4.ip_local_port_range, ip(7)
_claims = collections.deque(maxlen=100)  # the latest: those before have long been bound


def free_port():
    """A port of 127.0.0.1 below those that the kernel gives to sockets that ask for none, so that a connection of a
    test beside this one does not take it before the program binds it. No other process gets it from here: two servers
    of one user could share it (SO_REUSEPORT, socket(7))."""
    while True:
        port = random.randrange(10_000, FIRST_OF_KERNEL)
        claim = socket.socket(socket.AF_UNIX)
        with socket.socket() as holder:
            try:
                claim.bind(f"\0simplenet-test-port-{port}")
                holder.bind(("127.0.0.1", port))
                _claims.append(claim)
                return port
            except OSError:
                claim.close()  # taken
