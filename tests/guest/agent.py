# SPDX-License-Identifier: Apache-2.0
"""What a guest runs: it does what it is told, and answers to traffic.

On COMMAND_PORT each line is a JSON object, ``{"argv": [...], "stdin": "..."}``;
the answer is one line, too.  On ECHO_PORT what comes goes back.
"""

import json
import socket
import subprocess
import threading

COMMAND_PORT = 1000
ECHO_PORT = 1007


def serve(port, talk):
    with socket.create_server(("", port), backlog=64) as listening:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=talk, args=(connection,), daemon=True).start()


def run(connection):
    with connection.makefile("rwb") as lines:
        for line in lines:
            lines.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
            lines.flush()


def answer(asked):
    try:
        done = subprocess.run(
            asked["argv"],
            input=asked["stdin"],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout, done.stderr


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


if __name__ == "__main__":
    threading.Thread(target=serve, args=(ECHO_PORT, echo), daemon=True).start()
    serve(COMMAND_PORT, run)
