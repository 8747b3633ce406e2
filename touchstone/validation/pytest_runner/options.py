"""Which `addopts` of a problem's configuration are used. What would escape, hide results or stop early is ignored."""

from collections.abc import Callable, Sequence

# Options and the number of values that follow. They load plugins, look elsewhere, write files, wait for a person,
# stop before the last test, or run nothing.
_IGNORED = {
    **dict.fromkeys(("-p", "-c", "--assert", "--config-file", "--rootdir", "--confcutdir", "--basetemp"), 1),
    **dict.fromkeys(("--maxfail", "--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix", "--debug"), 1),
    **dict.fromkeys(("--log-file", "--pastebin", "--pdbcls", "--cache-show", "-o", "--override-ini"), 1),
    **dict.fromkeys(("-x", "--exitfirst", "--pdb", "--trace", "--lf", "--last-failed", "--ff", "--failed-first"), 0),
    **dict.fromkeys(("--nf", "--new-first", "--cache-clear", "--sw", "--stepwise", "--stepwise-skip"), 0),
    **dict.fromkeys(("--collect-only", "--co", "--setup-only", "--setup-plan", "--setup-show", "--fixtures"), 0),
    **dict.fromkeys(("--help", "-h", "--version", "-V", "--markers", "--fixtures-per-test"), 0),
    **dict.fromkeys(("--noconftest", "--pyargs", "--disable-plugin-autoload"), 0),
}


def usable_options(options: Sequence[str], is_known: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Split `addopts` into what is used and what is ignored: plugins, other folders, unknown options.

    >>> usable_options(["-ra", "-p", "xdist", "-n", "2", "--maxfail=1", "-m", "not slow"], {"-m", "-ra"}.__contains__)
    (['-ra', '-m', 'not slow'], ['-p xdist', '-n 2', '--maxfail=1'])
    """
    used: list[str] = []
    ignored: list[str] = []
    waiting = list(options)
    while waiting:
        option = waiting.pop(0)
        name = option.partition("=")[0]
        short = name[:2] if not name.startswith("--") and name[:2] in _IGNORED else name
        if short in _IGNORED or (option.startswith("-") and not is_known(name)):
            values = _IGNORED.get(short, 1) if "=" not in option and short == name else 0
            taken = [waiting.pop(0) for _ in range(values) if waiting and not waiting[0].startswith("-")]
            ignored.append(" ".join([option, *taken]))
        elif option.startswith("-") or (used and used[-1].startswith("-")):
            used.append(option)
        else:
            ignored.append(option)
    return used, ignored
