# SPDX-License-Identifier: Apache-2.0
"""What a page of HTML has."""

from html.parser import HTMLParser

VOID = {"meta", "br", "input"}


class Elements(HTMLParser):
    """The elements of a page, and its text outside of scripts and styles.

    :ivar elements: (tag, attributes) in their order
    :ivar faults: what is not closed where it should be, and what would be loaded
    """

    def __init__(self, text):
        super().__init__()
        self.elements, self.faults, self.text = [], [], ""
        self._open = []
        self.feed(text)
        self.close()
        self.faults += self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.faults += [name for name, _ in attrs if name in {"src", "href"}]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if not self._open or self._open[-1] not in {"script", "style"}:
            self.text += data

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def allowed(self):
        """The content security policy."""
        (meta,) = (meta for meta in self.named("meta") if "http-equiv" in meta)
        return meta["content"]
