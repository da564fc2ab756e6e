#!/usr/bin/env python3
"""An echo server with Python's asyncio, using a protocol, its fast way. Takes the same options as the other
servers."""

import argparse
import asyncio
import socket


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.transport.write(data)


async def main(given):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", given.port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", choices=["echo"], default="echo")
    for ignored in ("--backend", "--read-mode", "--buffer", "--stay"):
        parser.add_argument(ignored)
    asyncio.run(main(parser.parse_args()))
