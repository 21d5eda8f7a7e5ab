# SPDX-License-Identifier: Apache-2.0
"""What can happen to a file, each way drawn from a random.Random."""

import copy
import functools
import json

import yaml

# Texts that parsers, terminals, file systems and numbers have trouble with.
WORDS = (
    *("", " ", "\n", "\0", "\x1b[2J", "\ud800", "\ufeff", "é" * 300, "x" * 5000),
    *("None", "null", "true", "NaN", "-1", "0", "1.5", "1e400", "9" * 5000),
    *("0-19999999999", "0-19,^3", "5-1", "2x20", "99999x99999x99", "9999x9999x99"),
    *("../../etc/passwd", "-f", "--", "{vcpus}", "{", "{0.__class__}", "%s", "$(id)"),
    *("a,b", "<b>&", "dedicated", "threads", "units", "1GB", "required", "2026-99-99"),
)
VALUES = (
    *WORDS,
    *(None, True, False, 0, -1, 1, 2, 3, 20, 64, 4096, 2**31, 2**63, -(2**63), 10**400),
    *(0.0, -0.0, 1.5, 1e308, float("inf"), float("nan")),
    *([], {}, [[]], [None], {"": None}, {"x": {"y": [{}]}}, ["0", "0"]),
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
        data = rng.choice(_IN_BYTES)(rng, data)
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
    """Draw a place of a document that has any."""
    return rng.choice(list(_places(document)) or [([None], 0)])


def _replace(rng, document):
    container, key = _place(rng, document)
    container[key] = copy.deepcopy(rng.choice(VALUES))


def _swap(rng, document):
    """Put another value of the same type in a place."""
    container, key = _place(rng, document)
    kind = type(container[key])
    others = [value for value in VALUES if type(value) is kind]
    container[key] = copy.deepcopy(rng.choice(others))


def _retype(rng, document):
    container, key = _place(rng, document)
    value = container[key]
    container[key] = rng.choice(
        (str(value), [value], {"x": value}, {str(value)[:50]: value}, bool(value))
    )


def _nudge(rng, document):
    """Change a number a little, or by much."""
    container, key = _place(rng, document)
    number = container[key]
    if isinstance(number, int | float):
        container[key] = rng.choice((number + 1, number - 1, number * 1000, -number))


def _drop(rng, document):
    container, key = _place(rng, document)
    del container[key]


def _rename(rng, document):
    container, key = _place(rng, document)
    if isinstance(container, dict):
        name = rng.choice((*WORDS, str(key)[:-1], f"{key}s", str(key).upper()))
        container[name] = container.pop(key)


def _copy(rng, document):
    """Put what stands in one place in another, or in a list, too."""
    container, key = _place(rng, document)
    source, name = _place(rng, document)
    value = copy.deepcopy(source[name])
    if isinstance(container, list):
        container.append(value)
    else:
        container[key] = value


_IN_DOCUMENTS = (*[_swap] * 3, *[_nudge] * 3, _replace, _retype, _drop, _rename, _copy)


def _flip(rng, data):
    at = rng.randrange(len(data) + 1)
    flipped = [byte ^ (1 << rng.randrange(8)) for byte in data[at : at + 1]]
    return data[:at] + bytes(flipped) + data[at + 1 :]


def _insert(rng, data):
    at = rng.randrange(len(data) + 1)
    word = rng.choice(WORDS).encode("utf-8", "surrogatepass")
    odd = rng.choice((rng.choice(BYTES), bytes([rng.choice(SIGNS)]), word))
    return data[:at] + odd + data[at:]


def _cut(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 3, 20, 5000, len(data))) :]


def _lines(rng, data):
    """Drop, double, move or indent a line."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    line = lines.pop(at)
    anywhere = rng.randrange(len(lines) + 1)
    for where, text in rng.choice(
        (
            *((), ((at, line), (at, line)), ((anywhere, line),)),
            *(((at, odd),) for odd in (b" " + line, b"\t" + line, line[1:])),
        )
    ):
        lines.insert(where, text)
    return b"\n".join(lines)


_IN_BYTES = (_flip, _flip, _insert, _insert, _cut, _lines, _lines)
