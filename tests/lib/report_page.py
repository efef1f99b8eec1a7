# SPDX-License-Identifier: Apache-2.0
"""report_page.py FILE: checks a page of hnlaunch report --html.

It is well-formed and needs nothing else; each heading, section and table has content; the keys of a picture name
all that is drawn in it; text has a contrast of 4.5 in both colour schemes, and paper is white.
"""
import html.parser
import re
import sys
import xml.dom.minidom

UNNAMED = {"axis", "odd", "in", "life", "series"}


class Elements(html.parser.HTMLParser):
    """Refuses what would run or load something."""

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe", "object", "use", "image"), tag
        for name, _ in attrs:
            assert not name.startswith("on") and name not in ("src", "href", "xlink:href"), (tag, name)


def text_of(node):
    if node.nodeType == node.TEXT_NODE:
        return node.data
    return "".join(text_of(child) for child in node.childNodes)


def find(node, tag, word=""):
    return [e for e in node.getElementsByTagName(tag) if not word or word in e.getAttribute("class").split()]


def drawn(node):
    """Returns the classes of the shapes in a node."""
    shapes = [e for tag in ("path", "rect", "circle") for e in find(node, tag)]
    return {e.getAttribute("class") for e in shapes} - UNNAMED


def check_contents(body):
    for section in find(body, "section"):
        parts = [e for e in section.childNodes if e.nodeType == e.ELEMENT_NODE]
        for part, following in zip(parts, parts[1:] + [None]):
            if part.tagName in ("h2", "h3"):
                assert following and following.tagName not in ("h2", part.tagName), "nothing below: " + text_of(part)
    for table in find(body, "table"):
        rows = [row for row in find(table, "tr") if find(row, "td")]
        assert rows, "a table without rows"
        for row in rows:
            assert text_of(row).strip(), "an empty row"


def check_keys(body):
    for chart in find(body, "div", "chart"):
        keys = chart.nextSibling
        while keys.nodeType != keys.ELEMENT_NODE:
            keys = keys.nextSibling
        assert keys.getAttribute("class") == "keys", "a picture without keys"
        assert drawn(chart) <= drawn(keys), "not among the keys: %s" % (drawn(chart) - drawn(keys))
        for key in find(keys, "span"):
            assert len(text_of(key)) > 2, "a key without words"


def luminance(color):
    digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def check_contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5, "hard to read: %s on %s" % (first, second)


def check_style(style):
    light, dark = (dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r":root\{([^}]*)\}", style))
    assert sorted(light) == sorted(dark)
    for scheme in (light, dark):
        for name in ("fg", "dim", "bad", "good"):
            for ground in ("bg", "box"):
                check_contrast(scheme[name], scheme[ground])
    phases = dict(re.findall(r"\.([CAPSJ])\{fill:(#\w+)\}", style))
    assert len(phases) == len(set(phases.values())) == 5, "phases of one colour: %s" % phases
    for fill in phases.values():
        check_contrast(fill, re.search(r"\.in\{fill:(#\w+)", style)[1])
    assert "@media screen and (prefers-color-scheme:dark)" in style and luminance(light["bg"]) == 1, "paper is not white"
    assert "@media print" in style and "tr{break-inside:avoid}" in style


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    Elements().feed(text)
    assert "http" not in text.replace("http-equiv", ""), "names another place"
    style, body = re.search(r"<style>(.*?)</style>.*(<body>.*</body>)", text, re.S).groups()
    assert "url(" not in style and "@import" not in style
    body = xml.dom.minidom.parseString(body)
    assert body.documentElement.firstChild.tagName == "h1", "something else stands above the verdict"
    check_contents(body)
    check_keys(body)
    check_style(style)


main()
