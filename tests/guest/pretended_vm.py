# SPDX-License-Identifier: Apache-2.0
"""What a guest that plays the hypervisor runs as a VM; started by hypervisor.py.

Threads, names, memory and vhost's thread are those that QEMU has under libvirt; it
runs no guest.  It writes its threads' numbers to a file once all is there.
"""

import argparse
import ctypes
import fcntl
import json
import mmap
import os
import pathlib
import signal
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NAME = 15
SYS_MBIND, MPOL_BIND = 237, 2
VHOST_SET_OWNER = 0xAF01


def parsed():
    parser = argparse.ArgumentParser(prefix_chars="-")
    parser.add_argument("-name")
    parser.add_argument("-uuid")
    parser.add_argument("-smp", type=int)
    parser.add_argument("-m", type=int)
    parser.add_argument("-node", type=int)
    parser.add_argument("-hugepages", action="store_true")
    parser.add_argument("-ready")
    return parser.parse_args()


def memory(size, node, huge):
    """Return memory of a node, every page of it in use."""
    if huge:
        handle = os.memfd_create("memory-backend-memfd", os.MFD_HUGETLB)
        os.ftruncate(handle, size)
        found = mmap.mmap(handle, size)
    else:
        found = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(found))
    nodes = ctypes.c_ulong(1 << node)
    # The kernel takes one bit less than it is told.
    bound = LIBC.syscall(
        SYS_MBIND,
        ctypes.c_void_p(address),
        ctypes.c_ulong(size),
        MPOL_BIND,
        ctypes.byref(nodes),
        ctypes.c_ulong(64),
        0,
    )
    if bound:
        raise OSError(ctypes.get_errno(), "mbind")
    for page in range(0, size, mmap.PAGESIZE):
        found[page] = 1
    return found


def start(name, threads):
    """Start a thread of a name, which does nothing."""
    ready = threading.Event()

    def live():
        LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
        threads[name] = threading.get_native_id()
        ready.set()
        threading.Event().wait()

    threading.Thread(target=live, daemon=True).start()
    ready.wait()


def main():
    options = parsed()
    size = options.m << 20
    _kept = memory(size, options.node, options.hugepages)
    threads = {}
    for vcpu in range(options.smp):
        start(f"CPU {vcpu}/KVM", threads)
    start("IO iothread1", threads)
    vhost = os.open("/dev/vhost-net", os.O_RDWR)
    fcntl.ioctl(vhost, VHOST_SET_OWNER)
    seen = {"pid": os.getpid(), "threads": threads}
    scratch = pathlib.Path(options.ready + ".part")
    scratch.write_text(json.dumps(seen))
    scratch.rename(options.ready)
    signal.pause()


if __name__ == "__main__":
    main()
