"""The report cache: what it stores, for how long, and with concurrent writers."""

import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.errors import TouchstoneError
from touchstone.validation.cache import ReportCache, find_cache
from touchstone.validation.protocol import RETRIED, Diagnostic, Report
from touchstone.vocabulary import STATUSES

PASSED = Report("passed", "full", (Diagnostic("warning", "odd", file="a.py", line=3),), True, {"test_a": True}, 2)
FAILED = Report("failed", "full", (Diagnostic("error", "test failed", test="test_a"),), True, {"test_a": False})
DAY = 86_400


def rows(cache: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(cache) as database:
        found = database.execute(query).fetchall()
    database.close()
    return found


class TestKeeping:
    def test_what_is_kept_is_found_again_also_by_the_next_run(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path / "deep" / "cache") as cache:
            cache.keep("a", "python", PASSED)
            cache.keep("b", "hcl", FAILED)
            assert cache.find(["a", "b", "c"]) == {"a": PASSED, "b": FAILED}
        with ReportCache(tmp_path / "deep" / "cache") as cache:
            assert cache.find(["b", "b"]) == {"b": FAILED}
            assert cache.find([]) == {}

    def test_the_first_writer_stays_and_a_transaction_is_seen_at_its_end(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path) as one, ReportCache(tmp_path) as two:
            with one.transaction():
                one.keep("a", "python", PASSED)
                assert two.find(["a"]) == {}
            two.keep("a", "python", FAILED)
            assert one.find(["a"]) == two.find(["a"]) == {"a": PASSED}

    @pytest.mark.parametrize("status", STATUSES)
    def test_only_what_another_try_cannot_change_is_kept(self, tmp_path: Path, status: str) -> None:
        with ReportCache(tmp_path) as cache:
            cache.keep("a", "python", Report(status, "full"))
            assert set(cache.find(["a"])) == (set() if status in RETRIED else {"a"})
        assert RETRIED == ("sandbox_error", "validator_unavailable", "unsafe_input", "timeout", "no_report")

    def test_more_keys_than_one_question_can_hold_and_some_forgotten(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path) as cache:
            for number in range(1_200):
                cache.keep(f"{number}", "python", replace(PASSED, note=str(number)))
            cache.forget(["0", "1199", "x"])
            found = cache.find(str(number) for number in range(-100, 1_300))
        assert {key: report.note for key, report in found.items()} == {str(n): str(n) for n in range(1, 1_199)}


class TestStatisticsAndPruning:
    def test_statistics(self, tmp_path: Path) -> None:
        before = time.time()
        with ReportCache(tmp_path) as cache:
            empty = cache.statistics()
            assert (empty.entries, empty.oldest, empty.newest, empty.by_validator) == (0, None, None, {})
            cache.keep("a", "python", PASSED)
            cache.keep("b", "hcl", FAILED)
            cache.keep("c", "python", FAILED)
            found = cache.statistics()
        assert (found.entries, found.by_validator) == (3, {"hcl": 1, "python": 2})
        assert found.oldest is not None and found.newest is not None
        assert before <= found.oldest <= found.newest <= time.time()
        assert found.path == tmp_path / "reports.sqlite"
        assert found.bytes >= len(json.dumps(PASSED.to_plain()))

    def test_pruning_removes_what_was_not_asked_for_lately(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path) as cache:
            for key in "abc":
                cache.keep(key, "python", replace(PASSED, note="x" * 100_000))
        with sqlite3.connect(tmp_path / "reports.sqlite") as database:
            database.execute("UPDATE reports SET used = used - ? WHERE key IN ('a', 'b')", (10 * DAY,))
        database.close()
        with ReportCache(tmp_path) as cache:
            assert cache.prune(11) == 0
            assert set(cache.find(["b"])) == {"b"}
            before = cache.statistics().bytes
            noted = rows(cache.path, "SELECT made, used FROM reports")
            cache.find(["b"])
            assert rows(cache.path, "SELECT made, used FROM reports") == noted, "use is noted once a day"
            assert cache.prune(9) == 1
            assert set(cache.find("abc")) == {"b", "c"}
            assert cache.prune(0) == 2
            assert cache.statistics().entries == 0
        assert (tmp_path / "reports.sqlite").stat().st_size < before

    def test_the_edition_changes_when_something_is_removed(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path / "one") as cache, ReportCache(tmp_path / "two") as other:
            first = cache.edition
            assert first != other.edition
            cache.keep("a", "python", PASSED)
            cache.prune(1)
            assert cache.edition == first
            cache.prune(0)
            assert cache.edition != first
            second = cache.edition
        with ReportCache(tmp_path / "one") as cache:
            assert cache.edition == second

    def test_a_cache_that_must_be_there(self, tmp_path: Path) -> None:
        with pytest.raises(
            TouchstoneError, match=r"there is no validation cache; a run that validates fixes makes one"
        ):
            find_cache(tmp_path / "none")
        assert not (tmp_path / "none").exists()
        with ReportCache(tmp_path / "cache") as cache:
            cache.keep("a", "python", PASSED)
        for folder in (tmp_path, tmp_path / "cache"):
            with find_cache(folder) as cache:
                assert cache.path == tmp_path / "cache" / "reports.sqlite"

    def test_reading_changes_nothing_and_waits_for_no_writer(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path) as cache:
            cache.keep("a", "python", PASSED)
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with ReportCache(tmp_path) as writer, ReportCache(tmp_path) as reader, writer.transaction():
            assert reader.find(["a", "b"]) == {"a": PASSED}
            assert reader.statistics().entries == 1
            with ReportCache(tmp_path) as late:
                assert late.find(["a"]) == {"a": PASSED}
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def write_many(folder: Path, first: int, writer: str) -> None:
    with ReportCache(folder) as cache:
        for number in range(first, first + 2_000):
            cache.keep(f"key {number}", writer, replace(PASSED, note=f"{number} " * 20))


class TestSeveralWriters:
    @pytest.mark.nightly
    def test_two_processes_at_once_lose_nothing(self, tmp_path: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        both = [spawn.Process(target=write_many, args=(tmp_path, first, f"w{first}")) for first in (0, 1_000)]
        for process in both:
            process.start()
        for process in both:
            process.join(60)
        assert [process.exitcode for process in both] == [0, 0]
        with ReportCache(tmp_path) as cache:
            found = cache.find(f"key {number}" for number in range(3_000))
            assert cache.statistics().entries == 3_000
        assert found == {f"key {n}": replace(PASSED, note=f"{n} " * 20) for n in range(3_000)}
        assert [path.name for path in tmp_path.glob("*broken*")] == []

    def test_a_writer_that_is_killed_leaves_a_readable_cache(self, tmp_path: Path) -> None:
        code = "import sys; from pathlib import Path; from touchstone.validation.cache import ReportCache, Report; "
        code += "cache = ReportCache(Path(sys.argv[1])).__enter__(); print('go', flush=True); "
        code += "[cache.keep(f'key {n}', 'w', Report('passed', 'full', note='x' * 100)) for n in range(10**9)]"
        writer = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
        assert writer.stdout is not None and writer.stdout.readline() == b"go\n"
        with ReportCache(tmp_path) as cache:
            while cache.statistics().entries < 50:
                assert writer.poll() is None
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
            entries = cache.statistics().entries
        with ReportCache(tmp_path) as cache:
            assert len(cache.find(f"key {number}" for number in range(entries))) == entries >= 50
            cache.keep("another", "python", FAILED)
            assert cache.statistics().entries == entries + 1
        assert rows(tmp_path / "reports.sqlite", "PRAGMA integrity_check") == [("ok",)]

    @pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5_000])
    def test_what_cannot_be_read_is_set_aside_whole(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "reports.sqlite").write_bytes(content)
        with ReportCache(tmp_path) as cache:
            assert cache.find(["a"]) == {}
            cache.keep("a", "python", PASSED)
            assert cache.find(["a"]) == {"a": PASSED}
        (aside,) = tmp_path.glob("*broken*")
        assert aside.read_bytes() == content

    def test_so_is_what_turns_out_unreadable_later(self, tmp_path: Path) -> None:
        with ReportCache(tmp_path) as cache:
            for number in range(300):
                cache.keep(f"{number}", "python", replace(PASSED, note="x" * 500))
        whole = bytearray(cache.path.read_bytes())
        whole[8_192:60_000] = b"\xff" * (60_000 - 8_192)
        cache.path.write_bytes(whole)
        with ReportCache(tmp_path) as cache:
            cache.find(str(number) for number in range(300))
            cache.keep("a", "python", PASSED)
            assert cache.find(["a"]) == {"a": PASSED}


reports = st.builds(
    Report,
    st.sampled_from(STATUSES),
    st.sampled_from(["syntax", "static", "static+schema", "full"]),
    st.lists(
        st.builds(
            Diagnostic,
            st.sampled_from(["error", "warning"]),
            st.text(),
            st.text(),
            st.none() | st.text(),
            *[st.none() | st.integers(1)] * 4,
            st.none() | st.text(),
        ),
        max_size=3,
    ).map(tuple),
    st.none() | st.booleans(),
    st.dictionaries(st.text(), st.booleans(), max_size=3),
    st.none() | st.integers(0),
    st.booleans(),
    st.text(),
    st.floats(0, allow_nan=False, allow_infinity=False),
)


@given(reports)
def test_a_report_survives_json(report: Report) -> None:
    assert Report.from_plain(json.loads(json.dumps(report.to_plain()))) == report
