# SPDX-License-Identifier: Apache-2.0
"""Every command that reads a file, run in this process and watched."""

import collections
import contextlib
import dataclasses
import functools
import io
import json
import logging
import pathlib
import random
import shutil

import fixtures

from nova_perfvm.changes.migrations import record
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.hosts import rendering
from nova_perfvm.measure.collect import reading
from nova_perfvm.osc import shell
from nova_perfvm.policy import loader
from tests.fuzz import collected, mutations, samples

# Of one command, on a machine that has other things to do.
_MOST_SECONDS = 120
_LEFT = "what was there before\n"
_MODES = ("dedicated", "dedicated", "dedicated", "shared", "mixed", "elastic")
# Their 1 and 2 are verdicts on what they have read.
_JUDGING = ("audit", "explain")
_CANNOT_TELL = 3


@dataclasses.dataclass(frozen=True)
class Run:
    """What a command did.

    :ivar unforeseen: errors that are no messages to an operator
    """

    arguments: tuple[str, ...]
    status: int
    stdout: str
    stderr: str
    unforeseen: tuple[str, ...]

    @property
    def failed(self):
        """Whether it could not do what it is for."""
        if self.arguments[0] in _JUDGING:
            # A verdict of explain may hold as far as seen alone.
            partly = self.stdout and "as far as seen: " in self.stderr
            return self.status == _CANNOT_TELL and not partly
        return self.status != 0


