"""Alerts: one JSON document about gates that did not pass, to a webhook or a program of the user's, tried three times.

Nothing here fails a run, and no message says more of the webhook's address than its host.
"""

import html
import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import polars as pl

from touchstone.config import WEB_ADDRESS, AlertSettings
from touchstone.tables.checks import CheckOutcome
from touchstone.text import json_number, visible

# The checks that alerts are about.
ALERTED = ("regressions.holds_against_baseline", "gate_results.gates_hold")

_MAX_GATES = 100
# Seconds before the second and the third try.
_PAUSES = (1.0, 4.0)
# Why a try failed, empty if it did not, and whether another one may succeed.
_Tried = tuple[str, bool]


def alert_document(name: str, checks: Sequence[CheckOutcome], gates: pl.DataFrame, published: bool) -> dict[str, Any]:
    """The document to send: checks that did not pass, gates that do not hold, and the same as `text` for a chat."""
    head = f"{name}: {'published' if published else 'not published'}"
    words = visible("; ".join([head, *(check.message for check in checks)]))
    rows = gates.filter(pl.col("answer") != "held").head(_MAX_GATES).to_dicts()
    numbers = [
        {key: json_number(each) if isinstance(each, float) else each for key, each in row.items()} for row in rows
    ]
    return {
        # Chats take <!channel> and @channel for mentions, and names come from data.
        "text": re.sub(r"(?<!\w)@", "@\u200b", html.escape(words, quote=False)),
        "evaluation": name,
        "published": published,
        "checks": [{"check": each.name, "failed": each.error, "message": each.message} for each in checks],
        "gates": numbers,
    }


def send_alert(settings: AlertSettings, document: dict[str, Any]) -> list[str]:
    """Send the document to the webhook and the command; returns a sentence for each that did not get it."""
    body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    ways: dict[str, Callable[[], _Tried]] = {}
    if settings.webhook is not None:
        ways["the webhook"] = partial(_post, settings.webhook.get_secret_value(), body, settings.timeout_seconds)
    if settings.command:
        ways[f"the command {settings.command[0]}"] = partial(_run, settings.command, body, settings.timeout_seconds)
    reasons = {way: _try(send) for way, send in ways.items()}
    return [f"the alert could not be sent to {way}: {reason}" for way, reason in reasons.items() if reason]


def _try(send: Callable[[], _Tried]) -> str:
    reason, again = send()
    for pause in _PAUSES:
        if again:
            time.sleep(pause)
            reason, again = send()
    return reason


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the address is trusted, the one that it names is not."""


def _post(address: str, body: bytes, timeout: float) -> _Tried:
    variable = address[1:] if address.startswith("$") else ""
    address = os.environ.get(variable, "") if variable else address
    if not WEB_ADDRESS.fullmatch(address):
        return f"the environment variable {variable} is not an http:// or https:// address", False
    host = urlsplit(address).netloc
    try:
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method="POST")
        urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout).close()
        return "", False
    except HTTPError as error:
        error.close()
        return f"{host} answered {error.code}", error.code >= 500 or error.code in (408, 429)
    except (OSError, HTTPException, ValueError) as error:
        # Its message may quote the address.
        cause = error.reason if isinstance(error, URLError) else error
        return f"{host} could not be reached ({getattr(cause, 'strerror', None) or type(cause).__name__})", True


def _run(command: Sequence[str], body: bytes, timeout: float) -> _Tried:
    try:
        ended = subprocess.run(
            command, input=body, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout, check=False
        )
        return (f"it ended with exit code {ended.returncode}", True) if ended.returncode else ("", False)
    except subprocess.TimeoutExpired:
        return f"it took longer than {timeout:g} seconds", True
    except (OSError, ValueError) as error:
        return f"it could not be started ({getattr(error, 'strerror', None) or type(error).__name__})", False
