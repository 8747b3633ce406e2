"""The warm worker inside the sandbox: checks one module per job and answers over the job's pipe."""

import json
import os
import socket
from dataclasses import asdict, replace
from typing import Any

from touchstone.validation.hcl import check_module
from touchstone.validation.sandbox.entrypoint import JOB, MAX_DESCRIPTORS, Policy, apply_limits

_MAX_DOUBTS = 1_000


def serve(policy: Policy) -> None:
    """Serve jobs until the supervisor disconnects."""
    apply_limits(policy["limits"])
    control = socket.socket(fileno=policy["control_fd"])
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, MAX_DESCRIPTORS)
        if message != JOB:
            return
        job, answer = descriptors
        with os.fdopen(job, "rb") as job_file, os.fdopen(answer, "wb") as writing:
            writing.write(json.dumps(_check(json.load(job_file))).encode())


def _check(payload: dict[str, Any]) -> dict[str, Any]:
    files = {path: text.encode("utf-8", "surrogateescape") for path, text in payload["files"].items()}
    try:
        found = check_module(files, payload["schema"], payload["folders"])
    except ValueError as error:
        return {"unusable": str(error)}
    return asdict(replace(found, doubts=found.doubts[:_MAX_DOUBTS]))
