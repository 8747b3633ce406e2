"""Alerts: a real web server and a real program get one document, and a run ends the same if they do not."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from pipelines.definitions import build_defs
from pipelines.resources import EvaluationResource
from tests.conftest import Command, Folder
from tests.pipelines.test_run import evaluate
from touchstone.config import AlertSettings, load_config
from touchstone.errors import TouchstoneError
from touchstone.publish import alerts
from touchstone.tables.checks import CheckOutcome

GATES = ["pass_at_k.problems(k=1) >= 3", "pass@1 >= 0.1"]


@dataclass
class Hook:
    """A web server on this machine, which answers with these codes in turn, then with 200."""

    codes: list[int] = field(default_factory=list)
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setattr(alerts, "_PAUSES", (0.0, 0.0))
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, json.loads(body)))
            self.send_response(found.codes.pop(0) if found.codes else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}/T1/secret?key=hidden"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def sent(**settings: object) -> list[str]:
    return alerts.send_alert(AlertSettings.model_validate(settings), {"text": "a"})


@pytest.mark.parametrize(
    ("codes", "tries", "reason"),
    [([], 1, ""), ([503, 429], 3, ""), ([503] * 3, 3, "503"), ([400], 1, "400"), ([302], 1, "302")],
)
def test_what_may_succeed_is_tried_three_times(hook: Hook, codes: list[int], tries: int, reason: str) -> None:
    hook.codes = [*codes]
    notes = sent(webhook=hook.address)
    assert [path for path, _ in hook.got] == ["/T1/secret?key=hidden"] * tries, "no redirect is followed"
    host = hook.address.split("/")[2]
    assert notes == ([f"the alert could not be sent to the webhook: {host} answered {reason}"] if reason else [])


def test_the_address_may_be_in_the_environment(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", hook.address)
    assert sent(webhook="$HOOK") == [] and len(hook.got) == 1
    monkeypatch.setenv("HOOK", "file:///etc/secret")
    [note] = sent(webhook="$HOOK")
    assert note.endswith("the environment variable HOOK is not an http:// or https:// address")


def test_a_program_gets_the_document_on_standard_input(hook: Hook, tmp_path: Path) -> None:
    place, program = tmp_path / "got.json", tmp_path / "tell.py"
    program.write_text(f"#!{sys.executable}\nimport sys\nopen({str(place)!r}, 'w').write(sys.stdin.read())\n")
    program.chmod(0o755)
    settings = AlertSettings(command=["./tell.py"]).anchored(tmp_path)
    assert alerts.send_alert(settings, {"text": "a"}) == [] and json.loads(place.read_text()) == {"text": "a"}
    assert sent(command=["false"]) == ["the alert could not be sent to the command false: it ended with exit code 1"]
    assert sent(command=["sleep", "9"], timeout_seconds=0.01)[0].endswith("it took longer than 0.01 seconds")
    assert sent(command=["no-such-program"])[0].endswith("it could not be started (No such file or directory)")


@pytest.mark.parametrize(
    "address", ["ftp://a.b/secret", "file:///secret", "https://u:secret@a.b/", "https:///secret", "$a-secret"]
)
def test_another_address_is_refused_without_quoting_it(folder: Folder, address: str) -> None:
    folder.configure(alerts={"webhook": address})
    with pytest.raises(TouchstoneError, match="alerts: webhook must be an http:// or https:// address") as refused:
        load_config(folder.config)
    assert "secret" not in str(refused.value)


def test_no_name_in_an_alert_mentions_anybody() -> None:
    check = CheckOutcome(alerts.ALERTED[1], False, True, "<!channel> @here\x1b: pass@1 >= 0.6 failed")
    rows = pl.DataFrame({"answer": ["failed", "held"], "figure": [float("inf"), 0.5]})
    document = alerts.alert_document("nightly", [check], rows, False)
    assert document["text"] == "nightly: not published; &lt;!channel&gt; @\u200bhere\\x1b: pass@1 &gt;= 0.6 failed"
    assert document["gates"] == [{"answer": "failed", "figure": "Infinity"}]


def test_a_run_alerts_and_keeps_the_address_to_itself(evaluated: Folder, hook: Hook, touchstone: Command) -> None:
    evaluated.configure(gates=GATES[1:], alerts={"webhook": hook.address})
    assert evaluate(evaluated).exit_code == 0
    [(_, document)] = hook.got
    assert (document["evaluation"], document["published"]) == ("out", True)
    assert [(row["model"], row["answer"]) for row in document["gates"]] == [("m", "inconclusive")]
    hook.codes = [500] * 3
    evaluated.configure(gates=GATES, alerts={"webhook": hook.address})
    run = touchstone("run", "--config", evaluated.config)
    assert run.returncode == 1 and "warning: the alert could not be sent to the webhook: 127.0.0.1:" in run.stderr
    assert hook.got[-1][1]["published"] is False
    kept = [path.read_bytes() for path in evaluated.output.rglob("*") if path.is_file()]
    assert not any(b"hidden" in each for each in [*kept, run.stdout.encode(), run.stderr.encode()])


@pytest.mark.nightly
def test_a_run_in_dagster_alerts(evaluated: Folder, hook: Hook) -> None:
    evaluated.configure(gates=GATES, alerts={"webhook": hook.address})
    job = build_defs(EvaluationResource(config_file=str(evaluated.config))).resolve_job_def("evaluate")
    with dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    [(_, document)] = hook.got
    assert [check["check"] for check in document["checks"]] == ["gate_results.gates_hold"]
