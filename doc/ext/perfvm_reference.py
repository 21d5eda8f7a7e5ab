# SPDX-License-Identifier: Apache-2.0
"""Directives that list what the code declares: codes, names, checks.

Each makes a table of what it imports, so that a page cannot name what is not there,
or leave out what is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Final

from cliff.sphinxext import AutoprogramCliffDirective
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from nova_perfvm import constants as const
from nova_perfvm.api import extra_specs
from nova_perfvm.diagnose.audit import CHECKS, Selection
from nova_perfvm.measure.checks import guest as guest_checks
from nova_perfvm.measure.checks import host as host_checks
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.prove import promise
from nova_perfvm.osc import commands
from nova_perfvm.rules import host, request
from nova_perfvm.rules.rule import Refusal

Row = tuple[str, ...]
_COMMANDS: Final = {
    Selection.AUDIT: "audit",
    Selection.PREFLIGHT: "preflight",
    Selection.POLICY: "policy check",
}


def literal(text: str) -> str:
    """Return a word in the font of code; nothing for nothing."""
    return f"``{text}``" if text else ""


class TableDirective(SphinxDirective):
    """A table of what the code declares."""

    header: Row
    widths: tuple[int, ...]

    def rows(self) -> Iterable[Row]:
        """Yield the cells of each row, as reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            f"   :widths: {' '.join(map(str, self.widths))}",
            "",
        ]
        for row in (self.header, *self.rows()):
            first, *others = row
            lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
        return self.parse_text_to_nodes(StringList(lines, source="perfvm-reference"))


class RulesDirective(TableDirective):
    """All reasons of the rules, in the order in which the rules are asked."""

    header = ("code", "refused unless", "audit", "judged")
    widths = (28, 40, 22, 30)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each reason of each rule."""
        for module, refusal in _refusals():
            yield (
                literal(refusal.code),
                (module.__doc__ or "").splitlines()[0],
                literal(refusal.audit),
                _subject(module.RULE),
            )


class ReasonsDirective(TableDirective):
    """What the same reasons mean, and what to do about them."""

    header = ("code", "meaning", "remedy")
    widths = (25, 40, 35)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each reason of each rule."""
        for _, refusal in _refusals():
            yield literal(refusal.code), refusal.meaning, refusal.advice


def _refusals() -> Iterator[tuple[ModuleType, Refusal]]:
    """Yield each reason with the first module whose rule refuses for it."""
    seen = set()
    for package in (request, host):
        modules = [
            importlib.import_module(info.name)
            for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        ]
        for module in sorted(modules, key=lambda m: m.RULE.order):
            for refusal in module.RULE.refusals:
                if refusal not in seen:
                    seen.add(refusal)
                    yield module, refusal


def _subject(rule: Any) -> str:
    """Return what a rule is about, in words."""
    if not hasattr(rule, "hosts"):
        return "flavors that name a class" if rule.claimed else "every request"
    vms = ", ".join(rule.vms)
    states = ", ".join(rule.hosts)
    return f"{vms} VMs on hosts that are {states}"


class AuditChecksDirective(TableDirective):
    """All checks in their order, and the commands that run each."""

    header = ("check", "run by", "module")
    widths = (40, 30, 30)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each check."""
        for check in CHECKS:
            commands = (literal(_COMMANDS[one]) for one in check.selections)
            module = check.find.__module__.removeprefix("nova_perfvm.")
            need = f"; needs {literal(check.need.words)}" if check.need else ""
            yield check.title, ", ".join(commands) + need, literal(module)


class ValidatorsDirective(TableDirective):
    """The validators of extra specs that nova-api gets, with the built-in policy."""

    header = ("extra spec", "values", "what it is for")
    widths = (20, 40, 40)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each validator."""
        for validator in extra_specs.validators(None):
            value = validator.value
            allowed = ", ".join(map(literal, value["enum"]))
            yield (
                literal(validator.name),
                f"{value['description']} Of the built-in policy: {allowed}.",
                validator.description,
            )


