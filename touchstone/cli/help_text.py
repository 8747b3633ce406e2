"""What `--help` says besides each command's own words: the panel that a command is listed in, and examples."""

PANELS = {
    "Evaluate": ("run", "pass-at-k", "inspect-files", "import", "init", "synth"),
    "Look at results": ("report", "site", "explore", "audit", "show", "rule", "sql", "tables", "chart", "export"),
    "Compare": ("compare", "snapshots", "history", "blame", "plan"),
    "Validate fixes": ("validate", "validators", "environments", "cache"),
    "Operate": ("ui", "workers", "doctor"),
}
ORDER = [command for commands in PANELS.values() for command in commands]

EXAMPLES = {
    "run": ("touchstone run .", "touchstone run --config evaluation_config.json --only atlas-large"),
    "pass-at-k": ("touchstone pass-at-k .", "touchstone pass-at-k results.jsonl --k-values 1 5 10 --format csv"),
    "inspect-files": ("touchstone inspect-files logs/", "touchstone inspect-files --why results.json"),
    "import human-eval": (
        "touchstone import human-eval new --problems HumanEval.jsonl.gz \\\n      --samples samples.jsonl",
    ),
    "import forgetest": ("touchstone import forgetest new --eval-set eval-sets --samples report.json",),
    "import outputs": (
        "touchstone import outputs new --problems problems.csv \\\n      --clones clones --outputs gpt-4_outputs.jsonl",
    ),
    "import swe-bench": (
        "touchstone import swe-bench new --instances lite.jsonl \\\n      --predictions p.jsonl --clones clones",
    ),
    "init": ("touchstone init my_evaluation",),
    "synth": ("touchstone synth --output data --problems 50 --model good=0.8 bad=0.3",),
    "report": ("touchstone report --open", "touchstone report --save-to results.md"),
    "site": ("touchstone site results/* --output public",),
    "explore": ("touchstone explore", "touchstone explore --data results --no-open"),
    "audit": ("touchstone audit", "touchstone audit --data results", "touchstone audit logs/"),
    "show": ("touchstone show atlas-large tf-014", "touchstone show atlas-large tf-014 3 --tier T1"),
    "rule": (
        'touchstone rule atlas-large tf-014 3 failed --by "R. Li" \\\n      --reason "deletes the resource"',
        'touchstone rule tf-014 exclude --by "R. Li" --reason "its test is wrong"',
    ),
    "sql": ('touchstone sql "SELECT model, k, pass_at_k FROM pass_at_k"',),
    "tables": ("touchstone tables",),
    "chart": ("touchstone chart leaderboard --save-to leaderboard.svg", "touchstone chart --list"),
    "export": ("touchstone export pass_at_k --format markdown", "touchstone export --to inspect --save-to new"),
    "compare": (
        "touchstone compare before.eval after.eval",
        "touchstone compare previous latest --fail-on-verdict worse",
    ),
    "snapshots list": ("touchstone snapshots list --data results",),
    "snapshots pin": ("touchstone snapshots pin latest baseline",),
    "snapshots prune": ("touchstone snapshots prune --keep 20",),
    "history": ("touchstone history", "touchstone history --data results --json"),
    "blame": ("touchstone blame --from baseline --to latest",),
    "plan": ("touchstone plan --detect 3%", "touchstone plan --detect 0.03 --rate 0.6 --icc 0.5"),
    "validate": ("touchstone validate --problem tf-014 --fix fixed.tf",),
    "validators": ("touchstone validators",),
    "environments prepare": ("touchstone environments prepare --config evaluation_config.json",),
    "environments list": ("touchstone environments list",),
    "cache stats": ("touchstone cache stats --data results",),
    "cache prune": ("touchstone cache prune --data results --unused-for-days 30",),
    "ui": ("touchstone ui", "touchstone ui --config evaluation_config.json --port 3001"),
    "workers start": ("touchstone workers start --count 4",),
    "workers check": ("touchstone workers check tls://host:8786",),
    "doctor": ("touchstone doctor --deep",),
}


def panel_of(command: str) -> str | None:
    """The panel that lists a command.

    >>> panel_of("sql")
    'Look at results'
    """
    return next((panel for panel, commands in PANELS.items() if command in commands), None)


def examples_of(command: str) -> str | None:
    """The examples as the last lines of a command's help; `\\b` keeps the lines as they are."""
    lines = EXAMPLES.get(command)
    return None if lines is None else "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
