"""Notices a fix that looks at what judges it: the frames of its callers, the code, files and values of the tests.

Such a fix can know whether it is in a control, so no control can judge it, and its pass is undecided. Python's audit
events tell. What libraries do for themselves does not count: logging, warnings and namedtuples look at frames, too.
Where no event tells, as in C or another program, the files of the tests are empty in a control.
"""

import os
import sys
import sysconfig
import types
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone.text import python_lines

_CODE = {"compile", "code.__new__"}
_FRAMES = {
    "sys.addaudithook",
    "sys._getframe",
    "sys._current_frames",
    "sys.settrace",
    "sys.setprofile",
    "sys.monitoring.register_callback",
}
# A copy of the process can try an answer.
_OTHERS = {"os.fork", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "ctypes.cdata", "ctypes.PyObj_FromPtr"}
_FILES = {"open", "os.remove", "os.rename", "os.truncate"}
_EVENTS = {*_FILES, *_CODE, "object.__getattr__", "object.__setattr__", "ctypes.dlsym", *_FRAMES, *_OTHERS}
PARTS_OF_FUNCTIONS = {"__code__", "__defaults__", "__kwdefaults__"}
_FRAMES_OF_OBJECTS = {"tb_frame", "gi_frame", "cr_frame", "ag_frame", "__code__"}
# `logging.currentframe` is one of these, and what `asyncio.Task.get_stack` calls.
_RETURNS = ("currentframe", "<lambda>", "_task_get_stack")
# Modules that look on behalf of their callers.
_IN_BETWEEN = {"_pytest", "inspect", "traceback", "linecache", "ctypes", "gc", "threading", "pkgutil", "pydoc"}
_LIBRARY = (*{f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")}, "<frozen")
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_CREAT
# Bound here, because a fix may replace them.
_frame_of, _stat = sys._getframe, os.stat


def _file_of(path: Any) -> tuple[int, int] | None:
    """The identity of a file, the same under each of its names; None if there is no such file."""
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def known_namespaces() -> frozenset[int]:
    """The modules that are loaded before any fix."""
    return frozenset(id(vars(module)) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType))


@dataclass(eq=False)
class Watch:
    """Calls `doubt` with a reason and a line of the fix whenever that looks at the judge's side.

    `judge_files` are paths, `tests` the names of test functions, `texts` the files of the problem, `known` the
    namespaces of modules that were loaded before the fix.
    """

    is_fix: Callable[[str], bool]
    judge_files: Collection[str]
    tests: Collection[str]
    texts: Mapping[str, bytes]
    doubt: Callable[[str, str], None]
    known: frozenset[int]
    _busy: bool = False
    _process: int = 0
    _same: frozenset[tuple[int, int]] = frozenset()
    _folders: frozenset[tuple[int, int]] = frozenset()

    def start(self, root: Path) -> None:
        """Watch from now on, until the process ends."""
        folders = {one for file in self.judge_files for one in Path(file).parents if one.is_relative_to(root)}
        self._folders = frozenset(filter(None, map(_file_of, folders)))
        self._same = self._folders.union(filter(None, map(_file_of, self.judge_files)))
        self._process = os.getpid()
        with suppress(RuntimeError):
            sys.addaudithook(self._audit)

    def watch_module(self, module: types.ModuleType) -> None:
        """Watch who reads a value of a module of the tests."""

        class Watched(types.ModuleType):
            def __getattribute__(module, name: str) -> Any:  # noqa: N805
                value = object.__getattribute__(module, name)
                caller = _frame_of(1)
                # Libraries that store objects find classes and functions by names that they are given.
                given = name not in (*caller.f_code.co_names, *caller.f_code.co_consts)
                code = isinstance(value, types.ModuleType) or (given and isinstance(value, type | types.FunctionType))
                if name == "__dict__" or not (code or name.startswith("__")):
                    self._note("import", caller)
                return value

        with suppress(TypeError):
            module.__class__ = Watched

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        # First what happens most often.
        if event not in _EVENTS or (event == "object.__getattr__" and arguments[1] not in _FRAMES_OF_OBJECTS):
            return
        if self._busy:
            return
        self._busy = True
        try:
            if self._concerns_judges(event, arguments):
                self._note(event, _frame_of(1))
        except PermissionError:
            raise
        except Exception:
            return
        finally:
            self._busy = False

    def _concerns_judges(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event in _CODE:
            # Code in the name of a library would pass for that.
            return str(arguments[1]).startswith(_LIBRARY)
        if event in _FILES:
            return any(self._is_judges(one, arguments) for one in arguments[:2] if isinstance(one, str | bytes))
        if event == "object.__setattr__":
            owner, name = arguments[:2]
            return name in PARTS_OF_FUNCTIONS and not self.is_fix(owner.__code__.co_filename)
        if event == "object.__getattr__":
            owner, name = arguments
            if name == "__code__":
                # Libraries read it for signatures.
                return getattr(owner, "__name__", "") in self.tests and not self._is_library(_frame_of(2))
            # Only a generator that runs has a caller.
            return name == "tb_frame" or any(getattr(owner, f"{kind}_running", False) for kind in ("gi", "cr", "ag"))
        return event != "ctypes.dlsym" or isinstance(arguments[0], sys.modules["ctypes"].PyDLL)

    def _is_judges(self, path: str | bytes, arguments: tuple[Any, ...]) -> bool:
        """Whether a file is of the judge's side, and is code, about to be changed, or a folder to find others in."""
        found = _file_of(path)
        reads = len(arguments) == 3 and isinstance(arguments[2], int) and not arguments[2] & _CHANGES
        code = found in self._folders or os.fsdecode(path).endswith(".py")
        return found in self._same and (code or not reads)

    def _note(self, event: str, caller: types.FrameType | None) -> None:
        """Doubt the fix if it is the one who looks."""
        while caller is not None and self._is_library(caller):
            name = str(caller.f_globals.get("__name__", "")).partition(".")[0]
            returned = caller.f_code.co_name in _RETURNS
            if event not in _FILES and name not in _IN_BETWEEN and not returned:
                return
            if name == "traceback" and event not in _FRAMES:
                return
            caller = caller.f_back
        # Code that is made at run time has no file; it is the fix's, unless it started this process.
        made = caller is not None and caller.f_back is not None and caller.f_code.co_filename.startswith("<")
        if caller is not None and (made or self.is_fix(caller.f_code.co_filename)):
            file, line = caller.f_code.co_filename, caller.f_lineno
            lines = python_lines(self.texts.get(file, b""))
            text = lines[line - 1].strip() if 0 < line <= len(lines) else event
            if os.getpid() != self._process:
                # No doubt of a forked process is heard, so it must not look.
                raise PermissionError(event)
            self.doubt(f"{os.path.basename(file)} looks at what judges it: {text[:100]}", text)  # noqa: PTH119

    def _is_library(self, frame: types.FrameType) -> bool:
        file = frame.f_code.co_filename
        return file.startswith(_LIBRARY) or (id(frame.f_globals) in self.known and not file.startswith("<"))
