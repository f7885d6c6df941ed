"""The page in a browser: it draws without an error, reaches no address, and does what keys say.

Times of the first paint are printed, never asserted.
"""

import os
import shutil
from pathlib import Path

import pytest
from live_records import MS, write_live_record
from test_page_parts import make_pipeline, write_log

import avrt
from avrt.api.campaign import FaultCampaign
from avrt.api.drive import write_drive
from avrt.api.whatif import what_if
from avrt.config.changes import Changes
from avrt.report.page import write_page, write_what_if_page
from avrt.report.page.campaign import write_campaign_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
DRIVES = {
    "urban": "",  # the drive of the demo is made
    "kitti": "kitti_sfnd_seq/kitti_sfnd_7p8s.mcap",
    "radiate": "radiate_tiny_foggy/radiate_tiny_foggy.mcap",
}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
BYTES_MAX = 10_000_000
IS_DRAWN = """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  .data.some((value) => value)"""
LIVE_END_NS = 306 * MS
LANE = 67  # pixels from the top of the timeline to the middle of the stream's lane
PAINTS = "performance.getEntriesByType('paint').map((e) => `${e.name} ${Math.round(e.startTime)}`)"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; set CHROMIUM to one"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


class Shown:
    """A page that is open, and what went wrong on it."""

    def __init__(self, browser, path, scheme="light"):
        context = browser.new_context(
            viewport={"width": 1366, "height": 768}, color_scheme=scheme, offline=True
        )
        self.path = path
        self.page = context.new_page()
        self.problems = []
        self.asked = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("requestfailed", lambda request: self.problems.append(request.url[:99]))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_timeout(400)

    def _told(self, message):
        if message.type in {"error", "warning"}:
            self.problems.append(message.text)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_timeout(120)

    def time(self):
        """The time that the slider says."""
        return float(self.page.get_attribute("#time", "aria-valuetext").removesuffix(" s"))

    def picture(self, name):
        return self.page.evaluate(f"document.getElementById('{name}-canvas').toDataURL()")

    def text(self, selector):
        return self.page.inner_text(selector)

    def ground(self):
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")

    def no_problem(self):
        assert self.problems == []
        asked = [url for url in self.asked if not url.startswith("data:")]
        assert asked == [self.path.as_uri()]


def report_paint(shown, name):
    size = shown.path.stat().st_size
    assert size < BYTES_MAX
    paints = shown.page.evaluate(PAINTS)
    assert any("first-contentful-paint" in paint for paint in paints)
    print(f"{name}: {size / 1e6:.1f} MB, {', '.join(paints)} ms")  # noqa: T201 - to be read


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The page of a run with pictures in which two jobs of three miss their deadlines."""
    folder = tmp_path_factory.mktemp("small")
    pipeline = make_pipeline()
    pipeline.add(lambda cloud: cloud.payload.count, name="slow", inputs={"cloud": "lidar"},
                 wcet="130 ms", deadline="140 ms")  # fmt: skip
    pipeline.replay(write_log(folder / "log.mcap", frames=12), out=folder / "run.mcap")
    write_page(folder / "run.html", folder / "run.mcap")
    return folder / "run.html"


@pytest.fixture(scope="module", params=DRIVES)
def drive(request, tmp_path_factory):
    """The page of the demo's drive, or of a recorded one."""
    folder = tmp_path_factory.mktemp(request.param)
    log, before = DATA / DRIVES[request.param], Path.cwd()
    if request.param == "urban":
        log = folder / "drive.mcap"
        write_drive(log)
    elif not log.exists():
        pytest.skip("../shared/data is not here")
    else:
        os.chdir(DATA / "models")
    try:
        pipeline = avrt.Pipeline.load(ROOT / "pipelines" / f"{request.param}.yaml")
        pipeline.replay(log, out=folder / "run.mcap")
    finally:
        os.chdir(before)
    write_page(folder / "run.html", folder / "run.mcap")
    return folder / "run.html"


def test_a_small_run_opens_at_its_first_miss(browser, small):
    shown = Shown(browser, small)
    report_paint(shown, "small run")
    assert "late by" in shown.text("#why-body")
    assert "waiting for" in shown.text("#misses")
    shown.no_problem()


def test_slider_and_timeline_move_together(browser, small):
    shown = Shown(browser, small)
    names = ("timeline", "birdseye", "camera")
    before, at = [shown.picture(name) for name in names], shown.time()
    shown.page.fill("#time", "900")
    shown.page.wait_for_timeout(300)
    assert shown.time() > at
    after = [shown.picture(name) for name in names]
    assert all(old != new for old, new in zip(before, after, strict=True))
    box = shown.page.locator("#timeline-canvas").bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 12)
    shown.page.wait_for_timeout(200)
    assert shown.time() < at + 0.5
    assert float(shown.page.input_value("#time")) < 500
    shown.no_problem()


