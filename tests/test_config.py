"""The configuration: the seed's file works as it stands, and every mistake is one line that names it."""

import json
from pathlib import Path

import pytest

from touchstone.config import find_problems_csv, load_config
from touchstone.errors import TouchstoneError

SEED = {
    "fixes_dir": "llms_fixes_results",
    "output_dir": "evaluation/data",
    "clones_dir": "../TFReproducer/clones",
    "k_values": [1, 5, 10],
    "models": ["gemini", "chatgpt4.1"],
    "generate_synthetic_data": False,
    "data_type": "all",
}


def write(tmp_path: Path, data: object, name: str = "evaluation_config.json") -> Path:
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_the_seeds_config_works_as_it_stands(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SEED))
    assert config.k_values == [1, 5, 10]
    assert config.models == ["gemini", "chatgpt4.1"]
    assert config.fixes_dir == tmp_path / "llms_fixes_results"
    assert config.output_dir == tmp_path / "evaluation" / "data"
    assert config.clones_dir == tmp_path.parent / "TFReproducer" / "clones"


def test_toml_says_the_same(tmp_path: Path) -> None:
    text = 'fixes_dir = "f"\noutput_dir = "o"\nk_values = [3, 1]\n[checks]\nmin_coverage = 0.5\n'
    config = load_config(write(tmp_path, text, "config.toml"))
    assert (config.k_values, config.checks.min_coverage) == ([1, 3], 0.5)


