# SPDX-License-Identifier: Apache-2.0
"""CPU time of commands on the snapshot of a large cloud.

    python -m tests.benchmark.large_cloud [--hosts 10000] [COMMAND...]

A third of the hosts are dedicated, with up to two high-performance VMs each; the
others have up to fourteen general ones.  Prints what each command takes, the start of
Python included, and of how much memory at most.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from nova_perfvm.facts import snapshot
from tests.unit.facts.snapshot import clouds

COMMANDS = {
    "explain": ("explain", "--flavor", clouds.HP, "-f", "json"),
    "capacity": ("capacity", "show"),
    "audit": ("audit",),
    "survey": ("survey",),
    "map": ("map", "--output", "{directory}/map.html"),
    "metrics": ("metrics",),
    "defragment": ("plan", "defragment", "--budget", "20", "-f", "json"),
    "drain": ("plan", "drain", "dedicated1", "-f", "json"),
}
MOST_GENERAL = 14


def cloud_of(hosts):
    """Return the snapshot of a cloud of so many hosts."""
    rng = random.Random(hosts)
    cloud = clouds.Cloud()
    for number in range(1, hosts + 1):
        if number % 3:
            name = f"shared{number}"
            cloud.add_host(name, "shared")
            for index in range(rng.randint(0, MOST_GENERAL - 1)):
                cloud.add_general(f"g{number}-{index}", name)
        else:
            name = f"dedicated{number // 3}"
            cloud.add_host(name)
            for node in range(rng.randint(0, 2)):
                cloud.add_hp(f"hp{number}-{node}", name, first=20 * node, node=node)
    return replace(cloud.snapshot(), microversion="2.96")


def prepare(path, hosts):
    """Write the snapshot of a cloud; say what that is."""
    cloud = cloud_of(hosts)
    path.write_text(snapshot.dumps(cloud), encoding="utf-8")
    size_mb = path.stat().st_size / 1024**2
    counts = f"{len(cloud.hosts)} hosts, {len(cloud.servers)} servers"
    return f"{counts}, {size_mb:.0f} MiB\n"


def measured(command, path, directory):
    """Return CPU seconds, MB of memory at most and the exit status of a command."""
    words = [word.format(directory=directory) for word in COMMANDS[command]]
    program = Path(sys.executable).with_name("nova-perfvm")
    with (directory / "output").open("w") as output:
        process = subprocess.Popen(
            [program, *words, "--snapshot", path], stdout=output, stderr=output
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, process.returncode


def main():
    """Make the snapshot, run the commands, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=10000)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", default=[*COMMANDS])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        path = directory / "snapshot.json"
        # Beside this process, as what it takes counts for those that it starts.
        with ProcessPoolExecutor(1) as pool:
            sys.stdout.write(pool.submit(prepare, path, wanted.hosts).result())
        for command in wanted.commands:
            cpu_s, most_mb, status = measured(command, path, directory)
            sys.stdout.write(
                f"{command:12} {cpu_s:6.1f} s {most_mb:5} MB  exit status {status}\n"
            )


if __name__ == "__main__":
    main()
