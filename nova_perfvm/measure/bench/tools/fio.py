# SPDX-License-Identifier: Apache-2.0
"""fio: I/O operations of a disk; by default LY's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal

from nova_perfvm.documents.keys import NAME as KEY
from nova_perfvm.documents.keys import Form, count, matching, some
from nova_perfvm.measure.bench.tools import tool

NAME: Final = "fio"

_OPTIONS: Final = "job options"
# Options in which rounds may differ.
_OF_ONE_RUN: Final = frozenset(("directory", "filename", "name", "numjobs", "runtime"))
_ONE_SECTION: Final = (
    "run each section by itself (--section=NAME), clones of one with --group_reporting"
)
_TAILS: Final = {"p99": "99.000000", "p99_9": "99.900000"}
# LY's.
_LINE: Final = """
fio --name=test --directory=. --size={0.size} --direct=1 --bs={0.block_size}
--ioengine=libaio --iodepth={0.iodepth} --thread --numjobs={0.numjobs}
--runtime={0.seconds} --rw={1.rw} --rwmixread={1.rwmixread} --group_reporting
--time_based=1 --output-format=json+
"""
_IN_DIRECTORY: Final = 'mkdir -p -- "$1" && cd -- "$1" && shift && exec "$@"'
# What fio calls the file of a thread begins with the name of the job.
_REMOVE: Final = """\
status=0
for directory; do
  [ -d "$directory" ] || continue
  rm -f -- "$directory"/test.*.* && rmdir -- "$directory" || status=1
