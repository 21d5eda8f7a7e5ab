# SPDX-License-Identifier: Apache-2.0
"""Edits of a faultless case: files, libvirt's XML, steps and figures."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

from nova_perfvm.measure.samples import Measurement
from tests.unit.measure import hosts
from tests.unit.measure.prove import sound

HOSTS = ("node0", "node1")
VMS = ("vm1", "vm2")
RECEIVED = "network.received.bits_per_second"
# {metric: (unit, better, value of the host)} of fio's jobs.
DISK = {
    f"disk.{job}.{way}_{figure}": (unit, better, value)
    for job, ways in (
        ("mixed", ("read", "write")),
        ("read", ("read",)),
        ("write", ("write",)),
    )
    for way in ways
    for figure, unit, better, value in (
        ("iops", "1/s", "higher", 40000.0),
        ("latency_p99_ms", "ms", "lower", 2.0),
        ("latency_p99_9_ms", "ms", "lower", 4.0),
    )
}


def changed(old, new, most=-1):
    """Return an edit of a text that has to have the old words."""

    def edit(text):
        if old not in text:
            message = f"{old!r} is not in {text[:200]!r}"
            raise AssertionError(message)
        return text.replace(old, new, most)

    return edit


def together(*edits):
    """Return several edits as one."""

    def edit(case):
        for one in edits:
            one(case)

    return edit


def _as_it_is(text):
    return text or None


def _edited(text, value):
    return value(text) if callable(value) else value


def _put(collected, pattern, value, look):
    """Return it with files edited at the looks: first, second or both."""
    paths = list(collected.matching(pattern)) if "*" in pattern else [pattern]
    if not paths:
        message = f"no file is {pattern}"
        raise AssertionError(message)
    parts = {"files": dict(collected.files), "later": dict(collected.later)}
    for path in paths:
        for part, files in parts.items():
            there = path in files or (part == "files" and not callable(value))
            if not there or look not in (part, "both"):
                continue
            found = _edited(files.get(path, ""), value)
            files.pop(path, None)
            if found is not None:
                files[path] = found
    unread = dict(collected.unread)
    if value is None and "*" not in pattern:
        # As the collector says of a file that it knows the name of.
        unread[pattern] = "no such file or directory"
    return replace(collected, **parts, unread=unread)


def _before(case, who, after, pattern, value):
    """Edit what bench run collected on a target before it measured."""
    files = case.run["sessions"][0]["targets"][who]["collected"]["files"]
    paths = list(after.matching(pattern)) if "*" in pattern else [pattern]
    for path in paths:
        old = files.get(path, after.files.get(path, ""))
        found = _edited(old, value)
        files.pop(path, None)
        if found is not None:
            files[path] = found


def on_host(files, *, before=True, after=True, look="both"):
    """Return an edit of files of the host: {path or pattern: text or edit}.

    :param look: at which of those after the run: files, later or both
    """

    def edit(case):
        for pattern, value in files.items():
            for who in HOSTS:
                _before(case, who, case.host, pattern, value if before else _as_it_is)
            if after:
                case.host = _put(case.host, pattern, value, look)

    return edit


def in_guests(files, *, vms=(1, 2), before=True, after=True, look="both"):
    """Return an edit of files of VMs; as :func:`on_host`."""

    def edit(case):
        for number in vms:
            for pattern, value in files.items():
                one = case.guests[number - 1]
                old = value if before else _as_it_is
                _before(case, f"vm{number}", one, pattern, old)
                if after:
                    case.guests[number - 1] = _put(one, pattern, value, look)

    return edit


def guest_commands(outputs, *, vms=(1, 2)):
    """Return an edit of what commands print in VMs: {line: edit or text}."""

    def edit(case):
        for number in vms:
            one = case.guests[number - 1]
            case.guests[number - 1] = _with_commands(one, outputs)

    return edit


def host_commands(outputs):
    """Return an edit of what commands print on the host: {line: edit or text}."""

    def edit(case):
        case.host = _with_commands(case.host, outputs)

    return edit


def _with_commands(collected, outputs):
    commands = dict(collected.commands)
    for line, value in outputs.items():
        old = commands.get(line)
        text = _edited(old.stdout if old else "", value)
        commands[line] = hosts.CommandOutput(0, text)
    return replace(collected, commands=commands)


def links(found, *, vms=()):
    """Return an edit of links of the host, or of VMs."""

    def edit(case):
        if not vms:
            case.host = replace(case.host, links={**case.host.links, **found})
        for number in vms:
            one = case.guests[number - 1]
            case.guests[number - 1] = replace(one, links={**one.links, **found})

    return edit


def in_xml(*changes, vms=(1, 2)):
    """Return an edit of domains: pairs of old and new text, with {n} the number."""

    def edit(case):
        for number in vms:
            filled = [
                tuple(text.replace("{n}", str(number)) for text in pair)
                for pair in changes
            ]
            case.host = hosts.edited(case.host, number, *filled)

    return edit


def scope(number):
    """Return the directory of a VM's cgroups."""
    return f"{hosts.CGROUP}/machine.slice/machine-qemu\\x2d{number}.scope/libvirt"