def test_output_dir_can_be_replaced(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, SEED), tmp_path / "elsewhere").output_dir == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fixs_dir": "x"}, "unknown key 'fixs_dir' (did you mean 'fixes_dir'?)"),
        ({"weather": "x"}, "unknown key 'weather' (known keys: fixes_dir, output_dir,"),
        ({"checks": {"min_cover": 1}}, "unknown key 'checks.min_cover'"),
        ({"k_values": [1, 0]}, "k_values: k must be at least 1, got 0"),
        ({"k_values": []}, "k_values: give at least one k value"),
        ({"k_values": ["5"]}, "k_values.0: Input should be a valid integer (got '5')"),
        ({"data_type": "fake"}, "data_type: Input should be 'all', 'synthetic' or 'real' (got 'fake')"),
        ({"fixes_dir": None}, "fixes_dir: "),
        (
            {"scoring": {"suites": {"weights": {"s": 1e30}}}},
            "scoring.suites.weights: the weight of suite 's' must be from 0 to 1,000,000, got 1e+30",
        ),
        ({"slices": "difficulty"}, "slices: Input should be a valid list (got 'difficulty')"),
        ({"slices": ["a", {"column": "a", "bins": [1]}]}, "slices: the column 'a' is listed twice; keep one"),
        ({"slices": [f"c{n}" for n in range(21)]}, "slices: give at most 20 slices, got 21"),
        ({"slices": [{"column": "a", "bins": [1, 1]}]}, "slices.0.bins: bins must ascend, got [1.0, 1.0]"),
        ({"slices": [{"column": "a", "bin": [1]}]}, "unknown key 'slices.0.bin'"),
        (
            {"slices": [{"column": "a", "cutoff": {"m": "2025-13-01"}}]},
            "slices.0.cutoff.m: Input should be a valid date",
        ),
        (
            {"slices": [{"column": "a", "bins": [1], "cutoff": {"m": "2025-12-01"}}]},
            "slices.0: the slice 'a' has bins and a cutoff; keep one",
        ),
        ({"intervals": {"confidence": 95}}, "intervals.confidence: Input should be less than 1 (got 95)"),
    ],
)
def test_each_mistake_is_one_line(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(TouchstoneError) as caught:
        load_config(write(tmp_path, SEED | change))
    assert message in str(caught.value)
    assert "evaluation_config.json: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_key(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="the key 'output_dir' is missing"):
        load_config(write(tmp_path, {"fixes_dir": "x"}))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", r"not valid JSON \(line 1, column 2"), ("[]", "must be an object"), ("", "not valid JSON")],
)
def test_not_a_config_at_all(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TouchstoneError, match=message):
        load_config(write(tmp_path, text))


def test_no_such_config(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match=r"nowhere\.json: no such config file"):
        load_config(tmp_path / "nowhere.json")


def test_where_the_problems_file_is_looked_for(tmp_path: Path) -> None:
    settings = {"fixes_dir": "f", "output_dir": "o"}
    config, implied = (load_config(write(tmp_path, settings | more)) for more in ({}, {"inputs": ["."]}))
    for each in (config, implied):
        with pytest.raises(TouchstoneError, match=r"no problems file: looked for .*set 'problems_csv'"):
            find_problems_csv(each)
    places = [tmp_path / place / "problems.csv" for place in ("problems", "f/problems", "o", "f")]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")
        assert find_problems_csv(config) == place
        # Nothing outside of folders that a user named.
        assert place == places[0] or find_problems_csv(implied) == place


@pytest.mark.parametrize("folder", ["", "evaluation", "evaluation/config"])
def test_the_configuration_of_tf_repair_evaluator(tmp_path: Path, folder: str) -> None:
    settings = {"fixes_dir": "f", "output_dir": "evaluation/data", "results_dir": "evaluation/results"}
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    place = write(tmp_path / folder, settings)
    config = load_config(place)
    assert (config.fixes_dir, config.output_dir) == (tmp_path / "f", tmp_path / "evaluation" / "results")
    (note,) = config.notes
    assert note.endswith("is taken as output_dir; nothing is written to evaluation/data")
    for problems in (tmp_path / "evaluation" / "data" / "problems.csv", tmp_path / "problems" / "problems.csv"):
        problems.parent.mkdir(parents=True)
        problems.write_text("x")
        assert load_config(place).problems_csv == problems
    assert load_config(write(tmp_path / folder, settings | {"generate_synthetic_data": True})).problems_csv is None
    assert load_config(place, tmp_path / "elsewhere").output_dir == tmp_path / "elsewhere"


def test_a_tilde_is_the_home_folder_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    names = ("fixes_dir", "output_dir", "problems_csv", "clones_dir")
    config = load_config(write(tmp_path, {name: f"~/{name}" for name in names} | {"validation": {"cache_dir": "~/c"}}))
    assert [getattr(config, name) for name in names] == [home / name for name in names]
    assert config.validation.cache_dir == home / "c"
    assert load_config(write(tmp_path, SEED), Path("~/elsewhere")).output_dir == home / "elsewhere"


@pytest.mark.parametrize(
    "place",
    ["/", "/etc", "/etc/x/y", "/dev", "/proc/self", "/usr/../usr/bin", "/var", "~", "link", "link/x", "~/../home"],
)
@pytest.mark.parametrize("given", ["config", "option", "cache_dir"])
def test_results_do_not_go_into_folders_of_the_system_or_the_home_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, given: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    cache = {"validation": {"cache_dir": place}} if given == "cache_dir" else {}
    config = write(tmp_path, SEED | ({"output_dir": place} if given == "config" else {}) | cache)
    with pytest.raises(TouchstoneError, match=r"is a folder of the system|is your home folder") as caught:
        load_config(config, Path(place) if given == "option" else None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["/data", "/dev/shm/x", "/var/lib/x", "/opt/x", "/tmp/x", "~/x"])
def test_they_may_go_anywhere_else(tmp_path: Path, place: str) -> None:
    load_config(write(tmp_path, SEED | {"output_dir": place}))


@pytest.mark.parametrize("key", ["fixes_dir", "output_dir", "problems_csv", "clones_dir"])
def test_a_link_that_leads_to_itself_is_one_line(tmp_path: Path, key: str) -> None:
    (tmp_path / "me").symlink_to("me")
    with pytest.raises(TouchstoneError, match=f"{key}: {tmp_path}/me.* is a link that leads to itself"):
        load_config(write(tmp_path, SEED | {key: "me/x"}))


def test_a_home_folder_that_nobody_has(tmp_path: Path) -> None:
    with pytest.raises(TouchstoneError, match="'~nobody-of-this-name/x': there is no such home folder"):
        load_config(write(tmp_path, SEED | {"fixes_dir": "~nobody-of-this-name/x"}))


@pytest.mark.parametrize(
    ("comparison", "message"),
    [
        ({"family": "baseline"}, 'family "baseline" needs baseline_model'),
        ({"baseline_model": "m"}, 'baseline_model goes with family "baseline", not "all"'),
        ({"family": "bonferroni"}, "comparison.family: Input should be 'all', 'baseline' or 'fdr'"),
    ],
)
def test_a_family_of_comparisons_names_its_baseline(tmp_path: Path, comparison: dict[str, str], message: str) -> None:
    with pytest.raises(TouchstoneError) as refused:
        load_config(write(tmp_path, SEED | {"comparison": comparison}))
    assert message in str(refused.value) and "\n" not in str(refused.value)
