"""JSON Lines: whole lines, whoever dies and whatever the disk does. R22, B13."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.sinks import JsonLinesSink
from surefoot.sinks import _append_file as append_file
from surefoot.sinks._json_lines import line_of

EVENT = {"v": 1, "type": "credential.vended", "seq": 1, "time": "t", "run": "r"}


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes()
    assert text.endswith(b"\n") or not text
    return [json.loads(line) for line in text.splitlines()]


def event(number: int, **more: Any) -> dict[str, Any]:
    return {**EVENT, "seq": number, **more}


def test_each_event_is_one_line_in_order(tmp_path: Path) -> None:
    """R22. One JSON object a line."""
    path = tmp_path / "run.jsonl"
    sink = JsonLinesSink(path)
    for number in range(1, 501):
        sink.emit(event(number, text="one\nline"))
    assert sink.close()
    assert [one["seq"] for one in lines(path)] == list(range(1, 501))
    assert sink.dropped == 0


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """B13. Evidence is not for everybody on the machine."""
    path = tmp_path / "run.jsonl"
    JsonLinesSink(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_appended_to_and_keeps_its_mode(tmp_path: Path) -> None:
    """B13. Nothing that was recorded is ever overwritten."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(line_of(event(1)))
    path.chmod(0o640)
    sink = JsonLinesSink(path)
    sink.emit(event(2))
    sink.close()
    assert [one["seq"] for one in lines(path)] == [1, 2]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_with_a_cut_last_line_is_continued_on_a_new_line(tmp_path: Path) -> None:
    """B13. What a killed process left does not spoil what comes after."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(line_of(event(1)) + b'{"v":1,"ty')
    sink = JsonLinesSink(path)
    sink.emit(event(2))
    sink.close()
    first, cut, second = path.read_bytes().splitlines()
    assert (json.loads(first)["seq"], cut, json.loads(second)["seq"]) == (1, b'{"v":1,"ty', 2)


def test_a_folder_that_is_not_there_is_an_error_when_the_sink_is_built(tmp_path: Path) -> None:
    """R71. A mistake of the user is seen at once, and not as lost evidence later."""
    with pytest.raises(FileNotFoundError):
        JsonLinesSink(tmp_path / "no" / "run.jsonl")
    with pytest.raises(IsADirectoryError):
        JsonLinesSink(tmp_path)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_bytes": 0}, ValueError),
        ({"max_bytes": 1.5}, TypeError),
        ({"max_bytes": True}, TypeError),
        ({"keep": 0}, ValueError),
        ({"keep": None}, TypeError),
        ({"room": 0}, ValueError),
        ({"room": "9"}, TypeError),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    """R71, R72. When it is built."""
    with pytest.raises(error, match=f"^{next(iter(options))}: "):
        JsonLinesSink(tmp_path / "run.jsonl", **options)
    assert not (tmp_path / "run.jsonl").exists()


def test_a_full_file_is_moved_aside_and_no_line_is_lost_or_split(tmp_path: Path) -> None:
    """B13. Rotation by size."""
    path = tmp_path / "run.jsonl"
    size = len(line_of(event(10)))
    sink = JsonLinesSink(path, max_bytes=size * 3, keep=100)
    for number in range(10, 40):
        sink.emit(event(number))
    sink.close()
    files = [tmp_path / f"run.jsonl.{number}" for number in range(9, 0, -1)] + [path]
    assert [one["seq"] for file in files for one in lines(file)] == list(range(10, 40))
    assert all(file.stat().st_size <= size * 3 for file in files)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_only_so_many_old_files_are_kept(tmp_path: Path) -> None:
    """B13. Disk is bounded, too."""
    path = tmp_path / "run.jsonl"
    sink = JsonLinesSink(path, max_bytes=1, keep=2)
    for number in range(1, 8):
        sink.emit(event(number))
    sink.close()
    kept = {file.name: [one["seq"] for one in lines(file)] for file in tmp_path.iterdir()}
    assert kept == {"run.jsonl": [7], "run.jsonl.1": [6], "run.jsonl.2": [5]}


def test_a_file_that_somebody_moved_away_is_not_written_to_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. Another program's rotation is followed."""
    monkeypatch.setattr(append_file, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "run.jsonl"
    sink = JsonLinesSink(path)
    sink.emit(event(1))
    sink.flush()
    path.rename(tmp_path / "old.jsonl")
    sink.emit(event(2))
    sink.flush()
    path.unlink()
    sink.emit(event(3))
    sink.close()
    assert [one["seq"] for one in lines(tmp_path / "old.jsonl")] == [1]
    assert [one["seq"] for one in lines(path)] == [3]


def test_two_sinks_on_one_file_write_whole_lines(tmp_path: Path) -> None:
    """B13. Appends of several runs or processes do not mix within a line."""
    path = tmp_path / "run.jsonl"

    def work(name: int) -> None:
        sink = JsonLinesSink(path)
        for number in range(200):
            sink.emit(event(number, name=name, text="x" * 500))
            if number % 10 == 0:
                sink.flush()
        sink.close()

    workers = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    found = lines(path)
    assert len(found) == 600
    for name in range(3):
        assert [one["seq"] for one in found if one["name"] == name] == list(range(200))


def silent(_message: str) -> None:
    """An alarm that nobody hears."""


class Disk:
    """Stands in for `os.write`: takes so many bytes, then refuses, then works again."""

    def __init__(self, room: int, refusals: int) -> None:
        self.room = room
        self.refusals = refusals

    def write(self, fd: int, data: bytes) -> int:
        if self.room <= 0 and self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        part = data if not self.refusals else data[: self.room]
        self.room -= len(part)
        return os.write(fd, part)


class Machine:
    """The module `os` as the file sees it, with another `write`."""

    def __init__(self, disk: Disk) -> None:
        self.write = disk.write

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@pytest.mark.parametrize("room", [0, 1, 80, 100, 149, 150, 151, 300, 449])
@pytest.mark.parametrize("refusals", [1, 3])
def test_a_disk_that_is_full_for_a_while_costs_events_and_no_line_is_garbled(
    room: int, refusals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. Wherever in a line it fills up: counted exactly, told once, written down later."""
    told: list[str] = []
    path = tmp_path / "run.jsonl"
    sink = JsonLinesSink(path, alarm=told.append)
    monkeypatch.setattr(append_file, "os", Machine(Disk(room, refusals)))
    for number in range(1, 11):
        sink.emit(event(number, text="x" * 40))
        sink.flush()
    sink.close()
    whole: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            assert b'{"v":1,'.startswith(line[:7])
    there = [one["seq"] for one in whole if one["type"] != "sink.failed"]
    missing = 10 - len(there)
    assert there == sorted(set(there))
    assert sink.dropped == missing > 0
    said = [one["dropped"] for one in whole if one["type"] == "sink.failed"]
    assert sum(said) == missing
    assert len(told) == 1
    assert "OSError" in told[0]


def test_a_batch_of_which_the_disk_takes_a_part_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. Lines that are in the file whole are not counted as lost."""
    sink = JsonLinesSink(tmp_path / "run.jsonl", alarm=silent)
    one = len(line_of(event(1)))
    monkeypatch.setattr(append_file, "os", Machine(Disk(one * 2 + 5, 1)))
    sink._write([event(number) for number in range(1, 6)])
    assert sink.dropped == 3
    sink._write([event(6)])
    text = (tmp_path / "run.jsonl").read_bytes().splitlines()
    found: list[dict[str, Any]] = [json.loads(line) for line in text if line.endswith(b"}")]
    assert [one["type"] for one in found][2:] == ["sink.failed", "credential.vended"]
    assert (found[2]["dropped"], found[3]["seq"]) == (3, 6)
    sink.close()


def test_a_folder_that_vanishes_costs_events_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. The file is opened again when it can be; what was lost is written down there."""
    monkeypatch.setattr(append_file, "_LOOK_SECONDS", 0.0)
    folder = tmp_path / "runs"
    folder.mkdir()
    sink = JsonLinesSink(folder / "run.jsonl", alarm=silent)
    sink.emit(event(1))
    sink.flush()
    shutil.rmtree(folder)
    sink.emit(event(2))
    sink.flush()
    assert sink.dropped == 1
    folder.mkdir()
    sink.emit(event(3))
    sink.close()
    failed, last = lines(folder / "run.jsonl")
    assert (failed["error"], failed["dropped"], last["seq"]) == ("FileNotFoundError", 1, 3)


def test_a_disk_that_stalls_never_touches_who_emits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. The queue takes what it can, then events are lost and counted."""
    gate = threading.Event()

    class Stalled(Disk):
        def write(self, fd: int, data: bytes) -> int:
            assert gate.wait(20)
            return os.write(fd, data)

    told: list[str] = []
    sink = JsonLinesSink(tmp_path / "run.jsonl", room=5, alarm=told.append)
    monkeypatch.setattr(append_file, "os", Machine(Stalled(0, 0)))
    for number in range(1, 101):
        sink.emit(event(number))
    lost = sink.dropped
    assert lost >= 90
    assert "QueueFull" in told[0]
    assert not sink.flush(0.01)
    gate.set()
    assert sink.flush(5)
    sink.emit(event(101))
    assert sink.close()
    found = lines(tmp_path / "run.jsonl")
    assert len([one for one in found if one["type"] != "sink.failed"]) == 101 - lost
    assert sum(one["dropped"] for one in found if one["type"] == "sink.failed") == lost
    assert len(told) == 1


@pytest.mark.parametrize(
    "value", ["\ud800", "\x00", "\u2028", "ü", b"bytes", object(), {1, 2}, float("nan"), 2**70]
)
def test_whatever_an_event_holds_its_line_is_one_line_of_json(value: Any) -> None:
    """B13. A foreign event cannot break the file."""
    line = line_of(event(1, value=value))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    line.decode("utf-8")
    assert isinstance(json.loads(line), dict)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.floats() | st.integers()))
