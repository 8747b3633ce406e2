"""Writes the sample: forty problems, three invented models, and a handful of rows that ingest must refuse.

    python data/sample/make_sample.py

The problems are written down below; what the models did with them is drawn from a fixed seed, so that the
same bytes come out each time and on each machine. Every row holds together: what passed compiled and failed
no test, what it cost follows from its tokens, and it took longer than the model needed to answer. The bad
rows are listed in `DEFECTS`. Plain invented outcomes without all this are made by `touchstone.ingest.synthetic`.
"""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SEED = 20250314
TIERS = ("T0", "T1")
ITERATIONS = 20
TIME_LIMIT_SECONDS = 180


class Problem(NamedTuple):
    """One row of problems.csv, less its suite."""

    oid: str
    filename: str
    project_name: str
    difficulty: str
    severity: str
    summary: str


@dataclass(frozen=True)
class Model:
    """An invented model. Prices are thousandths of a US dollar per million tokens, to reckon in integers."""

    name: str
    llm_name: str
    odds: dict[str, float]
    judged: tuple[float, float]
    input_price: int
    output_price: int
    cache_read_price: int
    tokens_per_second: int
    verbosity: float
    failures: dict[str, int]


class Defect(NamedTuple):
    """A row to spoil: in whose file, how, and which attempt."""

    model: str
    kind: str
    tier: str
    oid: str
    iteration: int


PROBLEMS_HEADER = ("oid", "filename", "suite", "project_name", "difficulty", "severity", "summary")

FIXES_HEADER = (
    "oid",
    "iteration_id",
    "tier",
    "plausible_fix",
    "compiled",
    "tests_passed",
    "tests_failed",
    "lint_warnings",
    "weighted_score",
    "classification",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cost_usd",
    "duration_seconds",
    "latency_ms",
    "llm_name",
    "prompt_version",
)

SUITES = {"tf": "terraform", "py": "python"}

