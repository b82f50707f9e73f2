#!/usr/bin/env python3
"""Sends samples to a run that reads a SocketStream: producer.py SOCKET

A sample is two numbers and whether the first is larger. Pass `epoch` always gives the same samples,
so a run that is resumed sees what the run without a stop saw. Ends with the run.
"""
import random
import socket
import struct
import sys
import time

FLOAT32, INT64 = 6, 4


def connect(path):
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):  # the run has not begun
            connection.close()
            time.sleep(0.05)


def form(name, dtype, shape):
    name = name.encode()
    return (struct.pack("<I", len(name)) + name + struct.pack("<II", dtype, len(shape))
            + struct.pack(f"<{len(shape)}q", *shape))


def samples(epoch, count=512):
    draw = random.Random(epoch)
    for _ in range(count):
        x = draw.uniform(-1, 1), draw.uniform(-1, 1)
        yield struct.pack("<2f", *x) + struct.pack("<q", x[0] > x[1])


def main():
    connection = connect(sys.argv[1])
    connection.sendall(b"RONDOSTR" + struct.pack("<II", 1, 2)
                       + form("x", FLOAT32, [2]) + form("label", INT64, []))
    reader = connection.makefile("rb")
    try:
        while len(request := reader.read(16)) == 16:
            epoch = struct.unpack("<8xQ", request)[0]
            for sample in samples(epoch):
                connection.sendall(b"SAMPLE  " + sample)
            connection.sendall(b"END     ")
    except (BrokenPipeError, ConnectionResetError):
        pass  # the run has ended


if __name__ == "__main__":
    main()