def test_a_line_is_one_line_for_any_event(extra: dict[str, Any]) -> None:
    """B13. Never a second newline, always JSON."""
    line = line_of({**extra, "type": "x"})
    assert line.count(b"\n") == 1
    assert json.loads(line)["type"] == "x"


def test_an_event_that_no_json_can_hold_is_counted_and_the_next_is_written(tmp_path: Path) -> None:
    """B13. One bad event costs itself."""
    loop: dict[str, Any] = event(1)
    loop["self"] = loop
    sink = JsonLinesSink(tmp_path / "run.jsonl", alarm=silent)
    sink.emit(loop)
    sink.flush()
    sink.emit(event(2))
    sink.close()
    assert [one["type"] for one in lines(tmp_path / "run.jsonl")] == [
        "sink.failed",
        "credential.vended",
    ]
    assert sink.dropped == 1


class Leaves:
    """A value of somebody's that ends whatever thread writes it out."""

    def __str__(self) -> str:
        raise SystemExit


def test_a_value_that_ends_threads_costs_one_event(tmp_path: Path) -> None:
    """B13. The sink's thread is its own: it goes on, and what comes later is written."""
    sink = JsonLinesSink(tmp_path / "run.jsonl", alarm=silent)
    sink.emit({**event(1), "held": Leaves()})
    assert sink.flush(5)
    sink.emit(event(2))
    assert sink.close(5)
    assert lines(tmp_path / "run.jsonl")[-1]["seq"] == 2
    assert sink.dropped == 1


def test_a_write_for_which_there_is_no_memory_costs_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B13. It is a failure like one of the disk: counted, written down later, and survived."""

    def none_left(*_: Any) -> Any:
        raise MemoryError

    sink = JsonLinesSink(tmp_path / "run.jsonl", alarm=silent)
    with monkeypatch.context() as patched:
        patched.setattr(append_file.AppendFile, "_append", none_left)
        sink.emit(event(1))
        assert sink.flush(5)
    sink.emit(event(2))
    assert sink.close(5)
    assert [one["type"] for one in lines(tmp_path / "run.jsonl")] == [
        "sink.failed",
        "credential.vended",
    ]
    assert sink.dropped == 1