# Columns as in `Problem`. A pilcrow is a line break in the summary.
PROBLEM_TABLE = """
tf-001 | net/outputs.tf | harbour-vpc   | easy   | low      | Output refers to a subnet that was renamed
tf-002 | net/main.tf    | harbour-vpc   | medium | high     | Route table is attached before its gateway
tf-003 | net/peering.tf | harbour-vpc   | hard   | high     | Peering is accepted in the wrong region
tf-004 | variables.tf   | orchard-dns   | easy   | low      | Variable has a default of the wrong type
tf-005 | records.tf     | orchard-dns   | medium | medium   | for_each over a list instead of a set
tf-006 | iam/policy.tf  | lantern-iam   | medium | critical | Policy allows every action on every bucket
tf-007 | iam/roles.tf   | lantern-iam   | hard   | critical | Trusted principal was removed, so role is dead
tf-008 | bucket.tf      | quarry-files  | easy   | medium   | Versioning block is no longer accepted
tf-009 | lifecycle.tf   | quarry-files  | medium | low      | Lifecycle rule has no filter
tf-010 | cluster.tf     | meadow-k8s    | hard   | high     | Node group and cluster depend on each other
tf-011 | addons.tf      | meadow-addon  | medium | medium   | Add-on version is not offered by the cluster
tf-012 | alarms.tf      | beacon-alert  | easy   | low      | Alarm threshold is a string
tf-013 | database.tf    | tide-db       | medium | high     | Password is written in clear text
tf-014 | replica.tf     | tide-replica  | hard   | medium   | Parameter group is of another engine version
tf-015 | providers.tf   | copper-multi  | easy   | medium   | Provider alias is used but never declared
tf-016 | modules.tf     | copper-multi  | medium | medium   | Module call lacks a required argument
tf-017 | state.tf       | glacier-state | hard   | critical | Two resources share an address ¶ after a move
tf-018 | queue.tf       | relay-queue   | easy   | low      | Name ends in .fifo but fifo_queue is unset
tf-019 | lambda.tf      | sparrow-jobs  | medium | medium   | Archive is hashed before it is built
tf-020 | certificate.tf | signet-tls    | hard   | high     | Certificate is validated before its zone exists
py-001 | src/slugs.py   | papertrail    | easy   | low      | Slug keeps a trailing dash
py-002 | src/pages.py   | papertrail    | medium | medium   | Last page is lost where the count divides evenly
py-003 | src/parse.py   | papertrail    | hard   | medium   | Quoted line breaks split a record in two
py-004 | calendar.py    | almanac       | easy   | low      | Leap years are off for whole centuries
py-005 | zones.py       | almanac       | hard   | high     | Hour is counted twice when summer time ends
py-006 | retry.py       | ferryman      | medium | high     | Back-off never resets after a success
py-007 | pool.py        | ferryman      | hard   | critical | Connection is handed out twice under load
py-008 | money.py       | ledgerline    | medium | critical | Totals are rounded before they are summed
py-009 | export.py      | ledgerline    | easy   | medium   | Amounts such as “1,000” lose their quotes
py-010 | tree.py        | thicket       | medium | medium   | Deleting the root loses its right branch
py-011 | walk.py        | bramble       | easy   | low      | Generator is used up by the emptiness check
py-012 | cache.py       | larder        | medium | medium   | Mutable default is shared between calls
py-013 | config.py      | pantry        | easy   | low      | Missing key raises instead of a default
py-014 | tokens.py      | inkwell       | medium | low      | Combining characters are counted as letters
py-015 | stats.py       | plumbline     | medium | medium   | Median of an even count takes the upper value
py-016 | matrix.py      | plumbline     | hard   | medium   | Transposing a ragged matrix drops cells
py-017 | upload.py      | causeway      | medium | critical | Path of an upload may leave its folder
py-018 | login.py       | gatehouse     | hard   | critical | Comparison of secrets takes time that tells
py-019 | schedule.py    | waterwheel    | hard   | high     | Two workers claim one job after a clock step
py-020 | colours.py     | swatch        | easy   | low      | Short hexadecimal colours are refused
"""

SOLVED_BY_NOBODY = {"tf-017", "py-019"}
SOLVED_BY_EVERYBODY = {"tf-001", "tf-012", "py-004"}

# Odds of passing in tier T0 for a middling model. A tier more adds context to the prompt, which helps.
ODDS = {"easy": 7.0, "medium": 1.7, "hard": 0.35}
ODDS_OF_TIER = {"T0": 1.0, "T1": 1.9}
CONTEXT_OF_TIER = {"T0": 0, "T1": 1400}

MODELS = (
    Model(
        name="atlas-large",
        llm_name="atlas-large-2025-02",
        odds={"terraform": 2.1, "python": 2.3},
        judged=(0.88, 1.0),
        input_price=4000,
        output_price=16000,
        cache_read_price=400,
        tokens_per_second=55,
        verbosity=1.3,
        failures={
            "fail": 72,
            "error": 12,
            "wrong_format": 3,
            "refusal": 6,
            "policy_violation": 3,
            "timeout": 4,
        },
    ),
    Model(
        name="boreal-mini",
        llm_name="boreal-mini-v3",
        odds={"terraform": 0.38, "python": 0.33},
        judged=(0.6, 0.86),
        input_price=200,
        output_price=800,
        cache_read_price=20,
        tokens_per_second=160,
        verbosity=0.7,
        failures={"fail": 52, "error": 24, "wrong_format": 16, "refusal": 1, "crash": 4, "timeout": 3},
    ),
    Model(
        name="cedar-coder",
        llm_name="cedar-coder-32b",
        odds={"terraform": 0.62, "python": 1.6},
        judged=(0.8, 0.97),
        input_price=900,
        output_price=3600,
        cache_read_price=90,
        tokens_per_second=90,
        verbosity=1.0,
        failures={"fail": 66, "error": 18, "wrong_format": 7, "refusal": 2, "crash": 2, "timeout": 5},
    ),
)

