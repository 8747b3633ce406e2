"""The section `workers`: one way to say who works, and every other combination refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from touchstone.config import EvaluationConfig, WorkerSettings, load_config
from touchstone.errors import TouchstoneError

DASK = {"kind": "dask", "address": "tcp://10.0.0.1:8786"}
TLS = {"ca_file": "ca.pem", "cert_file": "c.pem", "key_file": "/etc/c.key"}


def load(folder: Path, **keys: Any) -> EvaluationConfig:
    config = folder / "config.json"
    config.write_text(json.dumps({"fixes_dir": "fixes", "output_dir": "out", **keys}))
    return load_config(config)


def test_the_older_count_still_counts(tmp_path: Path) -> None:
    assert load(tmp_path, validation={"workers": 3}).worker_settings == WorkerSettings(count=3)
    assert load(tmp_path, workers={"count": 3}).worker_settings == WorkerSettings(count=3)
    assert load(tmp_path).worker_settings == WorkerSettings()


def test_certificates_are_relative_to_the_configuration(tmp_path: Path) -> None:
    tls = load(tmp_path, workers=DASK | {"address": "tls://[::1]:8786", "tls": TLS}).worker_settings.tls
    assert tls is not None
    assert (tls.ca_file, tls.key_file) == (tmp_path / "ca.pem", Path("/etc/c.key"))


def test_a_cluster_on_this_machine_needs_no_files(tmp_path: Path) -> None:
    assert load(tmp_path, workers=DASK | {"address": "tls://127.0.0.1:8786"}).worker_settings.uses_tls


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"workers": {"kind": "dask"}}, 'kind "dask" and an address go together'),
        ({"workers": {"address": DASK["address"]}}, 'kind "dask" and an address go together'),
        ({"workers": DASK | {"address": "10.0.0.1"}}, "'10.0.0.1' is not an address such as tcp://127.0.0.1:8786"),
        ({"workers": DASK | {"tls": TLS}}, "an address that starts with tls:// and the files in 'tls' go together"),
        ({"workers": DASK | {"address": "tls://a:1"}}, "an address that starts with tls:// and the files in 'tls'"),
        ({"workers": {"kind": "in_process", "count": 2}}, 'kind "in_process" is a single worker'),
        ({"workers": {"kind": "threads"}}, "workers.kind: "),
        ({"workers": {"count": 2}, "validation": {"workers": 2}}, "'workers' and 'validation.workers' both say who"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(TouchstoneError) as refused:
        load(tmp_path, **keys)
    assert reason in str(refused.value) and "\n" not in str(refused.value)
