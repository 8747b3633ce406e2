"""A model's steps, from the transcripts of other tools: each as a few lines that rules of the audit can match.

A line is an action and its object: `run: git log`, `read: a.py`, `edit: a.py`, `create: a.py`, `fetch: https://…`,
`search: words`. The output of a step is kept only while the next ones are read. Values come from untrusted files, so
anything of another type than expected is passed over.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from touchstone.ingest.adapters.json_files import inside, list_of

_RUN = ("command", "cmd", "commands", "code", "script", "keystrokes", "keys", "input", "bash")
_PATHS = ("path", "file_path", "filepath", "filename", "file", "target_file", "absolute_path", "notebook_path")
_URLS = ("url", "urls")
_QUERIES = ("query", "q", "search_term", "search_query", "pattern", "regex", "keyword")
_PATCHES = ("patch", "diff", "patch_text")
# The commands of editor tools, and what they do to a file.
_EDITOR = {"view": "read", "create": "create", "str_replace": "edit", "insert": "edit", "undo_edit": "edit"}
_EDITOR_CALL = re.compile(
    r"\s*(?:str_replace_editor|str_replace_based_edit_tool|edit_anthropic|editor)\s+"
    r"(view|create|str_replace|insert|undo_edit)\s+(\S+)"
)
_FILE_TOOL = re.compile(r"\s*(open|create)\s+([\w./~-]+)(?:\s+\d+)?\s*")
_CREATES, _EDITS = re.compile("write|create"), re.compile("edit|replace|insert|patch|update|delete|append|modify")
_HEREDOC = re.compile(r"<<-?\s*\\?['\"]?(\w+)['\"]?")
_WRITES_FILE = re.compile(r"\s*(?:\S+\s*=\S+\s+|cd\s+\S+\s*&&\s*)*(?:cat|tee)\b")
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+?)\s*$", re.MULTILINE)
_FENCED = re.compile(r"```(?:bash|sh|shell|mswea_bash_command)\s*\n(.*?)```", re.DOTALL)
_ATTACHMENT = "attachment://"
_KEY_PRESSES = re.compile(r"(?:Enter|Escape|Tab|Space|Up|Down|Left|Right|[CM]-\S)")
# Of one step; a longer one is a file that is written.
_MAX_LINES = 2_000


class Step(NamedTuple):
    """One step: its place in the transcript, what the model did, and what it saw then."""

    number: int
    lines: tuple[str, ...]
    output: str = ""


def shell_lines(command: str) -> Iterator[str]:
    """The lines of a shell command; texts that it writes to files are left out.

    >>> list(shell_lines("cat > a.py <<EOF\\ngit log --all\\nEOF\\npython a.py"))
    ['run: cat > a.py <<EOF', 'run: python a.py']
    """
    if found := _EDITOR_CALL.match(command):
        yield f"{_EDITOR[found[1]]}: {found[2]}"
        return
    if found := _FILE_TOOL.fullmatch(command):
        yield f"{'read' if found[1] == 'open' else 'create'}: {found[2]}"
        return
    yield from _patched_lines(command)
    until = ""
    for line in command.replace("\\\n", " ").splitlines()[:_MAX_LINES]:
        if until:
            until = "" if line.strip() == until else until
            continue
        if line.strip():
            yield f"run: {line.strip()}"
        opened = _HEREDOC.search(line)
        until = opened[1] if opened and _WRITES_FILE.match(line) else ""


def _patched_lines(text: str) -> Iterator[str]:
    return (f"{'create' if kind == 'Add' else 'edit'}: {path}" for kind, path in _PATCHED.findall(text))


def call_lines(name: object, arguments: object) -> Iterator[str]:
    """The lines of a call of a tool, whatever its arguments are called.

    >>> list(call_lines("bash", '{"command": "git log"}')), list(call_lines("edit_file", {"path": "a.py"}))
    (['run: git log'], ['edit: a.py'])
    >>> list(call_lines("str_replace_editor", {"command": "view", "path": "a.py"}))
    ['read: a.py']
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            yield from shell_lines(str(arguments))
            return
    given = inside(arguments)
    tool, command = str(name).lower(), given.get("command")
    path = next((str(given[key]) for key in _PATHS if isinstance(given.get(key), str)), None)
    if path is not None and isinstance(command, str) and command in _EDITOR:
        yield f"{_EDITOR[command]}: {path}"
        return
    for key in _RUN:
        yield from _run_lines(given.get(key))
    for key in _PATCHES:
        yield from _patched_lines(str(given.get(key) or ""))
    if path is not None:
        yield f"{'create' if _CREATES.search(tool) else 'edit' if _EDITS.search(tool) else 'read'}: {path}"
    for action, keys in (("fetch", _URLS), ("search", _QUERIES)):
        for value in (given.get(key) for key in keys):
            yield from (f"{action}: {each}" for each in _texts(value))