DEFECTS = (
    Defect("atlas-large", "cut_short", "T0", "tf-009", 7),
    Defect("atlas-large", "repeated", "T0", "py-002", 12),
    Defect("atlas-large", "maybe", "T1", "tf-014", 3),
    Defect("boreal-mini", "stranger", "T0", "tf-020", 20),
    Defect("boreal-mini", "contradicted", "T1", "py-010", 5),
    Defect("boreal-mini", "no_price", "T1", "py-016", 18),
    Defect("cedar-coder", "no_iteration", "T0", "py-007", 9),
    Defect("cedar-coder", "extra_cell", "T1", "tf-005", 14),
    Defect("cedar-coder", "stranger", "T1", "tf-020", 20),
)


def _problems() -> list[Problem]:
    lines = PROBLEM_TABLE.strip().splitlines()
    return [Problem(*(cell.strip().replace(" ¶ ", "\n") for cell in line.split("|"))) for line in lines]


PROBLEMS = _problems()


class Dice:
    """Chance from uniform numbers alone: the only draw whose sequence Python promises never to change."""

    def __init__(self, *name: object) -> None:
        self._next = random.Random("/".join(map(str, (SEED, *name)))).random

    def hits(self, chance: float) -> bool:
        """True with this chance."""
        return self._next() < chance

    def between(self, low: float, high: float) -> float:
        """Any number of the range."""
        return low + (high - low) * self._next()

    def whole(self, low: int, high: int) -> int:
        """A whole number of the range, its ends included."""
        return low + int((high - low + 1) * self._next())

    def pick(self, weights: dict[str, int]) -> str:
        """One of the words, in proportion to its weight."""
        left = self._next() * sum(weights.values())
        for word, weight in weights.items():
            left -= weight
            if left < 0:
                return word
        return next(reversed(weights))


def write_sample(folder: Path) -> list[Path]:
    """Write all files of the sample but the configuration, and return their paths."""
    problems = [(problem.oid, problem.filename, suite_of(problem), *problem[2:]) for problem in PROBLEMS]
    written = [_write(folder / "problems.csv", PROBLEMS_HEADER, problems)]
    for model in MODELS:
        rows = [row for tier in TIERS for problem in PROBLEMS for row in attempts(model, tier, problem)]
        for defect in DEFECTS:
            if defect.model == model.name:
                spoil(rows, defect)
        written.append(_write(folder / f"{model.name}_fixes.csv", FIXES_HEADER, rows))
    return written


def suite_of(problem: Problem) -> str:
    """The suite, by the letters that the oid starts with."""
    return SUITES[problem.oid[:2]]


def chance_of_passing(model: Model, tier: str, problem: Problem) -> float:
    """How likely one attempt passes."""
    if problem.oid in SOLVED_BY_NOBODY:
        return 0.0
    if problem.oid in SOLVED_BY_EVERYBODY:
        return 1.0
    shared, own = Dice(problem.oid), Dice(problem.oid, model.name)
    odds = ODDS[problem.difficulty] * shared.between(0.4, 1.6) * own.between(0.6, 1.4)
    odds *= model.odds[suite_of(problem)] * ODDS_OF_TIER[tier]
    return odds / (1 + odds)


def attempts(model: Model, tier: str, problem: Problem) -> list[list[str]]:
    """All attempts of one model at one problem in one tier, as cells."""
    size = Dice(problem.oid, "size")
    tests, prompt = size.whole(4, 16), size.whole(700, 2600)
    dice = Dice(model.name, tier, problem.oid)
    chance = chance_of_passing(model, tier, problem)
    rows = []
    for iteration in range(1, ITERATIONS + 1):
        outcome = "pass" if dice.hits(chance) else dice.pick(model.failures)
        judged = judge(model, outcome, tests, dice)
        spent = spend(model, outcome, prompt, CONTEXT_OF_TIER[tier], iteration, dice)
        version = "2025.1" if iteration <= ITERATIONS // 2 else "2025.2"
        rows.append([problem.oid, str(iteration), tier, *judged, *spent, model.llm_name, version])
    return rows


