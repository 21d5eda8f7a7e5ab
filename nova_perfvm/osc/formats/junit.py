# SPDX-License-Identifier: Apache-2.0
"""JUnit's XML, for what runs tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple
from xml.etree import ElementTree as ET


class Case(NamedTuple):
    """One test case.

    :ivar element: what it ends with besides its name, empty if it passes without
    """

    classname: str
    name: str
    element: Literal["", "failure", "skipped", "system-out"] = ""
    message: str = ""
    text: str = ""


def suite(name: str, taken_at: str, cases: Iterable[Case]) -> str:
    """Return a test suite.

    :param taken_at: ISO 8601
    """
    known = tuple(cases)
    root = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(known)),
        failures=str(sum(case.element == "failure" for case in known)),
        skipped=str(sum(case.element == "skipped" for case in known)),
        errors="0",
        timestamp=taken_at,
    )
    root.extend(map(_case, known))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(case: Case) -> ET.Element:
    found = ET.Element("testcase", classname=case.classname, name=case.name)
    if case.element:
        child = ET.SubElement(found, case.element)
        if case.element != "system-out":
            child.set("message", case.message)
        child.text = case.text
    return found