def pid(number):
    """Return the process of a VM."""
    return hosts.FIRST_PID + 100 * number


def task(number, thread):
    """Return the directory of a VM's thread: vCPU, or qemu, iothread, vhost."""
    names = {"qemu": 0, "iothread": 1, "vhost": 2}
    tid = pid(number) + names.get(thread, 0)
    if isinstance(thread, int):
        tid = pid(number) + 10 + thread
    return f"/proc/{pid(number)}/task/{tid}"


def figures(change, *, metric="", who=VMS):
    """Return an edit of measurements: change(measurement) is it, or None."""

    def edit(case):
        found, hit = [], 0
        for one in case.measured:
            if one.who in who and one.metric.startswith(metric):
                hit += 1
                found += [new] if (new := change(one)) else []
            else:
                found.append(one)
        if not hit:
            message = f"no figure is of {metric}"
            raise AssertionError(message)
        case.measured = found

    return edit


def times(factor):
    """Return an edit of values: a factor, or factor(measurement)."""

    def change(one):
        by = factor(one) if callable(factor) else factor
        # What is better is so for latencies, too.
        return replace(
            one, value=one.value * (by if one.better == "higher" else 1 / by)
        )

    return change


def attribute(**values):
    """Return an edit of measurements' attributes, or of their machine's."""

    def change(one):
        of_machine = {k: v for k, v in values.items() if hasattr(one.machine, k)}
        rest = {k: v for k, v in values.items() if k not in of_machine}
        return replace(one, machine=replace(one.machine, **of_machine), **rest)

    return change


def steps(change, *, having=""):
    """Return an edit of steps: change(step, number) is a list of steps, or None."""

    def edit(case):
        found, hit = [], 0
        for number, one in enumerate(case.run["steps"]):
            if having in one["key"]:
                hit += 1
                new = change(one, number)
                found += [one] if new is None else new
            else:
                found.append(one)
        if not hit:
            message = f"no step is of {having}"
            raise AssertionError(message)
        case.run["steps"] = found

    return edit


def noted(*, having="", **values):
    """Return an edit of what is noted of steps."""
    return steps(lambda one, _: one.update(values), having=having)


def later_by(seconds):
    """Return an edit of when a step has begun: seconds, or seconds(number)."""

    def change(one, number):
        by = seconds(number) if callable(seconds) else seconds
        at = datetime.fromisoformat(one["started_at"]) + timedelta(seconds=by)
        one["started_at"] = at.isoformat()

    return change


