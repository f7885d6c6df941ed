"""The page of a fault campaign: what it says is what came of the runs, and its text only text."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_pages import Texts

from avrt.metrics.campaign import CampaignResult, CleanResult, PairResult, RowResult, unmet
from avrt.metrics.injection import Judged
from avrt.metrics.observed import QUALITIES, Course, Detection
from avrt.model.campaign import HARMFUL, OUTCOMES, Expected, Injection, Row
from avrt.report.page.campaign import rows, shares, write_campaign_page
from avrt.report.page.campaign.course import WIDTH, draw_course, short
from avrt.report.page.campaign.rows import expected, written
from avrt.report.page.campaign.verdict import verdict_of

MS, S = 1_000_000, 1_000_000_000
ODD = "</script><script>alert(1)</script><!-- & \"x\" 'y' <b>"
FAULT = Injection(place="stage", target="plan.1", kind="nan", frame=40)


def course(levels=((0, "full"),), **own):
    times = {quality: own.get(quality, ()) for quality in QUALITIES}
    return Course({"plan": times}, levels, "stop", 4 * S)


def judged(outcome="masked", *, told=True, **changed):
    detected = Detection(2 * S + 10 * MS, "vote", "blames plan.1") if told else None
    found = Judged(outcome, 2 * S, detected, 10 * MS if told else None, 0, 0, 0, 100 * MS, (), "",
                   course(good=(S, 2 * S, 3 * S, 4 * S)))  # fmt: skip
    return replace(found, **changed)


def run(name="B4", found=None, *, seed=0, gap="", about="one copy answers with NaN", **expect):
    found = judged() if found is None else found
    row = Row(id=name, about=about, faults=(FAULT,), expect=Expected(**expect), gap=gap)
    return RowResult(row, seed, (FAULT,), False, found, tuple(unmet(row.expect, found)))


class Page:
    """A page, read back."""

    def __init__(self, path):
        self.source = path.read_text(encoding="utf-8")
        parser = Texts()
        parser.feed(self.source)
        self.elements = parser.elements
        self.text = " ".join(" ".join(parser.words).split())

    def all(self, name):
        return [attributes for found, attributes in self.elements if found == name]


@pytest.fixture
def read(tmp_path):
    """Return a function that writes the page of a result and reads it."""

    def of(*found, name="small", **more):
        path = tmp_path / "page.html"
        write_campaign_page(path, CampaignResult(name, 3, found, **more), {"avrt": "1", "x": "y"})
        return Page(path)

    return of


def test_a_row_says_what_was_broken_asked_and_found(read):
    page = read(run(detected_by=("vote",), detected_ns=20 * MS, levels=(), incorrect=0, lost=1))
    for said in (
        "small: faults", "The run is", "one copy answers with NaN",
        "where: stage.plan.1, what: nan, frame: 40", "told by vote within 20 ms", "levels: none",
        "none wrong", "at most 1 lost", "blames plan.1", "100 ms", "as expected",
        "fault at 2.000 s, vote told after 10 ms", "x", "y",
    ):  # fmt: skip
        assert said in page.text, said


def test_what_is_not_as_expected_and_what_is_missing_are_sentences(read):
    page = read(run(outcomes=("degraded",)), run("B2", judged("hang"), gap="a check sum"))
    assert "1 of 2 runs is not as expected: B4." in page.text
    assert "expected degraded, it is masked." in page.text
    assert "Missing: a check sum." in page.text
    assert "known gap" in page.text


def test_each_run_has_an_anchor_of_its_own_that_its_row_links_to(read):
    page = read(run(), run(seed=1), run("S1", judged("recovered")), run("page"))
    bodies = [body for body in page.all("tbody") if "id" in body]
    assert [body["id"] for body in bodies] == ["B4", "B4.1", "S1", "page"]
    links = {link["href"] for link in page.all("a")}
    assert {f"#{body['id']}" for body in bodies} <= links
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_there_is_a_button_for_each_kind_of_run_and_each_run_has_its_kinds(read):
    page = read(
        run(),
        run("S1", judged("recovered")),
        run("B2", judged("hang"), gap="x"),
        run("M1", lost=-1),
    )
    buttons = [button["data-kind"] for button in page.all("button") if "data-kind" in button]
    assert buttons == ["", "masked", "recovered", "hang", "unexpected", "gap"]
    kinds = {body["id"]: body["data-kinds"] for body in page.all("tbody") if "id" in body}
    assert kinds == {"B4": "masked", "S1": "recovered", "B2": "hang gap", "M1": "masked unexpected"}
    for count in ("all 4", "masked 2", "not as expected 1", "known gaps 1"):
        assert count in page.text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_class_is_a_word_and_not_a_colour_alone(read, outcome):
    page = read(run(found=judged(outcome)))
    assert f"class {outcome}" in [one.get("class") for one in page.all("span")]
    assert outcome.replace("_", " ") in page.text


@pytest.mark.parametrize(
    ("result", "standing", "said"),
    [
        (CampaignResult("c", 0, [run()]), "good", "The run is as expected."),
        (CampaignResult("c", 0, [run(), run()]), "good", "All 2 runs are as expected."),
        (
            CampaignResult("c", 0, [run("B2", judged("hang"), gap="x")]),
            "unsure",
            "The run is as expected, a known gap: B2. 1 run ended in hang: B2.",
        ),
        (
            CampaignResult("c", 0, [run("B2", judged("crash"))]),
            "bad",
            "1 of 1 run is not as expected: B2. 1 run ended in crash: B2.",
        ),
        (
            CampaignResult("c", 0, [run(f"R{n}", judged("hang")) for n in range(10)]),
            "bad",
            "10 of 10 runs are not as expected: R0, R1, R2, R3, R4, R5, R6, R7 and 2 more.",
        ),
        (CampaignResult("c", 0, pairs=[PairResult(("A", "B"), (FAULT,), judged())]), "good",
         "None of 1 pair did harm"),
        (CampaignResult("c", 0, pairs=[PairResult(("A", "B"), (FAULT,), judged("hang"))]), "bad",
         "1 of 1 pair did harm."),
        (CampaignResult("c", 0, clean=CleanResult(1200, 2, (), 0)), "good",
         "1,200 clean frames in 2 drives: no alarm and no change of level."),
        (CampaignResult("c", 0, clean=CleanResult(12, 1, ((5, Detection(S, "log", "x")),), 1)),
         "bad", "12 clean frames in 1 drive: 1 alarm and 1 change of level."),
    ],
)  # fmt: skip
def test_the_verdict_is_a_sentence(result, standing, said):
    verdict = verdict_of(result)
    assert verdict.standing == standing
    assert " ".join((verdict.sentence, *verdict.more)).startswith(said)


def test_coverage_is_drawn_with_its_interval(read):
    page = read(run(detected_by=("vote",)), run("B1", judged(told=False), detected_by=("vote",)))
    assert "50.0%" in page.text
    assert "1.3% \u2013 98.7%" in page.text
    bars = [one["style"] for one in page.all("i") if "left:1.26%" in one.get("style", "")]
    assert bars == ["left:1.26%;width:97.48%"]
    assert "Coverage" not in read(run()).text


def test_pairs_are_a_bar_and_those_that_do_harm_a_list(read):
    harm = judged("silent_corruption", incorrect=7, told=False)
    pairs = [PairResult(("A", "B"), (FAULT,), judged()) for _ in range(3)]
    pairs.append(PairResult(("C", "D"), (FAULT, replace(FAULT, count=3)), harm))
    page = read(pairs=pairs)
    grown = [one["style"] for one in page.all("i") if "flex-grow" in one.get("style", "")]
    assert grown == ["flex-grow:3", "flex-grow:1"]
    assert "3 (75.0%)" in page.text
    assert "C and D" in page.text
    assert "A and B" not in page.text
    assert "count: 3" in page.text
    assert len([one for one in page.all("div") if one.get("class") == "course"]) == 1


def test_alarms_of_clean_drives_are_listed(read):
    alarms = ((41, Detection(1_500 * MS, "guard", "radar: age")),)
    page = read(clean=CleanResult(120, 2, alarms, 0))
    for said in ("120", "41", "1.500 s", "radar: age"):
        assert said in page.text


def test_what_there_is_no_room_for_is_told_and_what_failed_is_kept(read, monkeypatch):
    monkeypatch.setattr(rows, "RUNS_MAX", 2)
    page = read(run("A"), run("B"), run("C", lost=-1))
    assert [body["id"] for body in page.all("tbody") if "id" in body] == ["A", "C"]
    assert "1 of 3 runs" in page.text
    alarms = tuple((n, Detection(S, "log", f"alarm {n}")) for n in range(shares.ALARMS_MAX + 1))
    page = read(clean=CleanResult(12, 1, alarms, 0))
    assert f"1 of {len(alarms)} alarms" in page.text
    assert f"alarm {shares.ALARMS_MAX}" not in page.text


def test_a_text_is_text_and_nothing_else(read):
    named = Course({ODD: dict.fromkeys(QUALITIES, ())}, ((0, ODD),), "", S)
    told = Detection(S, "vote", ODD)
    found = judged("crash", detected=told, levels=(ODD,), crash=ODD, course=named)
    page = read(run(found=found, about=ODD, gap=ODD), name=ODD)
    assert page.text.count(" ".join(ODD.split())) >= 6
    assert len(page.all("script")) == 1
    assert "alert(1)</script>" not in page.source


def test_it_names_no_address(read):
    page = read(run(), clean=CleanResult(1, 1, (), 0))
    assert not re.search(r"https?://|//[a-z]+\.[a-z]|url\(", page.source)
    for name, attributes in page.elements:
        assert name not in {"link", "iframe", "img", "object", "embed"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def ticks(drawn):
    """The places of all ticks in a drawn course, by quality."""
    paths = re.findall(r'<path class="(\w+)" d="([^"]*)"', drawn)
    return {quality: [int(x) for x in re.findall(r"M(\d+) ", moves)] for quality, moves in paths}


def test_every_output_is_a_tick_where_it_was_published_or_was_to_be():
    levels = ((0, "full"), (3 * S, "stop"))
    found = judged(course=course(levels, good=(S, 4 * S), wrong=(2 * S,), lost=(3 * S,)))
    drawn = draw_course(found)
    assert ticks(drawn) == {"good": [500, WIDTH], "wrong": [1000], "lost": [1500]}
    assert re.findall(r'<b class="\w+">(.*?)</b>', drawn) == ["1 wrong ", "1 lost "]
    assert "plan: 2 good, 1 wrong, 1 lost" in drawn
    assert re.findall(r'class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%"', drawn) == [
        ("first", "0.00", "75.00"),
        ("last", "75.00", "25.00"),
    ]
    assert re.findall(r'<i class="(\w+)" style="left:([\d.]+)%"', drawn) == [
        ("fault", "50.00"),
        ("told", "50.25"),
    ]


@given(
    st.fixed_dictionaries({q: st.lists(st.integers(0, 10 * S)) for q in QUALITIES}),
    st.none() | st.integers(0, 12 * S),
    st.none() | st.integers(0, 12 * S),
)
def test_nothing_is_drawn_outside(own, injected_ns, recovered_ns):
    found = judged(course=course(**own), injected_ns=injected_ns, recovered_ns=recovered_ns)
    drawn = draw_course(found)
    assert all(0 <= x <= WIDTH for places in ticks(drawn).values() for x in places)
    assert all(0 <= float(left) <= 100 for left in re.findall(r"(?:left|right):(-?[\d.]+)%", drawn))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "frame: 40"),
        ({"frame": None, "at_ns": 2 * S, "for_ns": 500 * MS}, "at: 2 s, for: 500 ms"),
        ({"kind": "wrong", "by": 3.0, "count": 5}, "what: wrong, frame: 40, count: 5, by: 3"),
        ({"share": 0.02}, "share: 2 %"),
        ({"kind": "slow", "factor": 1.5}, "factor: 1.5"),
        ({"place": "source", "target": "radar", "kind": "stamp", "by": -5e9}, "by: -5 s"),
        ({"place": "device", "target": "gpu0", "kind": "flap", "frame": None, "at_ns": 0,
          "count": 9, "up_ns": S, "down_ns": 500 * MS},
         "where: device.gpu0, what: flap, at: 0 ns, count: 9, up: 1 s, down: 500 ms"),
    ],
)  # fmt: skip
def test_a_fault_is_written_as_in_the_file(changed, text):
    assert text in written(replace(FAULT, **changed))


@pytest.mark.parametrize(
    ("expect", "lines"),
    [
        (Expected(), ["no silent corruption, hang or crash"]),
        (Expected(outcomes=("safe_stop", "masked"), silent=True),
         ["safe stop or masked", "nothing tells of it"]),
        (Expected(outcomes=("masked",), levels=("a", "b"), gap_ns=MS, recover_ns=S),
         ["masked", "levels: a \u2192 b", "gap at most 1 ms", "all good within 1 s"]),
        (Expected(outcomes=("masked",), detected_ns=MS), ["masked", "told within 1 ms"]),
    ],
)  # fmt: skip
def test_what_was_expected_is_said(expect, lines):
    assert list(expected(expect)) == lines


def test_the_words_are_those_of_harm():
    assert set(rows.SYMBOLS) == set(OUTCOMES)
    assert {rows.SYMBOLS[outcome] for outcome in HARMFUL} == {"\u2715"}


def test_a_short_time_has_four_digits():
    assert [short(ns) for ns in (0, 999, 100_885_138, 4_028_720_000)] == [
        "0 ns", "999 ns", "100.9 ms", "4.029 s",
    ]  # fmt: skip
