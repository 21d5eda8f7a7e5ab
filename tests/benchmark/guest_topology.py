# SPDX-License-Identifier: Apache-2.0
"""Interrupts between a guest's CPUs with a socket for each vCPU, and with one socket.

Pairs of processes wake each other through pipes: one pair for two vCPUs, which
then have nothing else to do, or four pairs for each vCPU.  The guest runs under QEMU's
emulation, so that counts are comparable and times are not.  It needs root, QEMU and
Debian's packages:

    python -m tests.benchmark.guest_topology [--vcpus 20] [--wakeups 100000]
"""

import argparse
import json
import sys
import tempfile

from tests.benchmark.command import positive
from tests.guest import image, machine

# QEMU joins several -smp, and shows guests an L3 cache for each socket.
TOPOLOGIES = {
    "{0} x 1 x 1": ("-smp", "sockets={0},cores=1,threads=1", "-cpu", "max,l3-cache=on"),
    "1 x {0} x 1": ("-smp", "sockets=1,cores={0},threads=1", "-cpu", "max,l3-cache=on"),
}
# {state of the vCPUs: pairs of processes for each vCPU}
LOADS = {"idle": 0.5, "busy": 4}
# Each pair of processes sends a byte to and fro; the parent adds up interrupts.
WAKE = """
import glob, json, os, sys
pairs, wakeups = map(int, sys.argv[1:])
def interrupts():
    found = {}
    for line in open("/proc/interrupts"):
        name, *fields = line.split()
        counts = [int(field) for field in fields if field.isdigit()]
        found[name.rstrip(":")] = sum(counts)
    return found["RES"] + found["CAL"]
def talk(read, write, first):
    for _ in range(wakeups // (2 * pairs)):
        if first:
            os.write(write, b"x")
        os.read(read, 1)
        if not first:
            os.write(write, b"x")
    os._exit(0)
before, children = interrupts(), []
for _ in range(pairs):
    (there, send), (back, answer) = os.pipe(), os.pipe()
    for ends in ((back, send, True), (there, answer, False)):
        child = os.fork()
        if not child:
            talk(*ends)
        children.append(child)
failed = [child for child in children if os.waitpid(child, 0)[1]]
if failed:
    sys.exit(f"{len(failed)} of {len(children)} processes failed")
after = interrupts()
caches = glob.glob("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list")
print(json.dumps({
    "interrupts": after - before,
    "l3": open(caches[0]).read().strip() if caches else None,
    "kernel": os.uname().release,
}))
"""


def measure(directory, topology, options):
    """Yield each load and its figures in the guest, one set a round."""
    vcpus = options.vcpus
    command = [argument.format(vcpus) for argument in TOPOLOGIES[topology]]
    with machine.Guest(directory, vcpus, options=command) as guest:
        guest.write("/wake.py", WAKE)
        for load, pairs in LOADS.items():
            asked = f"python3 /wake.py {round(pairs * vcpus)} {options.wakeups}"
            for _ in range(options.rounds):
                yield load, json.loads(guest.shell(asked))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vcpus", type=positive, default=20)
    parser.add_argument("--wakeups", type=positive, default=100_000)
    parser.add_argument("--rounds", type=positive, default=3)
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    with tempfile.TemporaryDirectory() as directory:
        image.build(directory)
        for number, topology in enumerate(TOPOLOGIES):
            found = list(measure(directory, topology, options))
            if not number:
                kernel = found[0][1]["kernel"]
                write(f"kernel {kernel}, {options.wakeups} wake-ups a round\n")
                write("topology    L3 of 0  load interrupts, round by round\n")
            for load in LOADS:
                counts = " ".join(f"{o['interrupts']:7}" for x, o in found if x == load)
                shape, shared = topology.format(options.vcpus), found[0][1]["l3"]
                write(f"{shape:10}  {shared:7}  {load:4} {counts}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