def scenario(*keys, value):
    """Return an edit of a key of the scenario that the record has."""

    def edit(case):
        place = case.run["scenario"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return edit


def generator(**changes):
    """Return an edit that adds what was seen of the generator: a machine of its own."""

    def edit(case):
        seen = {
            "hostname": "generator",
            "clock": {"offset_s": 0.2, "uncertainty_s": 0.001},
            "last_level_cache_bytes": 32 * 2**20,
            "collected": {
                "files": {
                    sound.BOOT: "9e9e9e9e-0000-4000-8000-000000000000\n",
                    sound.UUID: "4c4c4544-0044-5910-8054-b4c04f335932\n",
                    **changes.get("files", {}),
                }
            },
        }
        rest = {k: v for k, v in changes.items() if k != "files"}
        for session in case.run["sessions"]:
            session["targets"]["generator"] = seen | rest

    return edit


def class_with(**keys):
    """Return an edit of the class: of the policy that was declared."""

    def edit(case):
        case.policy = sound.policy_document(**keys)

    return edit


def run_again(case, built, *, apart_s=13.0, took_s=12.2):
    """Write steps of a scenario, one after the other, and as many rounds of figures.

    The last step ends before the files are collected.
    """
    of_steps = list(built.steps(sound.SEED))
    last = datetime.fromisoformat(case.host.taken_at) - timedelta(minutes=2)
    at = last - timedelta(seconds=apart_s * len(of_steps))
    case.run["scenario"] = built.as_document()
    case.run["sessions"][0]["started_at"] = (at - timedelta(minutes=1)).isoformat()
    case.run["steps"] = [
        sound.noted(step, at + timedelta(seconds=apart_s * number), took_s)
        for number, step in enumerate(of_steps)
    ]
    draw = random.Random(5)
    known = {(m.who, m.metric, m.threads): m for m in case.measured}
    for number in range(sound.ROUNDS + 1, built.repeats + 1):
        case.measured += [
            replace(m, round=number, value=m.value * draw.lognormvariate(0, 0.02))
            for m in known.values()
        ]


def add_metric(case, name, shape, ratios=(0.93, 0.93), seed=6, rounds=sound.ROUNDS):
    """Add figures of a metric: (tool, version, unit, better, threads, host's value).

    :param ratios: of each VM to the host
    """
    tool, version, unit, better, threads, value = shape
    draw = random.Random(seed)
    of = dict.fromkeys(HOSTS, 1.0) | dict(zip(VMS, ratios, strict=True))
    case.measured += [
        Measurement(
            who=who,
            machine=sound.MACHINES[who],
            tool=tool,
            tool_version=version,
            metric=name,
            unit=unit,
            better=better,
            threads=threads,
            round=number,
            at_once=2,
            value=value
            * (ratio if better == "higher" else 1 / ratio)
            * draw.lognormvariate(0, 0.02),
        )
        for number in range(1, rounds + 1)
        for who, ratio in of.items()
    ]


def received(ratios=(0.92, 0.92)):
    """Return an edit that adds what iperf3 measured towards host and VMs."""
    shape = ("iperf3", sound.VERSIONS["iperf3"], "bit/s", "higher", 20, 1e10)
    return lambda case: add_metric(case, RECEIVED, shape, ratios)


def _note_media(case, *, in_memory):
    """Note what bench run saw of the directory: a volume of each VM, or a tmpfs."""
    seen = {"filesystem": "tmpfs" if in_memory else "ext4", "direct": not in_memory}
    for who, look in case.run["sessions"][0]["targets"].items():
        volume = "" if in_memory or who in HOSTS else "0a1b2c3d-4e5f-6789-a"
        look["medium"] = {**seen, "network": who in HOSTS, "volume": volume}


def with_disk(directory="/srv/volume", ratios=(0.93, 0.93), **disk):
    """Return an edit that measures a disk, too, in an hour.

    :param disk: keys of the class's disk
    """

    def edit(case):
        if disk:
            of_class = replace(sound.rules.HP.disk, **disk)
            case.policy = sound.policy_document(disk=of_class)
        built = sound.scenario(case.policy, directory)
        run_again(case, built, apart_s=8.9, took_s=8.2)
        _note_media(case, in_memory=directory.startswith(("/dev/shm", "/run/")))
        for seed, (name, (unit, better, value)) in enumerate(DISK.items(), 10):
            shape = ("fio", "3.33", unit, better, 4, value)
            add_metric(case, name, shape, ratios, seed=seed)

    return edit