class NamesDirective(TableDirective):
    """Extra specs, metadata, resource classes and traits of the project."""

    header = ("name", "what it is")
    widths = (45, 55)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each name."""
        return iter(
            (
                (literal(const.CLASS_KEY), "extra spec and aggregate metadata"),
                (literal(const.CREATED_BY_KEY), "aggregate metadata"),
                (literal(const.IMAGE_RECORD), "image property"),
                (
                    literal(const.RC_SLOT),
                    "resource class; with several pinned classes, and a class's name",
                ),
                (literal(const.RC_UNIT), "resource class"),
                (literal(const.RC_CELL_CPU), "resource class"),
                (literal(const.RC_CELL_MEMORY), "resource class"),
                (literal(const.RC_READ_IOPS), "resource class"),
                (literal(const.RC_WRITE_IOPS), "resource class"),
                (literal(const.TRAIT_HIGH_PERFORMANCE), "trait"),
                (
                    literal(f"{const.TRAIT_ELASTIC}_<m>"),
                    "trait; m: children of a host",
                ),
                (literal(f"{const.TRAIT_CHILD}<letter>"), "trait"),
                (literal(const.TRAIT_CELLS), "trait"),
            )
        )


# {name of a predicate of classes: the classes that it is true for}.
_NEEDED: Final = {
    "_always": "always",
    "_never": "never",
    "_pinned": "pinned classes",
    "_cores": "pinned classes with ``smt: cores``",
    "_huge": "classes with huge pages",
    "iops": "with IOPS",
    "_queues": "classes with ``vif_multiqueue``",
}


class EvidenceDirective(TableDirective):
    """The checks that a proof rests on, for which classes, and why."""

    header = ("check", "needed", "why")
    widths = (30, 25, 45)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each check."""
        for code, evidence in promise.EVIDENCE.items():
            yield literal(code), _NEEDED[evidence.needed.__name__], evidence.why


class EndpointsDirective(TableDirective):
    """The figures that a proof rests on, for which classes, and why."""

    header = ("endpoint", "metrics", "threads", "needed", "why")
    widths = (15, 25, 10, 15, 35)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each endpoint."""
        for one in promise.ENDPOINTS:
            threads = "as vCPUs" if one.each_vcpu else "any"
            metrics = literal(one.metrics.replace("\\", ""))
            yield one.name, metrics, threads, _NEEDED[one.needed.__name__], one.why


class ChecksDirective(SphinxDirective):
    """Each check of a host or a guest: its condition, and what the page adds.

    The content of the directive is a definition list of codes, in any part.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a definition list of all checks, in their order."""
        packages = {"host": host_checks, "guest": guest_checks}
        details = definitions(self.content)
        lines = []
        for check in checks_of(packages[self.arguments[0]]):
            condition = f"{check.title}. {details.pop(check.code, '')}"
            lines += [literal(check.code), f"   {condition.strip()}"]
        if details:
            raise self.error(f"no such checks: {', '.join(details)}")
        return self.parse_text_to_nodes(StringList(lines, source="perfvm-reference"))


def definitions(lines: Iterable[str]) -> dict[str, str]:
    """Return {term: definition on one line} of a definition list of literals."""
    found: dict[str, str] = {}
    term = ""
    for line in lines:
        if line.startswith("``"):
            term = line.strip("`")
        elif line:
            found[term] = f"{found.get(term, '')} {line.strip()}".strip()
    return found


class CommandsDirective(AutoprogramCliffDirective):
    """The commands of nova-perfvm, of which no entry points tell cliff."""

    required_arguments = 0

    def _load_app(self) -> None:
        """Document the commands, not the application's options."""

    def _load_commands(self) -> dict[str, Any]:
        return {name: entry.load() for name, entry in commands.offline()}


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx the directives."""
    app.add_directive("perfvm-rules", RulesDirective)
    app.add_directive("perfvm-reasons", ReasonsDirective)
    app.add_directive("perfvm-audit-checks", AuditChecksDirective)
    app.add_directive("perfvm-checks", ChecksDirective)
    app.add_directive("perfvm-validators", ValidatorsDirective)
    app.add_directive("perfvm-names", NamesDirective)
    app.add_directive("perfvm-evidence", EvidenceDirective)
    app.add_directive("perfvm-commands", CommandsDirective)
    app.add_directive("perfvm-endpoints", EndpointsDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
