# SPDX-License-Identifier: Apache-2.0
"""The tables of the source documents as measurements."""

from dataclasses import replace

from nova_perfvm.measure.samples import (
    Load,
    Machine,
    Measurement,
    Moment,
    Samples,
    ScaleOut,
)

HOST = Machine("host")
GUEST = Machine("guest")


def measurement(who, metric, threads, value, better="higher", **given):
    known = {"unit": "1/s", "tool": "sysbench", "tool_version": "1.0.20"}
    machine = HOST if who.startswith("host") else GUEST
    return Measurement(
        **{
            "who": who,
            "machine": machine,
            "metric": metric,
            "better": better,
            "threads": threads,
            "value": value,
        }
        | known
        | given
    )


def repeated(measurements, factors):
    """Return them once for each round, times a factor of the VM's value."""
    return [
        replace(m, round=n, value=m.value * (factor if m.machine == GUEST else 1))
        for m in measurements
        for n, factor in enumerate(factors, 1)
    ]


# LY, the hypervisor against one VM: {metric: (host, VM, better)}.
LY_ALONE = {
    "cpu.events_per_second": (29062.92, 28395.51, "higher"),
    "cpu.latency_max_ms": (0.66, 13.38, "lower"),
    "memory.write_mib_per_second": (6183.53, 5249.48, "higher"),
    "disk.read_75_25_iops": (18000, 17500, "higher"),
    "disk.write_75_25_iops": (6000, 5000, "higher"),
    "disk.read_iops": (284000, 231000, "higher"),
    "disk.write_iops": (8000, 8600, "higher"),
}


def ly_alone():
    return [
        measurement(
            who,
            metric,
            12,
            value,
            better,
            tool_version={"host": "1.0.17", "vm": "1.0.20"}[who],
        )
        for metric, (host, vm, better) in LY_ALONE.items()
        for who, value in (("host", host), ("vm", vm))
    ]


THREADS = (1, 4, 8, 16)
# LY, two VMs at once: {metric: {who: by threads}}.
LY_TWO = {
    "cpu.events_per_second": {
        "host": (920.62, 3678.61, 7357.41, 14485.46),
        "vm1": (916.18, 3663.93, 7313.37, 13096.31),
        "vm2": (916.53, 3665.51, 7324.95, 13094.76),
    },
    "memory.read_mib_per_second": {
        "host": (1500.35, 5160.60, 9498.14, 17527.66),
        "vm1": (1447.44, 5522.02, 10926.20, 13752.94),
        "vm2": (1449.13, 5489.58, 10963.66, 14386.05),
    },
    "memory.write_mib_per_second": {
        "host": (1454.69, 262.26, 372.09, 485.41),
        "vm1": (1413.53, 459.22, 574.22, 772.64),
        "vm2": (1414.71, 468.14, 556.28, 776.93),
    },
    "network.gbit_per_second": {
        "host": (7.78, 23.0, 23.5, 23.5),
        "vm1": (2.67, 11.0, 12.3, 10.4),
        "vm2": (2.59, 8.75, 7.52, 12.6),
    },
}


def ly_two():
    return [
        measurement(who, metric, threads, value)
        for metric, table in LY_TWO.items()
        for who, values in table.items()
        for threads, value in zip(THREADS, values, strict=True)
    ]


def rps():
    """Return RPS's service; the course of its run is drawn from peak and decay."""
    falling = [740_000] * 3 + [650_000, 520_000, 430_000] + [370_000] * 16
    return ScaleOut(
        "api",
        (
            Load(1, 1000),
            Load(2, 2000),
            Load(
                10,
                8_112_150 / 1315,
                generator_cpu_percent=90,
                timeline=tuple(
                    Moment(60.0 * at, per_minute / 60)
                    for at, per_minute in enumerate(falling)
                ),
            ),
        ),
    )


def samples():
    return Samples(tuple(ly_two()), (rps(),))