class _Errors(logging.Handler):
    """Keeps what cliff, or a judging command, caught and nobody had foreseen."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.found = []

    def emit(self, record):
        if not isinstance(record.msg, PerfVMError):
            self.found.append(record.getMessage())


def run(*arguments):
    """Run the console script's function, as a process would call it."""
    root = logging.getLogger()
    level, errors, stderr = root.level, _Errors(), io.StringIO()
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    status = None
    try:
        with (
            fixtures.MonkeyPatch("logging.root.handlers", [errors]),
            # What does not end ends the test, as nothing in a command catches it.
            fixtures.Timeout(_MOST_SECONDS, gentle=True),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            status = shell.main(arguments)
    except SystemExit as exc:
        status = exc.code
    except Exception as exc:  # noqa: BLE001
        errors.found.append(repr(exc))
    root.setLevel(level)
    said = stderr.getvalue()
    if "Traceback" in said:
        errors.found.append(said)
    stdout.flush()
    printed = stdout.buffer.getvalue().decode()
    return Run(arguments, status, printed, said, tuple(errors.found))


class Cases:
    """Odd files of all kinds, each made and judged by a number.

    :param directory: where files may be written
    :param seed: with the kind and the number it decides everything
    :ivar outcomes: how many commands failed, and how many did not; a test in
        which all do has seen little
    """

    def __init__(self, directory, seed):
        """Write the good files that commands need beside the odd one."""
        self._seed = seed
        self.outcomes = collections.Counter()
        self._directory = pathlib.Path(directory)
        self._odd = self._directory / "odd"
        self._good = {}
        for kind in ("policies", "snapshots"):
            self._good[kind] = self._directory / f"good-{kind}"
            text, *_ = self._samples(kind)
            self._good[kind].write_text(text, encoding="utf-8")

    def faults(self, kind, number):
        """Return what went wrong with an odd file, each fault with all of the input."""
        rng = random.Random(f"{self._seed}/{kind}/{number}")
        if kind == "collected":
            data = collected.odd_file(rng)
        else:
            data = mutations.mutate(rng, rng.choice(self._samples(kind)))
        return [
            f"{fault}\n(seed {self._seed!r}, {kind} {number}, input {data!r:.5000})"
            for fault in self._try(kind, data, rng)
        ]

    def good_faults(self, kind):
        """Return what went wrong with the good files of a kind."""
        rng = random.Random(f"{self._seed}/{kind}")
        for text in self._samples(kind) if kind != "collected" else ():
            yield from self._try(kind, text.encode(), rng)

    def _try(self, kind, data, rng):
        self._odd.write_bytes(data)
        if kind in _READERS:
            yield from self._read(*_READERS[kind])
            return
        for arguments in getattr(self, f"_with_{kind}")(rng):
            yield from self._judge(run(*map(str, arguments)), kind)

    def _read(self, read, written):
        """Give the file to what reads it before a command does anything else."""
        try:
            found = read(str(self._odd))
        except PerfVMError as exc:
            self.outcomes[True] += 1
            if str(self._odd) not in str(exc):
                yield f"it says only {exc}"
        except Exception as exc:  # noqa: BLE001
            yield repr(exc)
        else:
            self.outcomes[False] += 1
            if written(found) != found:
                yield "it is written as something else"

    @staticmethod
    @functools.cache
    def _samples(kind):
        return getattr(samples, kind)()

    def _with_policies(self, rng):
        named, seen = ("--policy", self._odd), ("--snapshot", self._good["snapshots"])
        yield ("policy", "check", self._odd)
        yield ("policy", "show", *named, "-f", rng.choice(("yaml", "json")))
        yield rng.choice(
            (
                ("policy", "diff", self._odd, self._good["policies"], "-f", "json"),
                ("flavor", "generate", *named, "-f", rng.choice(_FORMATS)),
                ("image", "generate", *named, "-f", rng.choice(_FORMATS)),
                ("tempest", "config", *named),
                ("audit", *seen, *named),
                ("capacity", "show", *seen, *named),
            )
        )
        yield self._host_config(rng, "--topology", "2x20x2", *named)

    def _with_inventories(self, rng):
        seen = ("--snapshot", self._good["snapshots"], "--inventory", self._odd)
        yield ("capacity", "show", *seen, "-f", "json")
        yield ("explain", "--flavor", samples.FLAVOR, *seen, *rng.choice(_LONG))
        yield (rng.choice(("map", "metrics")), *seen)

    def _with_snapshots(self, rng):
        seen = ("--snapshot", self._odd)
        yield ("audit", *seen, "-f", rng.choice(_REPORTS))
        for command in (
            ("audit", "-f", "prometheus"),
            (rng.choice(("map", "metrics")),),
        ):
            report = self._directory / "report"
            report.write_text(_LEFT)
            yield (*command, *seen, "--output", report)
        what = rng.choice((("--flavor", samples.FLAVOR), ("--server", "i-d")))
        yield ("explain", *what, *seen, *rng.choice(_LONG))
        yield rng.choice(
            (
                ("capacity", "show", *seen, "--by", rng.choice(("host", "cloud"))),
                ("policy", "diff", *(self._good["policies"],) * 2, *seen),
            )
        )

    def _with_options(self, rng):
        seen = ("--snapshot", self._good["snapshots"])
        yield ("audit", *seen, "--placement-conf", self._odd)
        explain = ("explain", "--flavor", samples.FLAVOR)
        look = rng.choice((explain, ("capacity", "show")))
        yield (*look, *seen, "--nova-conf", self._odd)

    def _with_topologies(self, rng):
        good = ("host", "config", "--mode", "dedicated")
        yield (*good, "--topology", self._odd, "-f", "json")
        yield self._host_config(rng, "--topology", self._odd)

    def _host_config(self, rng, *arguments):
        """Configure a host into an empty directory, or over what was there."""
        output = self._directory / "output"
        shutil.rmtree(output, ignore_errors=True)
        more = rng.choice(((), ("--force",)))
        for name in rendering.FILES if more else ():
            output.mkdir(exist_ok=True)
            (output / name).write_text(_LEFT)
        wish = ("host", "config", "--mode", rng.choice(_MODES), *arguments)
        return (*wish, "--output-dir", output, *more)

    def _judge(self, done, kind):
        self.outcomes[done.failed] += 1
        told = f"{' '.join(done.arguments)}: status {done.status}"
        for error in done.unforeseen:
            yield f"{told}: {error}"
        if done.status not in {0, 1, 2, _CANNOT_TELL}:
            yield f"{told}, {done.stderr}"
        if done.failed and done.stdout:
            yield f"{told}, and yet it printed {done.stdout}"
        if done.failed and not self._names_what_is_wrong(done, kind):
            yield f"{told}, and it says only {done.stderr}"
        if not done.failed and done.arguments[-2:] == ("-f", "json"):
            json.loads(done.stdout)
        if kind == "policies" and done.arguments[:2] == ("policy", "show"):
            yield from self._judge_shown(done)
        if "--output-dir" in done.arguments:
            yield from self._judge_directory(done, told)
        if "--output" in done.arguments:
            written = pathlib.Path(done.arguments[-1]).read_text(encoding="utf-8")
            if (written == _LEFT) != done.failed:
                yield f"{told}, and the report is {written!r:.200}"

    def _names_what_is_wrong(self, done, kind):
        """Whether the file is named, where nothing but it can be wrong."""
        only = kind in {"inventories", "options"} or done.arguments[0] == "audit"
        if only or done.arguments[:2] in {("policy", "check"), ("policy", "show")}:
            return str(self._odd) in done.stderr
        return bool(done.stderr.strip())

    def _judge_shown(self, done):
        """What is shown is a policy that means the same."""
        if done.failed or done.arguments[-1] != "yaml":
            return
        if loader.parse(done.stdout).digest != loader.load(self._odd).digest:
            yield f"policy show is another policy: {done.stdout}"

    def _judge_directory(self, done, told):
        output = self._directory / "output"
        found = {p.name: p.read_text(encoding="utf-8") for p in output.glob("*")}
        left = dict.fromkeys(rendering.FILES, _LEFT) if "--force" in told else {}
        if done.failed:
            if found != left:
                yield f"{told}, and it left {found}"
        elif _LEFT in found.values() or not found:
            yield f"{told}, and it wrote {found}"
        elif set(done.stdout.split("\n")) - {""} != {str(output / n) for n in found}:
            yield f"{told}, it says {done.stdout}, and it wrote {sorted(found)}"


_FORMATS = ("shell", "properties", "json", "yaml", "ansible")
_REPORTS = ("table", "json", "yaml", "csv", "value", "html", "prometheus")
_LONG = ((), ("--long",), ("--long", "-f", "json"), ("--host", "hp1"))
# Of kinds that are read in this process: what reads a path, and what writes what was
# read and reads it again.
_READERS = {
    "records": (record.read, lambda found: record.loads(record.dumps(found))),
    "collected": (reading.read, lambda found: found),
}
KINDS = ("policies", "inventories", "snapshots", "topologies", "options", *_READERS)