def test_keys_step_jump_play_and_go_from_miss_to_miss(browser, small):
    shown = Shown(browser, small)
    shown.press("Home")
    first = shown.time()
    shown.press("ArrowRight")
    assert shown.time() == pytest.approx(first + 0.1)
    shown.press("ArrowRight", "ArrowLeft", "ArrowLeft")
    assert shown.time() == pytest.approx(first)
    shown.press("Shift+ArrowRight")
    assert shown.time() == pytest.approx(first + 1)
    shown.press("End")
    assert shown.time() == pytest.approx(first + 1.1)
    shown.press("Home", "Space")
    shown.page.wait_for_timeout(400)
    shown.press("Space")
    assert shown.time() > first
    stopped = shown.time()
    shown.page.wait_for_timeout(200)
    assert shown.time() == stopped
    shown.press("n")
    one = shown.text("#why-body strong")
    shown.press("n")
    other = shown.text("#why-body strong")
    assert one != other
    shown.press("p")
    assert shown.text("#why-body strong") == one
    shown.press("Escape", "0", "+", "-", "z")
    shown.no_problem()


def test_a_job_that_is_clicked_says_why(browser, small):
    shown = Shown(browser, small)
    shown.press("Escape")
    box = shown.page.locator("#timeline-canvas").bounding_box()
    x = box["x"] + 158 + (box["width"] - 170) * 0.3
    for y in range(int(box["y"]) + 30, int(box["y"] + box["height"]), 4):
        shown.page.mouse.move(x, y)
        tip = shown.page.locator("#tip")
        if tip.is_visible() and "slow" in tip.inner_text():
            shown.page.mouse.click(x, y)
            break
    shown.page.wait_for_timeout(150)
    said = shown.text("#why-body")
    for word in ("slow", "release", "start", "end", "due", "executed", "device", "took here"):
        assert word in said
    shown.no_problem()


def test_a_miss_of_the_list_is_shown_on_the_timeline(browser, small):
    shown = Shown(browser, small)
    button = shown.page.locator("#misses button").last
    name = button.inner_text()
    button.click()
    shown.page.wait_for_timeout(200)
    assert shown.text("#why-body strong") == name
    shown.no_problem()


def test_the_tab_key_goes_through_what_can_be_used_in_order(browser, small):
    shown = Shown(browser, small)
    found = []
    for _ in range(13):
        shown.page.keyboard.press("Tab")
        found.append(shown.page.evaluate("document.activeElement.id"))
    order = ["", "theme", "play", "step-back", "step-on", "speed", "time", "miss-back", "miss-on"]
    assert found == [*order, "zoom-out", "zoom-in", "zoom-all", "timeline-canvas"]
    outline = shown.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_it_is_light_or_dark_as_the_system_or_the_reader_says(browser, small):
    light, dark = (Shown(browser, small, scheme) for scheme in ("light", "dark"))
    grounds = light.ground(), dark.ground()
    assert grounds[0] != grounds[1]
    assert light.picture("timeline") != dark.picture("timeline")
    dark.page.click("#theme")
    assert dark.ground() == grounds[0]
    dark.page.click("#theme")
    assert dark.ground() == grounds[1]
    light.no_problem()
    dark.no_problem()


def test_it_is_printed_light_and_shown_as_before_afterwards(browser, small):
    shown = Shown(browser, small, "dark")
    before = shown.ground()
    assert shown.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    shown.page.wait_for_timeout(200)
    assert shown.ground() == before
    assert not shown.page.evaluate("document.documentElement.classList.contains('printing')")
    shown.no_problem()