def _run_lines(value: object) -> Iterator[str]:
    """The lines of a command: a text, a list of arguments, or a list of texts and of objects with key presses."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        value = " ".join(value)
    for each in value if isinstance(value, list) else [value]:
        text = inside(each).get("keystrokes") or inside(each).get("command") if isinstance(each, dict) else each
        if isinstance(text, str):
            yield from shell_lines(text)


def _texts(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def text_in(content: object) -> str:
    """The text of a message: a text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = (inside(part) for part in list_of(content))
    return "\n".join(str(part.get("text") or part.get("content") or "") for part in parts)


def message_steps(
    messages: object, *, fenced: bool = False, attachments: Mapping[str, object] | None = None
) -> Iterator[Step]:
    """The steps of a chat, numbered by message. `fenced`: without a call, a block of shell code is the command."""
    for number, value in enumerate(list_of(messages), start=1):
        message = inside(value)
        if message.get("role") != "assistant":
            yield Step(number, (), text_in(message.get("content")))
            continue
        lines = [line for call in list_of(message.get("tool_calls")) for line in _tool_call_lines(call, attachments)]
        for part in map(inside, list_of(message.get("content"))):
            if part.get("type") == "tool_use":
                lines += call_lines(part.get("name"), part.get("input"))
        if fenced and not lines:
            blocks = _FENCED.findall(text_in(message.get("content")))
            lines = [line for block in blocks for line in shell_lines(block)]
        yield Step(number, tuple(lines))


def _tool_call_lines(value: object, attachments: Mapping[str, object] | None) -> Iterator[str]:
    """The lines of a call as OpenAI, Inspect (`function` is a name) and ATIF (`function_name`) write it."""
    call = inside(value)
    function = call.get("function")
    if isinstance(function, dict):
        return call_lines(function.get("name"), function.get("arguments"))
    arguments = call.get("arguments")
    if attachments and isinstance(arguments, dict):
        arguments = {key: _attached(each, attachments) for key, each in arguments.items()}
    return call_lines(function or call.get("function_name") or call.get("name"), arguments or call.get("input"))


def _attached(value: object, attachments: Mapping[str, object]) -> object:
    """Inspect keeps long texts apart."""
    is_attached = isinstance(value, str) and value.startswith(_ATTACHMENT)
    return attachments.get(str(value).removeprefix(_ATTACHMENT), value) if is_attached else value


def trajectory_steps(trajectory: object) -> Iterator[Step]:
    """The steps of a SWE-agent trajectory."""
    for number, value in enumerate(list_of(trajectory), start=1):
        step = inside(value)
        action = step.get("action")
        lines = tuple(shell_lines(action)) if isinstance(action, str) else ()
        yield Step(number, lines, text_in(step.get("observation")))


def atif_steps(steps: object) -> Iterator[Step]:
    """The steps of a trajectory in Harbor's interchange format (ATIF)."""
    for place, value in enumerate(list_of(steps), start=1):
        step = inside(value)
        seen = "\n".join(
            text_in(inside(one).get("content")) for one in list_of(inside(step, "observation").get("results"))
        )
        if step.get("source") != "agent":
            yield Step(place, (), f"{text_in(step.get('message'))}\n{seen}")
            continue
        lines = [line for call in list_of(step.get("tool_calls")) for line in _tool_call_lines(call, None)]
        yield Step(place, tuple(lines), seen)


def event_steps(history: object) -> Iterator[Step]:
    """The steps of an OpenHands history: events, or pairs of an action and what was observed."""
    events: Iterable[object] = list_of(history)
    flat = (each for event in events for each in (event if isinstance(event, list) else [event]))
    for number, value in enumerate(flat, start=1):
        event = inside(value)
        action = event.get("action")
        if event.get("source") in (None, "agent") and isinstance(action, dict):
            yield Step(number, tuple(call_lines(event.get("tool_name") or action.get("kind"), action)))
        elif event.get("source") in (None, "agent") and isinstance(action, str):
            yield Step(number, tuple(_openhands_lines(action, inside(event, "args"))))
        else:
            observed = event.get("observation")
            content = inside(observed).get("content") if isinstance(observed, dict) else event.get("content")
            yield Step(number, (), text_in(content) or text_in(event.get("message")))


def _openhands_lines(action: str, arguments: Mapping[str, object]) -> Iterator[str]:
    if action in ("read", "write", "edit"):
        return call_lines(action, {key: arguments.get(key) for key in ("path", "command")})
    if action == "call_tool_mcp":
        return call_lines(arguments.get("name"), arguments.get("arguments"))
    if action.startswith("browse"):
        shown = re.findall(r"https?://[^\s'\")]+", str(arguments.get("browser_actions") or ""))
        return call_lines(action, {"url": arguments.get("url"), "urls": shown})
    known = {"run": ("command",), "run_ipython": ("code",)}.get(action, ())
    return call_lines(action, {key: arguments.get(key) for key in known})


def typed_lines(text: str) -> Iterator[str]:
    """The commands in a log of key presses: a text, or Python's list of texts and keys, on each line.

    >>> list(typed_lines("['git log', 'Enter']\\nls"))
    ['run: git log', 'run: ls']
    """
    for line in text.splitlines():
        try:
            keys = ast.literal_eval(line) if line[:1] in "['\"" else line
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            keys = line
        for each in _texts(keys):
            if not _KEY_PRESSES.fullmatch(each):
                yield from shell_lines(each)
