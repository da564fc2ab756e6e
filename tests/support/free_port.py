"""A port for a program that cannot choose one itself, or cannot print the one that it has."""

import random
import socket

FIRST_OF_KERNEL = 32_768  # net.ipv4.ip_local_port_range, ip(7)


def free_port():
    """A port of 127.0.0.1 below those that the kernel gives to sockets that ask for none, so that a connection of a
    test beside this one does not take it before the program binds it."""
    while True:
        port = random.randrange(10_000, FIRST_OF_KERNEL)
        with socket.socket() as holder:
            try:
                holder.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # taken
