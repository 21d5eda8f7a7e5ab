# SPDX-License-Identifier: Apache-2.0
"""A cloud as one HTML page that needs nothing else, drawn by a script inside it.

Only this script runs, known by its hash: names in the page are anybody's choice.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from typing import Any

from nova_perfvm.diagnose.cloud_map import Document
from nova_perfvm.measure.report import style
from nova_perfvm.measure.report.elements import bullets, digest, moment
from nova_perfvm.printable import printable

_BODY = """<h1>perfvm map</h1>
<p class="facts">{hosts} host(s) and {servers} server(s){placeless}, seen {taken_at}<br>
policy {policy}</p>
{counts}
{gaps}<noscript><p class="critical">The map is drawn by a script.</p></noscript>
<form id="controls" role="search" aria-label="What the map shows">
<label>Search <input type="search" id="search" autocomplete="off"
placeholder="host, server, ID, project, code"></label>
<label>Hosts <select id="state"></select></label>
<label>Mode <select id="mode"></select></label>
<label>Aggregate <select id="aggregate"></select></label>
<label>Why not here? Flavor <select id="flavor"></select></label>
</form>
<p id="note" class="warning" role="status"></p>
<ul id="reasons"></ul>
<output id="shown" for="search state mode aggregate flavor"></output>
<ul id="legend"></ul>
<div id="hosts" role="listbox" tabindex="0" aria-label="Hosts: arrow keys move,
Enter shows all about one"></div>
<details id="others"><summary>{elsewhere} finding(s) of the audit about no host
</summary><div id="elsewhere"></div></details>
<dialog id="details" aria-labelledby="title"><form method="dialog">
<button autofocus>Close</button></form><div id="about"></div></dialog>
<script type="application/json" id="map">{data}</script>
<script>{script}</script>
"""


def html(document: Document) -> str:
    """Return the page of what :func:`nova_perfvm.diagnose.cloud_map.document` has."""
    shown = _printable(document)
    script, look = _file("page.js"), _file("page.css")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    hosts, placeless = shown["hosts"], shown["placeless"]
    body = _BODY.format(
        hosts=len(hosts),
        servers=sum(len(host["servers"]) for host in hosts),
        placeless=f", {placeless} more on no host" if placeless else "",
        taken_at=moment(shown["taken_at"]),
        policy=digest(shown["policy"]),
        counts=_counts(shown),
        gaps=bullets("Not seen", shown["gaps"]),
        elsewhere=len(shown["elsewhere"]),
        # No text in it can end the element.
        data=json.dumps(shown, separators=(",", ":")).replace("<", "\\u003c"),
        script=script,
    )
    scripts = (f"script-src 'sha256-{allowed}'",)
    return style.document("perfvm map", body, look=look, allowed=scripts)


def _counts(document: Document) -> str:
    """Return slots of each pinned class, and findings of each severity.

    Each is a button that shows the hosts that it counts.
    """
    found = []
    for number, (name, pinned) in enumerate(document["classes"]):
        if pinned:
            slots = [s for h in document["hosts"] for s in h["slots"] if s[0] == number]
            free, total = sum(s[3] for s in slots), sum(s[1] for s in slots)
            words = f"<b>{free} of {total}</b>slots free for {escape(name)}"
            found.append(("free", words))
    severities = [finding[0] for finding in document["findings"]]
    found += [
        (word, f'<b class="{word}">{severities.count(word)}</b>{word} finding(s)')
        for word in dict.fromkeys(severities)
    ]
    buttons = (
        f'<li><button type="button" data-state="{state}">{words}</button></li>'
        for state, words in found
    )
    return f'<ul class="counts">{"".join(buttons)}</ul>'


def _printable(value: Any) -> Any:
    """Return a document whose texts, but none of its keys, are fit to be shown."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(found) for key, found in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(found) for found in value]
    return value


def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
