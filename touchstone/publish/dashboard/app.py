"""The dashboard as a marimo notebook. It only lays out: what it shows comes from the modules beside it."""

import marimo

app = marimo.App(width="full", app_title="Touchstone")


@app.cell
def setup():
    import os
    from pathlib import Path

    from touchstone.publish.dashboard.run_tables import run_folders
    from touchstone.publish.dashboard.server import DATA_VARIABLE

    data = Path(os.environ[DATA_VARIABLE])
    folders = run_folders(data)
    # What was chosen, so that it stays chosen in another run.
    kept = {}


@app.cell
def title(data, markup, mo):
    mo.Html(f"<h1>Touchstone</h1>{markup.paragraph(f'Results in {data.name}, read only.', 'folder')}")


@app.cell
def run_choice(folders, mo):
    run_name = mo.ui.dropdown(list(folders), value=next(iter(folders)), label="Run or snapshot")


@app.cell
def opened(folders, open_run, run_name):
    run = open_run(folders[run_name.value])


@app.cell
def filter_choices(kept, run, widgets):
    models = widgets.choice(run.models, "Models", kept)
    tiers = widgets.choice(run.tiers, "Tiers", kept)
    suites = widgets.choice(run.suites, "Suites", kept)
    slice_column = widgets.one_of(run.slices, "Slice by", kept)


@app.cell
def slice_choice(kept, run, slice_column, widgets):
    column = slice_column.value
    slice_values = widgets.choice(run.slices.get(column, []), "Values of the slice", kept)


@app.cell
def filter_bar(column, mo, models, run_name, slice_column, slice_values, suites, tiers):
    _bar = [run_name, models, tiers, suites, slice_column, *([slice_values] if column else [])]
    mo.hstack(_bar, justify="start", wrap=True, gap=1)


@app.cell
def chosen(Filters, Selection, column, figures, models, run, slice_values, suites, tiers, widgets):
    filters = Filters(tuple(models.value), tuple(tiers.value), tuple(suites.value), column, tuple(slice_values.value))
    selection = Selection(run, filters)
    board = figures.leaderboard(selection)
    widgets.message(figures.summary_line(selection, board), "n")


@app.cell
def views(mo):
    view = mo.ui.tabs({"Results": "", "Charts": "", "Side by side": "", "SQL": ""})
    view


@app.cell
def board_rows(board, widgets):
    board_table = widgets.rows_table(board, "single")


@app.cell
def leaderboard(board, board_table, mo, view, widgets):
    mo.stop(view.value != "Results")
    _hint = widgets.message(
        "Select a row to see its problems, a problem to see its attempts, an attempt to read it.", "hint"
    )
    mo.vstack([mo.Html("<h2>Leaderboard</h2>"), _hint, board_table, widgets.downloads(board, "leaderboard")])


@app.cell
def problem_rows(board_table, figures, selection, widgets):
    group = widgets.selected(board_table)
    problems = figures.problem_list(selection, group["model"], group["tier"]) if group else None
    problem_table = widgets.rows_table(problems, "single") if group else None


@app.cell
def problem_view(group, markup, mo, problem_table, problems, view, widgets):
    mo.stop(view.value != "Results" or group is None)
    _heading = mo.Html(markup.heading(f"Problems of {group['model']}, tier {group['tier']}"))
    mo.vstack([_heading, problem_table, widgets.downloads(problems, "problems")])


@app.cell
def attempt_rows(drill_down, group, problem_table, selection, widgets):
    problem = widgets.selected(problem_table) if group else None
    attempts = drill_down.attempt_list(selection, group["model"], group["tier"], problem["oid"]) if problem else None
    attempt_table = widgets.rows_table(attempts, "single") if problem else None


@app.cell
def attempt_view(attempt_table, attempts, markup, mo, problem, view, widgets):
    mo.stop(view.value != "Results" or problem is None)
    _heading = mo.Html(markup.heading(f"Attempts at {problem['oid']}"))
    mo.vstack([_heading, attempt_table, widgets.downloads(attempts, "attempts")])


@app.cell
def attempt(attempt_table, drill_down, group, mo, problem, selection, view, widgets):
    _row = widgets.selected(attempt_table) if problem else None
    mo.stop(view.value != "Results" or _row is None)
    _key = (group["model"], group["tier"], problem["oid"], _row["iteration_id"])
    widgets.or_message(lambda: mo.Html(drill_down.attempt_html(selection, *_key)))


@app.cell
def chart_choice(charting, mo):
    titles = charting.chart_titles()
    chart_title = mo.ui.dropdown(list(titles), value=next(iter(titles), None), label="Chart")


@app.cell
def chart_view(chart_title, mo, selection, titles, view, widgets):
    mo.stop(view.value != "Charts" or not titles)
    _name = titles[chart_title.value]
    mo.vstack([chart_title, widgets.or_message(lambda: widgets.chart_with_downloads(selection, _name))])


@app.cell
def sides(folders, mo, run):
    _names = list(folders)
    everything = "all models"
    sides = mo.ui.dictionary(
        {
            "Baseline run": mo.ui.dropdown(_names, value=_names[-1], label="Baseline run"),
            "Baseline model": mo.ui.dropdown([everything, *run.models], value=everything, label="Baseline model"),
            "Current run": mo.ui.dropdown(_names, value=_names[0], label="Current run"),
            "Current model": mo.ui.dropdown([everything, *run.models], value=everything, label="Current model"),
        }
    )


@app.cell
def side_view(Side, everything, filters, folders, mo, open_run, side_by_side, sides, view, widgets):
    mo.stop(view.value != "Side by side")

    def _side(which):
        model = sides.value[f"{which} model"]
        return Side(open_run(folders[sides.value[f"{which} run"]]), None if model == everything else model)

    def _compared():
        return widgets.comparison(side_by_side(_side("Baseline"), _side("Current"), filters))

    _bar = mo.hstack(list(sides.elements.values()), justify="start", wrap=True, gap=1)
    mo.vstack([mo.Html("<h2>Side by side</h2>"), _bar, widgets.or_message(_compared)])


@app.cell
def query_choice(example_queries, mo):
    examples = example_queries()
    example = mo.ui.dropdown(examples, value=next(iter(examples)), label="Example")


@app.cell
def query_text(example, mo):
    query = mo.ui.text_area(example.value or "", label="One SELECT over the tables", rows=10, full_width=True).form(
        submit_button_label="Run", bordered=False
    )


@app.cell
def query_view(example, mo, query, run, sql_cell, view, widgets):
    mo.stop(view.value != "SQL")
    _answer = (
        widgets.or_message(lambda: widgets.query_result(sql_cell.run_sql(run, query.value))) if query.value else ""
    )
    mo.vstack([mo.Html("<h2>SQL</h2>"), example, query, _answer])


if __name__ == "__main__":
    app.run()
