"""Is the page whole in itself, well formed, and deaf to what it is told to run?"""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sixnd.reporting import html

EMPTY = {"meta", "wbr", "br", "img", "link"}
BODY = """\
<body>
<main>
<h1>Account of tiny</h1>
<p class="verdict good"><span class="mark" aria-hidden="true">✓</span><span>Training tiny on h100 fits: \
60.0~GiB of 79.6~GiB.</span></p>
<div class="table" tabindex="0" role="region" aria-label="Memory">
<table>
<caption>Memory</caption>
<thead><tr><th scope="col">category</th><th scope="col" class="number">bytes</th>\
<th scope="col" class="number">share</th><td></td></tr></thead>
<tbody>
<tr><th scope="row">parameters</th><td class="number">15.0~GiB</td><td class="number">25.0~%</td>\
<td class="bar" aria-hidden="true"><i style="width:33.3%"></i></td></tr>
<tr><th scope="row">optimizer</th><td class="number">45.0~GiB</td><td class="number">75.0~%</td>\
<td class="bar" aria-hidden="true"><i style="width:100.0%"></i></td></tr>
</tbody>
</table>
<p class="caption">peak during forward head.<wbr>loss</p>
</div>
""".replace("~", "\xa0")


class Reader(HTMLParser):
    """Every tag with its attributes; tags must close in order."""

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def read():
    def read(page):
        reader = Reader()
        reader.feed(page)
        assert reader.open == []
        return reader.tags

    return read


def test_the_body_begins_like_this(report):
    page = html.render(report)
    assert page[page.index("<body>") :].startswith(BODY)


def test_the_page_is_well_formed_and_needs_nothing_else(report, read):
    tags = read(html.render(report))
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    assert not any(name in {"src", "href"} or name.startswith("on") for _, attributes in tags for name in attributes)
    assert not re.search(r"@import|url\(|https?:", html.render(report))
    policy = next(a["content"] for _, a in tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_it_can_be_read_without_seeing_it(report, read):
    tags = read(html.render(report))
    assert sum(tag == "caption" for tag, _ in tags) == len(report.tables)
    assert all(attributes.get("scope") in {"row", "col"} for tag, attributes in tags if tag == "th")


def test_it_has_a_dark_side_and_a_printed_one(report):
    page = html.render(report)
    assert "@media (prefers-color-scheme: dark)" in page
    assert "@media print" in page


def test_hostile_text_is_only_text(hostile, read):
    tags = read(html.render(hostile))
    assert {tag for tag, _ in tags}.isdisjoint({"script", "img", "a"})
    assert "\x1b" not in html.render(hostile)


def test_figures_stand_in_the_page(report):
    page = html.render(replace(report, figures={"Over <time>": "<svg><path/></svg>"}))
    assert "<figure>\n<svg><path/></svg>\n<figcaption>Over &lt;time&gt;</figcaption>\n</figure>" in page


def test_it_is_the_same_each_time(report):
    assert html.render(report) == html.render(report)


def test_an_empty_report_is_a_page(empty, read):
    assert ("table", {}) in read(html.render(empty))