def test_nothing_is_wider_than_the_screen(browser, small):
    shown = Shown(browser, small)
    for width in (1366, 1024, 800):
        shown.page.set_viewport_size({"width": width, "height": 768})
        shown.page.wait_for_timeout(100)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The page of a run in real time, one job of three late."""
    folder = tmp_path_factory.mktemp("live")
    write_page(folder / "run.html", write_live_record(folder / "run.mcap"))
    return folder / "run.html"


def hover(shown, at_ns):
    """Point at a time on the lane of the only stream; return what the tip says."""
    box = shown.page.locator("#timeline-canvas").bounding_box()
    x = box["x"] + 158 + at_ns / LIVE_END_NS * (box["width"] - 170)
    shown.page.mouse.move(x, box["y"] + LANE)
    shown.page.wait_for_timeout(120)
    tip = shown.page.locator("#tip")
    return tip.inner_text() if tip.is_visible() else ""


def test_jobs_and_gaps_of_a_run_in_real_time_say_their_parts(browser, live):
    shown = Shown(browser, live)
    shown.press("Escape")
    assert "handing over 2.00 ms, working 17.00 ms, reporting 1.00 ms" in hover(shown, 110 * MS)
    gap = hover(shown, 160 * MS)
    assert "gap of 85.00 ms before it 1" in gap
    assert "79.00 ms idle \u2190 here" in gap
    assert "3.00 ms handing over" in gap
    assert "2.00 ms waiting for a slot or the driver" in gap
    assert "handing over, reporting" in shown.text("#legend")
    shown.no_problem()


def test_the_host_of_a_run_in_real_time_is_drawn(browser, live):
    light, dark = (Shown(browser, live, scheme) for scheme in ("light", "dark"))
    for shown in (light, dark):
        charts = shown.page.locator("#host canvas")
        assert charts.count() == 2
        for place in range(2):
            assert charts.nth(place).evaluate(IS_DRAWN)
        assert "this process" in shown.text("#host")
        shown.no_problem()
    pictures = [
        shown.page.locator("#host canvas").first.evaluate("(canvas) => canvas.toDataURL()")
        for shown in (light, dark)
    ]
    assert pictures[0] != pictures[1]


def test_a_flight_record_opens_at_its_incident(browser, tmp_path):
    record = write_live_record(
        tmp_path / "run.mcap", {"flight": "it 1 missed its deadline"}, 10**13, (), closed=False
    )
    write_page(tmp_path / "page.html", record)
    shown = Shown(browser, tmp_path / "page.html")
    assert shown.time() == pytest.approx(10_000.280)
    assert shown.text("#why-body strong") == "it 1"
    assert "it 1 missed its deadline at 10000.280 s" in shown.text(".verdict")
    assert shown.page.locator("#host").count() == 0
    shown.press("n", "p", "z", "0")
    shown.no_problem()


def test_a_what_if_draws_both_runs(browser, small, tmp_path):
    record = small.with_suffix(".mcap")
    report = what_if(record, Changes(cost=("slow=5ms",)), tmp_path / "changed.mcap")
    write_what_if_page(tmp_path / "page.html", record, tmp_path / "changed.mcap", report)
    shown = Shown(browser, tmp_path / "page.html")
    report_paint(shown, "what-if")
    assert "vanishes" in shown.text("#legend")
    assert "vanishes" in shown.text("#misses")
    shown.press("n", "z")
    shown.no_problem()


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The page of a campaign of the shipped pipeline: rows of three classes."""
    path = tmp_path_factory.mktemp("faults") / "page.html"
    campaign = FaultCampaign.load(ROOT / "scenarios" / "faults" / "planner.yaml")
    result = campaign.run(only=("B4", "P3_track", "T8"))
    write_campaign_page(path, result, campaign.conditions())
    return path


def shown_rows(shown):
    return [row for row in ("B4", "P3_track", "T8") if shown.page.locator(f"#{row}").is_visible()]


def test_a_campaign_shows_the_rows_of_a_class(browser, faults):
    shown = Shown(browser, faults)
    assert shown_rows(shown) == ["B4", "P3_track", "T8"]
    shown.page.get_by_role("button", name="safe stop 1").click()
    assert shown_rows(shown) == ["T8"]
    assert "lost" in shown.text("#T8 .counts")
    shown.page.get_by_role("button", name="all 3").click()
    assert shown_rows(shown) == ["B4", "P3_track", "T8"]
    shown.no_problem()


def test_a_row_that_the_address_names_is_shown_whatever_was_chosen(browser, faults):
    shown = Shown(browser, faults)
    shown.page.set_viewport_size({"width": 1366, "height": 400})
    shown.page.get_by_role("button", name="masked 1").click()
    shown.page.evaluate("location.hash = 'T8'")
    shown.page.wait_for_timeout(600)
    assert shown_rows(shown) == ["B4", "P3_track", "T8"]
    place = shown.page.locator("#T8").bounding_box()
    assert 0 <= place["y"] < 400
    assert shown.page.evaluate("document.querySelector(':target').id") == "T8"
    shown.no_problem()


def test_a_campaign_is_light_or_dark_fits_and_is_printed(browser, faults):
    light, dark = (Shown(browser, faults, scheme) for scheme in ("light", "dark"))
    assert light.ground() != dark.ground()
    dark.page.click("#theme")
    assert dark.ground() == light.ground()
    for width in (1366, 1024, 800):
        light.page.set_viewport_size({"width": width, "height": 768})
        assert light.page.evaluate("document.documentElement.scrollWidth") <= width
    light.page.set_viewport_size({"width": 1366, "height": 768})
    table = "document.querySelector('#page\\\\.rows .table')"
    assert light.page.evaluate(f"{table}.scrollWidth <= {table}.clientWidth")
    assert light.page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    light.no_problem()
    dark.no_problem()


def test_a_real_drive_is_shown(browser, drive):
    shown = Shown(browser, drive)
    shown.page.wait_for_timeout(600)
    report_paint(shown, drive.parent.name)
    before = [shown.picture(name) for name in ("timeline", "birdseye", "camera")]
    assert "objects" in shown.text("#birdseye-note")
    shown.press("ArrowRight", "ArrowRight")
    shown.page.wait_for_timeout(400)
    after = [shown.picture(name) for name in ("timeline", "birdseye", "camera")]
    assert all(old != new for old, new in zip(before, after, strict=True))
    shown.page.emulate_media(color_scheme="dark")
    shown.page.wait_for_timeout(200)
    assert shown.picture("birdseye") != after[1]
    shown.no_problem()
