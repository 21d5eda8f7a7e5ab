# SPDX-License-Identifier: Apache-2.0
"""Findings as JUnit's XML, for CI systems."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from nova_perfvm.findings import CheckFindings, Finding, Level, Report

# The element of a test case, by the level of its worst finding.
_ELEMENTS = {
    Level.OK: "system-out",
    Level.NOTE: "system-out",
    Level.UNKNOWN: "skipped",
    Level.WARNING: "failure",
    Level.FAILURE: "failure",
}


def junit(report: Report) -> str:
    """Return a test suite with a case for each check.

    A check with an unknown result is skipped; a note does not fail its check.
    """
    elements = Counter(_ELEMENTS[result.level] for result in report.results)
    root = ET.Element(
        "testsuite",
        name=report.name,
        tests=str(len(report.results)),
        failures=str(elements["failure"]),
        skipped=str(elements["skipped"]),
        errors="0",
        timestamp=report.taken_at,
    )
    root.extend(_case(report.name, result) for result in report.results)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(classname: str, result: CheckFindings) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=result.title)
    if result.findings:
        child = ET.SubElement(case, _ELEMENTS[result.level])
        if result.level > Level.NOTE:
            worst = max(result.findings, key=lambda finding: finding.level)
            child.set("message", f"{len(result.findings)}: {worst}")
        child.text = "\n\n".join(map(_text, result.findings))
    return case


def _text(finding: Finding) -> str:
    lines = {
        finding.level.value: f"{finding.code} {finding.subject}",
        "observed": finding.observed,
        "expected": finding.expected,
        "source": finding.source,
        "remedy": finding.remedy,
    }
    return "\n".join(f"{name}: {text}" for name, text in lines.items() if text)
