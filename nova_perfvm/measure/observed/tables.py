# SPDX-License-Identifier: Apache-2.0
"""Tables of ``key: value``, as the kernel and commands print them."""


def values(text: str, separator: str = ":") -> dict[str, str]:
    """Return {key: value} of lines such as ``Combined:  20``."""
    pairs = (line.partition(separator) for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
