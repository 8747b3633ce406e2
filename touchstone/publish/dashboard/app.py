"""The dashboard as a marimo notebook. It only lays out: what it shows comes from the modules beside it.

Tables and choices are made in cells of their own, apart from the cells that show them, so that they keep their state
while another view is open.
"""

import marimo

app = marimo.App(width="full", app_title="Touchstone", css_file="app.css")

with app.setup:
    import os
    from pathlib import Path

    import marimo as mo

    from touchstone.publish.dashboard import charting, drill_down, figures, markup, sql_cell, widgets
    from touchstone.publish.dashboard.example_queries import example_queries
    from touchstone.publish.dashboard.run_tables import open_run, run_folders
    from touchstone.publish.dashboard.selection import Filters, Selection
    from touchstone.publish.dashboard.server import DATA_VARIABLE
    from touchstone.publish.dashboard.side_by_side import Side, side_by_side


@app.cell
def title():
    data = Path(os.environ[DATA_VARIABLE])
    folders = run_folders(data)
    # What was chosen, so that it stays chosen in another run.
    kept = {}
    _words = f"Results in {data.parent.name}/{data.name}, read only. A filter with nothing chosen shows everything."
    mo.Html(f"<h1>Touchstone</h1>{markup.paragraph(_words, 'folder')}")
    return folders, kept


@app.cell
def run_choice(folders):
    run_name = mo.ui.dropdown(list(folders), value=next(iter(folders)), label="Run")
    return (run_name,)


@app.cell
def opened(folders, run_name):
    run = widgets.or_stop(lambda: open_run(folders[run_name.value]))
    return (run,)


@app.cell
def filter_choices(kept, run):
    models = widgets.choice(run.models, "Models", kept)
    tiers = widgets.choice(run.tiers, "Tiers", kept)
    suites = widgets.choice(run.suites, "Suites", kept)
    slice_column = widgets.one_of(list(run.slices), "Slice by", kept)
    return models, slice_column, suites, tiers


@app.cell
def slice_choice(kept, run, slice_column):
    column = slice_column.value
    slice_values = widgets.choice(run.slices.get(column, []), "Values of the slice", kept)
    return column, slice_values


@app.cell
def filter_bar(column, models, run_name, slice_column, slice_values, suites, tiers):
    _bar = [run_name, models, tiers, suites, slice_column, *([slice_values] if column else [])]
    mo.hstack(_bar, justify="start", wrap=True, gap=1)
    return


@app.cell
def chosen(column, models, run, slice_values, suites, tiers):
    filters = Filters(tuple(models.value), tuple(tiers.value), tuple(suites.value), column, tuple(slice_values.value))
    selection = Selection(run, filters)
    board = widgets.or_stop(lambda: figures.leaderboard(selection))
    widgets.message(figures.summary_line(selection, board), "n")
    return board, filters, selection


@app.cell
def views():
    view = mo.ui.tabs({"Results": "", "Charts": "", "Side by side": "", "SQL": ""})
    view
    return (view,)


@app.cell
def board_rows(board):
    board_table = widgets.rows_table(board, "single")
    return (board_table,)


@app.cell
def leaderboard(board, board_table, view):
    mo.stop(view.value != "Results")
    _hint = "Select a row to see its problems, a problem to see its attempts, an attempt to read it."
    _parts = [mo.Html("<h2>Leaderboard</h2>"), widgets.message(_hint, "hint"), board_table]
    mo.vstack([*_parts, widgets.downloads(board, "leaderboard")])
    return


@app.cell
def problem_rows(board_table, selection):
    group = widgets.selected(board_table)
    problems = group and widgets.or_stop(lambda: figures.problem_list(selection, group["model"], group["tier"]))
    problem_table = group and widgets.rows_table(problems, "single")
    return group, problem_table, problems


@app.cell
def problem_view(group, problem_table, problems, view):
    mo.stop(view.value != "Results" or group is None)
    _heading = mo.Html(markup.heading(f"Problems of {group['model']}, tier {group['tier']}"))
    mo.vstack([_heading, problem_table, widgets.downloads(problems, "problems")])
    return


@app.cell
def attempt_rows(group, problem_table, selection):
    problem = group and widgets.selected(problem_table)
    _key = problem and (group["model"], group["tier"], problem["oid"])
    attempts = problem and widgets.or_stop(lambda: drill_down.attempt_list(selection, *_key))
    attempt_table = problem and widgets.rows_table(attempts, "single")
    return attempt_table, attempts, problem


@app.cell
def attempt_view(attempt_table, attempts, problem, view):
    mo.stop(view.value != "Results" or problem is None)
    _heading = mo.Html(markup.heading(f"Attempts at {problem['oid']}"))
    mo.vstack([_heading, attempt_table, widgets.downloads(attempts, "attempts")])
    return


@app.cell
def one_attempt(attempt_table, group, problem, selection, view):
    _row = problem and widgets.selected(attempt_table)
    mo.stop(view.value != "Results" or _row is None)
    _key = (group["model"], group["tier"], problem["oid"], _row["iteration_id"])
    widgets.or_message(lambda: mo.Html(drill_down.attempt_html(selection, *_key)))
    return


@app.cell
def chart_choice(kept, run):
    chart_name = widgets.one_of(charting.chart_titles(run), "Chart", kept, needed=True)
    return (chart_name,)


@app.cell
def chart_view(chart_name, selection, view):
    mo.stop(view.value != "Charts" or chart_name.value is None)
    mo.vstack([chart_name, widgets.or_message(lambda: widgets.chart_with_downloads(selection, chart_name.value))])
    return


@app.cell
def side_choices(folders, run):
    sides = widgets.side_choices(list(folders), run.models)
    return (sides,)


@app.cell
def side_view(filters, folders, sides, view):
    mo.stop(view.value != "Side by side")

    def _side(which):
        return Side(open_run(folders[sides[f"{which} run"].value]), sides[f"{which} model"].value)

    def _compared():
        return widgets.comparison(side_by_side(_side("Baseline"), _side("Current"), filters))

    _bar = mo.hstack(list(sides.elements.values()), justify="start", wrap=True, gap=1)
    mo.vstack([mo.Html("<h2>Side by side</h2>"), _bar, widgets.or_message(_compared)])
    return


@app.cell
def example_choice():
    _examples = example_queries()
    example = mo.ui.dropdown(_examples, value=next(iter(_examples)), label="Example")
    return (example,)


@app.cell
def query_text(example):
    _text = mo.ui.text_area(example.value or "", label="One SELECT over the tables", rows=8, full_width=True)
    query = _text.form(submit_button_label="Run", bordered=False)
    return (query,)


@app.cell
def query_view(example, query, run, view):
    mo.stop(view.value != "SQL")
    _answer = query.value and widgets.or_message(lambda: widgets.query_result(sql_cell.run_sql(run, query.value)))
    mo.vstack([mo.Html("<h2>SQL</h2>"), example, query, _answer or ""])
    return


if __name__ == "__main__":
    app.run()
