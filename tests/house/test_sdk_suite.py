"""What differs from the SDK's own tests is named with a reason, and compared both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdk_suite import DIFFERENCES, Outcome, judged, named_differences, read_report

REPORT = """<testsuites><testsuite>
<testcase file="tests/a/test_x.py" classname="tests.a.test_x" name="test_good[1-a.b]"/>
<testcase file="tests/a/test_x.py" classname="tests.a.test_x.TestIn" name="test_bad">
  <failure message="assert 1 == 2&#10;more">trace</failure></testcase>
<testcase file="tests/a/test_x.py" classname="tests.a.test_x" name="test_torn"/>
<testcase file="tests/a/test_x.py" classname="tests.a.test_x" name="test_torn">
  <error message="on teardown">trace</error></testcase>
<testcase file="tests/a/test_x.py" classname="tests.a.test_x" name="test_left">
  <skipped message="not here"/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_read_into_the_names_that_pytest_takes() -> None:
    outcome = read_report(REPORT)
    assert outcome.passed == {"tests/a/test_x.py::test_good[1-a.b]"}
    assert outcome.failed == {
        "tests/a/test_x.py::TestIn::test_bad": "assert 1 == 2",
        "tests/a/test_x.py::test_torn": "on teardown",
    }


def test_an_outcome_is_right_only_if_it_is_exactly_what_is_named() -> None:
    outcome = Outcome(passed=frozenset({"a"}), failed={"b": "said"})
    assert judged(outcome, ["b"]) == []
    assert judged(outcome, []) == ["fails, and is not named: b\n    said"]
    assert judged(outcome, ["a", "b"]) == ["named as different, and passes: a"]
    assert judged(outcome, ["b", "c"]) == ["named as different, and did not run: c"]


def test_a_difference_without_a_reason_or_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="no reason"):
        named_differences('[[difference]]\nwhy = " "\ntests = ["a"]')
    with pytest.raises(ValueError, match="named twice"):
        named_differences('[[difference]]\nwhy = "so"\ntests = ["a", "a"]')


def test_the_differences_of_this_project_are_few_and_each_has_its_reason() -> None:
    named = named_differences(Path(DIFFERENCES).read_text("utf-8"))
    assert 0 < len(named) <= 30
    assert all(why.endswith(".") and len(why) > 80 for why in named.values())
    assert all(name.startswith("tests/") and "::test_" in name for name in named)
