# SPDX-License-Identifier: Apache-2.0
"""Draw the terminal of the README: commands of the tutorial, and what they printed.

``python -m tests.terminal > doc/source/_images/terminal.svg``
"""

import sys
from html import escape

from tests.sandbox import tutorial

# Beginnings of commands: the first step after the one before that has it.
SHOWN = (
    "openstack perfvm host list",
    "openstack perfvm explain --server vm3",
    "openstack perfvm audit",
)
# Longer lines go on in the next, as in a terminal.
_COLUMNS = 108
# Pixels; a character of a monospaced font is 0.6 of its size wide.
_SIZE, _LINE, _EDGE, _TITLE = 13, 18, 16, 30
_CHARACTER = 0.6 * _SIZE
_STYLE = """
.paper { fill: #f6f8fa; stroke: #c4ccd4 } .title { fill: #dfe5ea }
text { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 13px; fill: #24313a }
.typed { font-weight: bold } .prompt { fill: #1a7f37; font-weight: bold }
.dot { fill: #9aa9b2 }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0f161b; stroke: #3b4a54 } .title { fill: #1d2931 }
  text { fill: #d5dee4 } .prompt { fill: #56d364 } .dot { fill: #5c6f7b }
}
"""


def shown_steps():
    """Return the steps of the tutorial that are drawn."""
    steps = iter(tutorial.steps())
    return [
        next(step for step in steps if step.text.startswith(words)) for words in SHOWN
    ]


def lines():
    """Yield the lines of the terminal, each with whether it was typed."""
    for step in shown_steps():
        first, *others = step.command
        typed = [f"$ {first}", *others]
        for line in (*typed, *step.output, ""):
            for start in range(0, max(len(line), 1), _COLUMNS):
                yield line[start : start + _COLUMNS], line in typed


def picture():
    """Return the terminal as SVG."""
    drawn = list(lines())[:-1]
    width = round(max(len(text) for text, _ in drawn) * _CHARACTER) + 2 * _EDGE
    height = _TITLE + len(drawn) * _LINE + 2 * _EDGE - 6
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">'
        ),
        "<title>Commands of the tutorial, and what they printed</title>",
        f"<style>{_STYLE}</style>",
        (
            f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" '
            f'height="{height - 1}" rx="8"/>'
        ),
        (
            f'<path class="title" d="M1,{_TITLE} V8 a7,7 0 0 1 7,-7 H{width - 8} '
            f'a7,7 0 0 1 7,7 V{_TITLE} z"/>'
        ),
        *(f'<circle class="dot" cx="{18 + 18 * n}" cy="15" r="5"/>' for n in range(3)),
    ]
    for number, (text, typed) in enumerate(drawn):
        if text:
            y = _TITLE + _EDGE + _LINE * number + 8
            parts.append(_text(text, y, typed=typed))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(text, y, *, typed):
    """Return a line, as wide as its characters whatever the font."""
    length = round(len(text) * _CHARACTER, 1)
    said = escape(text)
    if typed and text.startswith("$ "):
        said = f'<tspan class="prompt">$</tspan>{said[1:]}'
    kind = ' class="typed"' if typed else ""
    return (
        f'<text{kind} x="{_EDGE}" y="{y}" textLength="{length}" '
        f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{said}</text>'
    )


if __name__ == "__main__":
    sys.stdout.write(picture())
