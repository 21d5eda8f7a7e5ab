# SPDX-License-Identifier: Apache-2.0
"""How all pages look, which are one file each and need nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --text: #1b1f24;
  --critical: #c4262e; --warning: #8f5600; --unknown: #5d6470; --ok: #1a7244;
  --focus: #2f6fb5; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed;
  --critical: #ff7b82;
  --warning: #f5b14c; --unknown: #a3aab5; --ok: #5fd39a; --focus: #8ab8ec; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
/* Hashes and paths have nowhere to break. */
h1, h2, p, li, pre, summary { overflow-wrap: anywhere; }
.facts { color: var(--unknown); margin: 0 0 1.5rem; }
.counts { display: flex; gap: 1rem; flex-wrap: wrap; list-style: none; padding: 0; }
.counts li { border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem 1.25rem; min-width: 7rem; }
.counts b { display: block; font-size: 1.7rem; line-height: 1.2; }
.critical { color: var(--critical); } .warning { color: var(--warning); }
.unknown, .note { color: var(--unknown); } .ok { color: var(--ok); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: nowrap; }
article { border: 1px solid var(--line); border-left: 4px solid currentColor;
  border-radius: .35rem; padding: .6rem 1rem; margin: .75rem 0;
  break-inside: avoid; }
article > * { color: var(--text); margin: .2rem 0; }
article .code { color: inherit; font-weight: 600; }
pre { background: var(--soft); padding: .5rem .75rem; border-radius: .25rem;
  white-space: pre-wrap; font: 13px/1.5 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { font-size: 2.2rem; font-weight: 700; margin: .5rem 0;
  text-transform: uppercase; }
/* What is too wide scrolls, and the keyboard comes there. */
.scroll { overflow-x: auto; }
.scroll table:has(th:nth-child(5)) { min-width: 46rem; }
figure .scroll table { min-width: 0; }
/* Words break only where no other way is left. */
td { overflow-wrap: break-word; min-width: 4rem; }
td.words { min-width: 12rem; }
abbr { text-decoration: none; }
summary { cursor: pointer; color: var(--unknown); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
details .scroll { max-height: 20rem; overflow-y: auto; }
.plots { display: grid; gap: 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
figure { margin: 0; min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption { font-weight: 600; overflow-wrap: anywhere; margin-bottom: .25rem; }
.plot { width: 100%; overflow-x: auto; }
"""


def _content_policy(allowed: Iterable[str]) -> str:
    """Return the element that forbids a page the network, and what is not allowed."""
    directives = ("default-src 'none'", "style-src 'unsafe-inline'", *allowed)
    content = "; ".join(directives)
    return f'<meta http-equiv="Content-Security-Policy" content="{content}">\n'


def document(
    title: str, body: str, *, look: str = "", allowed: Iterable[str] = ()
) -> str:
    """Return a whole page, which loads nothing and runs nothing that is not allowed.

    :param title: plain text
    :param body: HTML
    :param look: a stylesheet, which comes after that of all pages
    :param allowed: directives of its content security policy, such as ``script-src
        'unsafe-inline'``; what has "unsafe" in its name is what stands in the page
    """
    own = f"<style>{look}</style>\n" if look else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
{_content_policy(allowed)}<style>{STYLE}</style>
{own}</head>
<body>
{body}</body>
</html>
"""
