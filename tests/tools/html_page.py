"""Reading a page as a browser would: tags, attributes, words. Tags that do not nest are a fault."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = ("meta", "br", "col", "img")


class HtmlPage(HTMLParser):
    """A page that was read; `tags` are pairs of a tag and its attributes, in which none may stand twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        assert len(self.tags[-1][1]) == len(attributes), (tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, name: str) -> list[str]:
        """Return what this attribute is, wherever there is one."""
        return [given[name] for _, given in self.tags if name in given]
