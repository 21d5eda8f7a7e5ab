# SPDX-License-Identifier: Apache-2.0
"""What a collector could have written, small."""

from nova_perfvm.measure.collect import collector


def document(**changes):
    """Return what a collector could have written."""
    return {
        "schema_version": collector.SCHEMA_VERSION,
        "kind": "guest",
        "hostname": "vm1",
        "taken_at": "2026-11-22T10:00:00+00:00",
        "interval_s": 5.001,
        "files": {"/proc/stat": "cpu 1\n", "/proc/cmdline": "quiet\n"},
        "later": {"/proc/stat": "cpu 2\n"},
        "links": {"/sys/class/net/eth0": "../../devices/virtio0/net/eth0"},
        "commands": {
            "ethtool -l eth0": {
                "exit_code": 0,
                "stdout": "Combined:\t20\n",
                "stderr": "",
            }
        },
        "unread": {"/proc/7/numa_maps": "permission denied", "virsh": "no"},
    } | changes