done
exit $status
"""
# Of the targets of proofs.
_REMOVE_ALL: Final = f'set -- "$1"/perfvm-host[0-9]* "$1"/perfvm-vm[0-9]*\n{_REMOVE}'

Size = Annotated[
    str,
    matching("[1-9][0-9]{0,9}[kmgtKMGT]?", "a size as fio takes it, such as 20g"),
]


Directory = Annotated[str, matching("/.*", "the path of a directory, from the root")]


@dataclass(frozen=True, slots=True)
class Job:
    """One mixture of reads and writes.

    :ivar rw: fio's name of the pattern
    :ivar rwmixread: percentage of reads, where the pattern is mixed
    """

    name: Annotated[
        str,
        matching(
            "[a-z][a-z0-9_]{0,31}",
            "a name of lower-case letters, digits and _, at most 32 long",
        ),
    ] = field(metadata=KEY)
    rw: Literal["read", "write", "rw", "randread", "randwrite", "randrw"] = "randrw"
    rwmixread: Annotated[int, count(0, 100, "per cent")] = 50


# LY: 75/25, 100 % read, 100 % write.
LY_JOBS: Final = (
    Job("mixed", "randrw", 75),
    Job("read", "randrw", 100),
    Job("write", "randrw", 0),
)


@dataclass(frozen=True, slots=True)
class Fio:
    """``fio`` with files of its own for each target, beside the page cache.

    :ivar directory: directory on the disk to measure, for targets that name none; fio
        writes its files below
    :ivar size: size of the file of each of the ``numjobs`` threads
    :ivar seconds: duration of each job; the default is LY's
    """

    directory: Directory | None = None
    size: Size = "20g"
    seconds: tool.Seconds = 300
    jobs: Annotated[
        tuple[Job, ...], Form.BY_NAME, some("a mapping of names to jobs")
    ] = LY_JOBS
    block_size: Size = "4k"
    iodepth: Annotated[int, count(1, 65536, "I/Os at once of each thread")] = 32
    numjobs: Annotated[int, count(1, 1024, "threads")] = 4

    program: ClassVar[str] = NAME

    def runs(self, place: tool.Place) -> Iterator[tool.Run]:
        """Yield the runs, one for each job."""
        for job in self.jobs:
            yield tool.Run(
                *(NAME, f"fio {job.name}", self.numjobs, self.seconds),
                self._in_directory(place, job),
                partial(parse, job.name),
            )

    def preparation(self, place: tool.Place) -> tuple[str, ...]:
        """Return the command that writes the files, which is not measured."""
        return (*self._in_directory(place, self.jobs[0]), "--create_only=1")

    def removal(self, place: tool.Place) -> tuple[str, ...]:
        """Return the command that removes the files, if they are there."""
        return tool.shell(_REMOVE, self._path(place))

    def _path(self, place: tool.Place) -> str:
        directory = place.directory or self.directory or ""
        return f"{directory.rstrip('/')}/perfvm-{place.who}"

    def _in_directory(self, place: tool.Place, job: Job) -> tuple[str, ...]:
        return tool.shell(
            _IN_DIRECTORY, self._path(place), *tool.words(_LINE, self, job)
        )


def removal_of_all(directory: str) -> tuple[str, ...]:
    """Return the command that removes all files of proofs below a directory."""
    return tool.shell(_REMOVE_ALL, directory.rstrip("/"))


@tool.output_of(NAME)
def parse(job: str, text: str) -> dict[str, float]:
    """Return {metric: value} of the job in fio's JSON; none for a way without I/O.

    :param job: name of the job in metrics; empty for the name in the JSON
    :raises OutputError: when the text is no output of fio, or has several jobs, a
        failed one, or one without I/O
    """
    done = job_of(text)
    job = job or done["jobname"]
    found: dict[str, float] = {}
    for way in ("read", "write"):
        if done[way]["total_ios"]:
            name = f"disk.{job}.{way}"
            found |= figures(f"{name}_iops", f"{name}_latency", done[way])
    if not found:
        raise tool.OutputError("fio: the job did no I/O")
    return found


def job_of(text: str) -> Any:
    """Return the only job in fio's JSON.

    :raises OutputError: when the text has several jobs, or the job failed
    """
    jobs = jobs_of(text)
    if len(jobs) > 1:
        names = ", ".join(job["jobname"] for job in jobs)
        raise tool.OutputError(f"fio: expected one job, found {names}: {_ONE_SECTION}")
    return jobs[0]


@tool.output_of(NAME)
def jobs_of(text: str) -> list[Any]:
    """Return the jobs in fio's JSON, which ran at once, each with all its options.

    :raises OutputError: when the jobs may have run one by one, or a job failed
    """
    found = tool.documents_of(NAME, text, "--output-format=json+")
    if len(found) > 1:
        reason = "several JSON documents: keep one, of --status-interval the last"
        raise tool.OutputError(f"fio: {reason}")
    if not (jobs := found[0].get("jobs")):
        raise tool.OutputError("fio: its JSON has no jobs: run it without --client")
    for job in jobs:
        if error := job.get("error"):
            raise tool.OutputError(f"fio: the job ended with error {error}")
    # Each stonewall begins a group.
    if len({job.get("groupid") for job in jobs}) > 1:
        reason = "jobs with stonewall or new_group need not have run at once"
        raise tool.OutputError(f"fio: {reason}: {_ONE_SECTION}")
    common = found[0].get("global options", {})
    return [job | {_OPTIONS: common | job.get(_OPTIONS, {})} for job in jobs]


@tool.output_of(NAME)
def conditions(text: str) -> dict[str, Any]:
    """Return ``threads``, None if not told, and the job's options that rounds share."""
    options = job_of(text)[_OPTIONS]
    threads = int(options.get("numjobs", 1)) if options else None
    other = {key: options[key] for key in options.keys() - _OF_ONE_RUN}
    return {"threads": threads} | dict(sorted(other.items()))


def figures(rate: str, latency: str, done: Any) -> dict[str, float]:
    """Return {metric: value}: operations per second, and known percentiles in ms.

    :param rate: metric of the operations per second
    :param latency: prefix of the percentiles' metrics
    :param done: ``read`` or ``write`` of fio's JSON, with its histogram
    """
    # --clat_percentiles=0 prints none, --percentile_list others.
    ns = done["clat_ns"].get("percentile", {})
    tails = {label: ns[key] for label, key in _TAILS.items() if key in ns}
    return {rate: float(done["iops"])} | {
        f"{latency}_{label}_ms": value / 1e6 for label, value in tails.items()
    }
