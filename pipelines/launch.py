"""Running the evaluation in this process and starting the Dagster UI, for the command line."""

import ctypes
import fcntl
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NoReturn, Self

import dagster as dg

from assets.stages import STAGES, CheckFailed, stage_op
from pipelines.automation import EVALUATE
from pipelines.definitions import CONFIG_VARIABLE, OUTPUT_VARIABLE
from pipelines.resources import prepared
from pipelines.retention import remove_expired
from touchstone.config import load_config
from touchstone.errors import TouchstoneError, explain
from touchstone.evaluation import Evaluation, RunOutcome
from touchstone.locations import dagster_settings, sample_config, sample_output
from touchstone.progress import report_stage, report_step, report_warning
from touchstone.storage.files import refuse_links
from touchstone.storage.store import DAGSTER_FOLDER, digest

PROCESS = "touchstone/process"
# A tick downloads what is new in object storage; Dagster would give up after a minute.
_TICKS = dict.fromkeys(("DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "DAGSTER_SCHEDULE_GRPC_TIMEOUT_SECONDS"), "600")
# The command `dagster-daemon`, whose script need not be in the folder of this interpreter.
_DAEMON = """
import sys
from importlib.metadata import distribution
sys.argv[0] = "dagster-daemon"
[command] = distribution("dagster").entry_points.select(name=sys.argv[0])
command.load()()
"""
_DEFAULT_CONFIG = Path("evaluation_config.json")
LOGGER = "progress"
_STEP_ENDS = (dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.STEP_SKIPPED)
_LOOK_EVERY_SECONDS = 0.2
_PATIENCE_SECONDS = 60
_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def dagster_home(config_file: Path, output_dir: Path | None = None) -> Path:
    """DAGSTER_HOME: the user's if set, otherwise a folder beside the output, one per output and configuration file.

    Models are partitions and figures are plotted over time, so two evaluations must not share a history. The name
    depends on the relative location of the files, so that a project keeps its history when it is moved.
    """
    chosen = os.environ.get("DAGSTER_HOME")
    home = Path(chosen).absolute() if chosen else _default_home(config_file, output_dir)
    if not chosen:
        # It comes with the project, which may be from elsewhere; Dagster would write through links in it.
        refuse_links(home.parent if home.parent.is_symlink() else home)
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not chosen:
            _write_settings(home / "dagster.yaml")
    except OSError as error:
        hint = "set DAGSTER_HOME to a writable folder"
        raise TouchstoneError(f"{home}: cannot be created for Dagster's history ({error.strerror}); {hint}") from None
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def _write_settings(settings: Path) -> None:
    """Have a home use our settings: others may come from elsewhere, and Dagster imports the classes they name."""
    ours = dagster_settings().read_bytes()
    if not settings.is_file() or settings.read_bytes() != ours:
        settings.unlink(missing_ok=True)
        settings.write_bytes(ours)


def _default_home(config_file: Path, output_dir: Path | None) -> Path:
    output = load_config(config_file, output_dir).output_dir
    place = config_file.resolve()
    # Results of named files have their configuration with them; nothing else is written beside the files.
    beside = output if place.parent == output else output.parent
    return beside / DAGSTER_FOLDER / f"{output.name}-{digest(os.path.relpath(place, output.parent))[:8]}"


class ProgressHandler(logging.Handler):
    """Reports each stage that starts, which is a step of the run, the number of finished ones, and warnings."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._done = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one event or message of the run."""
        event: dg.DagsterEvent | None = getattr(record, "dagster_meta", {}).get("dagster_event")
        if event is None:
            self._warn(record)
        elif event.event_type == dg.DagsterEventType.STEP_START:
            report_stage(str(event.step_key), self._done, len(STAGES))
        elif event.event_type in _STEP_ENDS:
            self._done += 1

    def _warn(self, record: logging.LogRecord) -> None:
        message = getattr(record, "dagster_meta", {}).get("orig_message") or record.getMessage()
        if record.levelno < logging.WARNING or message.startswith("Dependencies for step"):
            return
        if not report_warning(message):
            print(f"warning: {message}", file=sys.stderr)


@dg.logger(config_schema={})
def progress_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """A logger whose only handler reports progress."""
    logger = logging.getLogger("touchstone.progress")
    logger.handlers = [ProgressHandler()]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return logger


def run_evaluation(evaluation: Evaluation, config_file: Path, instance: dg.DagsterInstance | None = None) -> RunOutcome:
    """Execute the job in this process, on the given Dagster instance or that of DAGSTER_HOME."""
    if instance is None:
        dagster_home(config_file, evaluation.config.output_dir)
    # SQLAlchemy logs a traceback on Ctrl-C while a connection closes; Ctrl-C is handled below.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL + 1)
    report_step("starting the run")
    job = _job(evaluation)
    with instance or dg.DagsterInstance.get() as dagster:
        _fail_orphaned_runs(dagster)
        result = job.execute_in_process(
            instance=dagster,
            tags={PROCESS: f"{socket.gethostname()}/{os.getpid()}"},
            run_config={"loggers": {LOGGER: {}}},
            raise_on_error=False,
        )
        outcome = _read_outcome(result, evaluation)
        return (
            replace(outcome, notes=list(remove_expired(evaluation.config, dagster))) if outcome.published else outcome
        )


def _job(evaluation: Evaluation) -> dg.JobDefinition:
    """The job of the definitions as a chain of ops, see `assets.stages`."""

    @dg.job(
        name=EVALUATE,
        resource_defs={"evaluation": prepared(evaluation)},
        executor_def=dg.in_process_executor,
        logger_defs={LOGGER: progress_logger},
    )
    def evaluate() -> None:
        done: dict[str, Any] = {}
        for group in STAGES:
            done = {"after": stage_op(group)(**done)}

    return evaluate


def _fail_orphaned_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs whose process was killed as failed in Dagster's history."""
    unfinished = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(unfinished):
        host, _, process = run.tags.get(PROCESS, "").rpartition("/")
        if host == socket.gethostname() and not _is_alive(int(process)):
            instance.report_run_failed(run, "The process of this run was killed.")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_outcome(result: dg.ExecuteInProcessResult, evaluation: Evaluation) -> RunOutcome:
    errors = {event.step_key: event.step_failure_data.error for event in result.get_step_failure_events()}
    failures = [
        f"{evaluation.run_log.failed_step or stage}: {_innermost(error)}"
        for stage, error in errors.items()
        # A failed check fails its step; its message is already among the checks.
        if CheckFailed.__name__ not in str(error)
    ]
    if any(dg.DagsterExecutionInterruptedError.__name__ in failure for failure in failures):
        # Dagster turns Ctrl-C into a failed step; turn it back.
        raise KeyboardInterrupt
    return evaluation.outcome(failures)


def _innermost(error: object) -> str:
    while (cause := getattr(error, "cause", None)) is not None:
        error = cause
    message = str(getattr(error, "message", error)).strip()
    # Messages written for the user need no class name prefix.
    plain = re.sub(r"^touchstone\.errors\.\w+: ", "", message)
    explained = explain(message) if plain == message else None
    return explained or (plain.splitlines()[0] if plain else "unknown error")


def start_ui(config_file: Path | None, host: str, port: int) -> None:
    """Run Dagster's daemon and its webserver, behind our guard, until Ctrl-C or SIGTERM."""
    config_file, output_dir = ui_evaluation(config_file)
    home = dagster_home(config_file, output_dir)
    claim = _claim(home, f"http://{host}:{port}")
    os.environ[CONFIG_VARIABLE] = str(config_file.absolute())
    os.environ.pop(OUTPUT_VARIABLE, None)
    if output_dir is not None:
        os.environ[OUTPUT_VARIABLE] = str(output_dir)
    os.environ |= {"DAGSTER_WEBSERVER_HOST": host, "DAGSTER_WEBSERVER_PORT": str(port)}
    for name, value in _TICKS.items():
        os.environ.setdefault(name, value)
    # Dagster and the processes it starts import modules and read `.env` from the current folder, so that it must be
    # neither the home nor the folder of the configuration: they may come from elsewhere.
    os.chdir(home.anchor)
    # Not `dagster dev`: nothing can be put in front of its webserver, and its code location, which runs whatever it is
    # sent, has a socket in a folder of everyone.
    with TemporaryDirectory(prefix="touchstone-ui-") as private, Services(claim) as services:
        code, workspace = Path(private, "code"), Path(private, "workspace.yaml")
        location = {"grpc_server": {"socket": str(code), "location_name": "touchstone"}}
        workspace.write_text(json.dumps({"load_from": [location]}))
        python, options = [sys.executable, "-P"], ["--workspace", str(workspace)]
        grpc = ["-m", "dagster", "api", "grpc", "--lazy-load-user-code", "--log-level", "warning"]
        served = ["--socket", str(code), "--module-name", "pipelines.definitions", "--location-name", "touchstone"]
        services.start("code location", *python, *grpc, *served)
        while not code.exists():
            services.watch()
        services.start("webserver", *python, "-m", "pipelines.webserver", *options)
        services.start("daemon", *python, "-c", _DAEMON, "run", *options)
        while True:
            services.watch()


def ui_evaluation(config_file: Path | None) -> tuple[Path, Path | None]:
    """The configuration file that the UI shows, and an output folder that overrides the configured one.

    The default is the configuration file in the current folder, otherwise the sample.
    """
    if config_file is not None:
        return config_file, None
    if _DEFAULT_CONFIG.is_file():
        return _DEFAULT_CONFIG, None
    return sample_config(), sample_output()


def _claim(home: Path, url: str) -> int:
    """Prevent a second UI on the same Dagster instance: their daemons would launch everything twice.

    The lock belongs to the open file, which is returned: it holds until every process that has it open has ended.
    """
    claim = os.open(home / "touchstone_ui.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        running = os.read(claim, 200).decode()
        raise TouchstoneError(f"{home}: a UI is already running on this Dagster home: {running}") from None
    os.ftruncate(claim, 0)
    os.write(claim, f"{url} (process {os.getpid()})".encode())
    return claim


class Services:
    """Services by name. `kept_open` is a descriptor that stays open until the last of them has ended."""

    def __init__(self, kept_open: int) -> None:
        self._kept_open = kept_open
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, _interrupt) for number in _STOP}
        return self

    def start(self, name: str, *command: str) -> None:
        """Start a service in a session of its own: Ctrl-C in a terminal must reach this process only."""
        self._running[name] = subprocess.Popen(
            command, start_new_session=True, pass_fds=[self._kept_open], preexec_fn=_end_with_parent
        )

    def watch(self) -> None:
        """Wait a moment; an error if a service has ended."""
        time.sleep(_LOOK_EVERY_SECONDS)
        for name, process in self._running.items():
            if process.poll() is not None:
                raise TouchstoneError(f"Dagster's {name} ended with exit code {process.returncode}; see above why")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """End all services with what they started. Ctrl-C is the usual end."""
        for number in _STOP:
            signal.signal(number, signal.SIG_IGN)
        for process in self._running.values():
            _signal_group(process, signal.SIGTERM)
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_SECONDS)
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        return kind is KeyboardInterrupt


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _end_with_parent() -> None:
    """Have the kernel end a service where this process is killed: the daemon would go on to start runs."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
