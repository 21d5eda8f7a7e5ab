# SPDX-License-Identifier: Apache-2.0
"""Pages of HTML: Jinja templates, each one file that loads nothing else.

The templates hold the markup, the callers the values.  Names in a page are anybody's
choice, so every value is escaped, and each page forbids the network and all scripts
but its own.
"""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from nova_perfvm.printable import number_of, printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(name: str, **values: Any) -> str:
    """Return a page.

    :param name: of a template in this package
    :raises ModuleNotFoundError: without Jinja, which the extra [pages] brings
    """
    return _environment().get_template(name).render(values)


def page_source(name: str) -> str:
    """Return a file of this package as it is, such as a script."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def date_words(iso: str) -> str:
    """Return a time as people write it, in UTC; as it is, if it is no ISO 8601."""
    try:
        when = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return iso
    return f"{when:%-d %b %Y, %H:%M} UTC"


@functools.cache
def _environment() -> Environment:
    # Only here, as commands that write no page do without it.
    import jinja2  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415

    def shown(value: Any) -> Any:
        text = isinstance(value, str) and not isinstance(value, Markup)
        return printable(value) if text else value

    def as_json(value: Any) -> Markup:
        # No text in it can end the element that it is in.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("<", "\\u003c"))  # noqa: S704

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(page_source),
        autoescape=True,
        finalize=shown,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["date_words"] = date_words
    environment.filters["as_json"] = as_json
    environment.filters["number_of"] = number_of
    return environment
