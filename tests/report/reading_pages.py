"""What a page holds, read back without a browser."""

import json
import re
from html.parser import HTMLParser

SCRIPT = re.compile(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', re.DOTALL)


class Texts(HTMLParser):
    """The text of a page, and every element it has, scripts and style left out."""

    def __init__(self):
        super().__init__()
        self.words = []
        self.elements = []
        self._skip = 0

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._skip += tag in {"script", "style"}

    def handle_endtag(self, tag):
        self._skip -= tag in {"script", "style"}

    def handle_data(self, data):
        if not self._skip:
            self.words.append(data)


class Read:
    """One page."""

    def __init__(self, path):
        self.source = path.read_text(encoding="utf-8")
        found = dict(SCRIPT.findall(self.source))
        self.data = json.loads(found["run-data"])
        self.scene = json.loads(found["scene-data"])
        parser = Texts()
        parser.feed(self.source)
        self.elements = parser.elements
        self.text = " ".join(" ".join(parser.words).split())

    def jobs(self, run=0):
        """The jobs of a run, each as a dict."""
        run = self.data["runs"][run]
        columns = run["jobs"]
        return [
            {
                "task": run["tasks"][columns["task"][i]]["name"],
                "index": columns["index"][i],
                "release": columns["release"][i],
                "due": columns["release"][i] + columns["due"][i],
                "end": columns["release"][i] + columns["end"][i],
                "start": columns["start"][i],
                "outcome": run["outcomes"][columns["outcome"][i]],
                "reason": columns["reasons"][columns["reason"][i]],
                "more": columns["more"].get(str(i), {}),
            }
            for i in range(len(columns["release"]))
        ]