def judge(model: Model, outcome: str, tests: int, dice: Dice) -> list[str]:
    """From plausible_fix to classification: what validation and the judge said."""
    compiled = outcome in ("pass", "fail", "crash", "timeout")
    failed = 0
    if outcome in ("fail", "timeout"):
        failed = dice.whole(1, max(1, tests // 2))
    elif outcome == "crash":
        failed = tests
    passed = tests - failed if compiled else 0
    warnings = dice.pick({"0": 60, "1": 25, "2": 10, "4": 5}) if compiled else ""
    low, high = model.judged if outcome == "pass" else (0.0, 0.15)
    if outcome in ("fail", "timeout"):
        low, high = 0.5 * passed / tests, 0.2 + 0.6 * passed / tests
    score = f"{dice.between(low, high):.3f}"
    words = [str(outcome == "pass").lower(), str(compiled).lower()]
    return [*words, str(passed), str(failed), warnings, score, outcome]


def spend(model: Model, outcome: str, prompt: int, context: int, iteration: int, dice: Dice) -> list[str]:
    """From input_tokens to latency_ms: what the attempt took.

    The first attempt at a problem pays for the whole prompt; the later ones find most of it in the cache.
    """
    cached = 0 if iteration == 1 else 256 * ((prompt + context) * 3 // 4 // 256)
    fresh = prompt + context - cached
    brief = outcome in ("refusal", "policy_violation")
    answer = dice.whole(40, 110) if brief else int(model.verbosity * dice.whole(180, 750))
    nanodollars = fresh * model.input_price + answer * model.output_price + cached * model.cache_read_price
    waiting_ms = dice.whole(250, 900) + fresh // 8
    latency_ms = waiting_ms + 1000 * answer // model.tokens_per_second
    # Nothing to check in a refusal; otherwise validation, cut off at the limit.
    checking = dice.between(0.2, 0.6) if brief else dice.between(1.5, 14)
    duration = latency_ms / 1000 + (TIME_LIMIT_SECONDS if outcome == "timeout" else checking)
    cost = f"{nanodollars / 1_000_000_000:.6f}"
    return [str(fresh), str(answer), str(cached), cost, f"{duration:.2f}", str(latency_ms)]


def spoil(rows: list[list[str]], defect: Defect) -> None:
    """Spoil the row that the defect names, or put a bad one behind it."""
    key = [defect.oid, str(defect.iteration), defect.tier]
    place = next(place for place, row in enumerate(rows) if row[:3] == key)
    row = rows[place]
    outcome, cost = FIXES_HEADER.index("plausible_fix"), FIXES_HEADER.index("cost_usd")
    match defect.kind:
        case "cut_short":
            del row[outcome + 3 :]
        case "extra_cell":
            row.append("checked by hand")
        case "maybe":
            row[outcome] = "maybe"
        case "no_price":
            row[cost] = "n/a"
        case "no_iteration":
            row[1] = ""
        case "repeated":
            rows.insert(place + 1, list(row))
        case "contradicted":
            passed = row[outcome] == "true"
            opposite = list(row)
            opposite[outcome] = "false" if passed else "true"
            opposite[FIXES_HEADER.index("classification")] = "fail" if passed else "pass"
            rows.insert(place + 1, opposite)
        case "stranger":
            rows.insert(place + 1, ["tf-021", *row[1:]])
        case _:
            raise ValueError(f"no such kind of defect: {defect.kind}")


def _write(path: Path, header: tuple[str, ...], rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return path


if __name__ == "__main__":
    for path in write_sample(Path(__file__).parent):
        print(path)
