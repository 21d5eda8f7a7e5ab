# SPDX-License-Identifier: Apache-2.0
"""What can happen to a file, each way drawn from a random.Random."""

import copy
import functools
import json

import yaml

# Texts that parsers, terminals, file systems and numbers have trouble with.
WORDS = (
    "",
    " ",
    "\n",
    "\0",
    "\x1b[2J",
    "\ud800",
    "\ufeff",
    "\u2028",
    "é" * 300,
    "x" * 5000,
    "None",
    "null",
    "true",
    "NaN",
    "-1",
    "0",
    "1.5",
    "1e400",
    "9" * 5000,
    "0-19999999999",
    "0-19,^3",
    "5-1",
    "2x20",
    "99999x99999x99",
    "9999x9999x99",
    "../../etc/passwd",
    "-f",
    "--",
    "{vcpus}",
    "{",
    "{0.__class__}",
    "%s",
    "$(id)",
    "`id`",
    "a,b",
    "<b>&",
    "dedicated",
    "threads",
    "units",
    "1GB",
    "required",
    "2026-99-99",
)
VALUES = (
    *WORDS,
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    20,
    64,
    4096,
    2**31,
    2**63,
    -(2**63),
    10**30,
    10**400,
    0.0,
    -0.0,
    1.5,
    20.0,
    1e308,
    float("inf"),
    float("nan"),
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"x": {"y": [{}]}},
    ["0", "0"],
    list(range(300)),
)
BYTES = (b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1b", b"\r", b"\x85", b"\t")
# What means something to YAML, JSON or a file of options.
SIGNS = b"{}[]:,-?*&!|>'\"%@`#=\n\r\t ~<.0123456789eE_^xXaAnN\\"


def mutate(rng, text):
    """Return the bytes of a file that was such a text, and had one to four mishaps."""
    document = _load(text)
    data = text.encode()
    if isinstance(document, dict) and rng.random() < 0.7:
        document = copy.deepcopy(document)
        for _ in range(rng.choice((1, 1, 1, 1, 2, 4))):
            rng.choice(_IN_DOCUMENTS)(rng, document)
        data = _dump(rng, document)
        if rng.random() < 0.9:
            return data
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice((*_IN_BYTES, *_IN_LINES))(rng, data)
    return data


@functools.cache
def _load(text):
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _dump(rng, document):
    """Write it as JSON, which YAML's readers take as well, or as YAML."""
    if rng.random() < 0.5:
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=1)
    else:
        text = yaml.dump(document, allow_unicode=True, sort_keys=False)
    return text.encode("utf-8", "surrogatepass")


def _places(value):
    """Yield (container, key) of each value below one."""
    pairs = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, item in pairs:
        yield value, key
        yield from _places(item)


def _place(rng, document):
    places = list(_places(document))
    return rng.choice(places) if places else (None, None)


def _replace(rng, document):
    container, key = _place(rng, document)
    if container is not None:
        container[key] = copy.deepcopy(rng.choice(VALUES))


def _swap(rng, document):
    """Put another value of the same type in a place."""
    container, key = _place(rng, document)
    if container is not None:
        kind = type(container[key])
        others = [value for value in VALUES if type(value) is kind]
        container[key] = copy.deepcopy(rng.choice(others))


def _retype(rng, document):
    container, key = _place(rng, document)
    if container is None:
        return
    value = container[key]
    container[key] = rng.choice(
        (str(value), [value], {"x": value}, {str(value)[:50]: value}, bool(value))
    )


def _nudge(rng, document):
    """Change a number a little, or by much."""
    places = [
        (container, key)
        for container, key in _places(document)
        if isinstance(container[key], (int, float))
    ]
    if places:
        container, key = rng.choice(places)
        number = container[key]
        container[key] = rng.choice((number + 1, number - 1, number * 1000, -number))


def _drop(rng, document):
    container, key = _place(rng, document)
    if container is not None:
        del container[key]


def _rename(rng, document):
    container, key = _place(rng, document)
    if isinstance(container, dict):
        name = rng.choice((*WORDS, str(key)[:-1], f"{key}s", str(key).upper()))
        container[name] = container.pop(key)


def _copy(rng, document):
    """Put what stands in one place in another, too."""
    container, key = _place(rng, document)
    source, name = _place(rng, document)
    if container is not None:
        container[key] = copy.deepcopy(source[name])


def _repeat(rng, document):
    places = [c for c, _ in _places(document) if isinstance(c, list)]
    if places:
        items = rng.choice(places)
        items.append(copy.deepcopy(rng.choice(items)))


_IN_DOCUMENTS = (
    *[_swap] * 3,
    *[_nudge] * 2,
    _replace,
    _retype,
    _drop,
    _rename,
    _copy,
    _repeat,
)


def _at(rng, data):
    return rng.randrange(len(data) + 1)


def _flip(rng, data):
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _insert(rng, data):
    at = _at(rng, data)
    odd = rng.choice(
        (
            rng.choice(BYTES),
            bytes([rng.choice(SIGNS)]),
            rng.choice(WORDS).encode("utf-8", "surrogatepass"),
        )
    )
    return data[:at] + odd + data[at:]


def _cut(rng, data):
    first, last = sorted((_at(rng, data), _at(rng, data)))
    return data[:first] + data[min(last, first + rng.choice((1, 3, 20, 5000))) :]


def _truncate(rng, data):
    return data[: _at(rng, data)]


_IN_BYTES = (_flip, _flip, _insert, _insert, _cut, _truncate)


def _lines(change):
    def changed(rng, data):
        lines = data.split(b"\n")
        change(rng, lines, rng.randrange(len(lines)))
        return b"\n".join(lines)

    return changed


@_lines
def _drop_line(_rng, lines, at):
    del lines[at]


@_lines
def _double_line(_rng, lines, at):
    lines.insert(at, lines[at])


@_lines
def _move_line(rng, lines, at):
    lines.insert(rng.randrange(len(lines)), lines.pop(at))


@_lines
def _indent_line(rng, lines, at):
    line = lines[at]
    lines[at] = rng.choice((b" " + line, b"\t" + line, line.lstrip(), line[1:]))


_IN_LINES = (_drop_line, _double_line, _move_line, _indent_line)
