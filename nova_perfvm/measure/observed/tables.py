# SPDX-License-Identifier: Apache-2.0
"""Tables of ``key: value``, as the kernel and commands print them."""


def values(text: str, separator: str = ":") -> dict[str, str]:
    """Return the values of lines such as ``Combined:  20``, by what is before."""
    pairs = (line.partition(separator) for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
