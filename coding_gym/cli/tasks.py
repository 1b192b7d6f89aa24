"""``coding-gym tasks``: lists, prints, exports and creates tasks."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from coding_gym.cli import options, synthesize
from coding_gym.cli.console import terminal
from coding_gym.tasks import load_tasks
from coding_gym.tasks.impossible import with_impossible
from coding_gym.tasks.new_folder import write_new_task
from coding_gym.tasks.planning import write_plans
from coding_gym.workspace import TemplateStore

app = typer.Typer(
    help="List, print, export and create tasks.", no_args_is_help=True, rich_markup_mode=None
)
app.command("synthesize")(synthesize.synthesize_tasks)


@app.command("list")
def list_tasks(
    source: options.Source = "bundled",
    split: options.Split = None,
    num_tasks: options.NumTasks = None,
) -> None:
    """List tasks; the columns F2P and P2P count FAIL_TO_PASS and PASS_TO_PASS tests."""
    tasks = load_tasks(source, split=split, limit=num_tasks)
    longest = max(len(task.task_id) for task in tasks)  # prevents truncated ids
    table = Table(Column("task", min_width=longest), "repo", "split", "difficulty", box=None)
    table.add_column("F2P", justify="right")
    table.add_column("P2P", justify="right")
    for task in tasks:
        counts = str(len(task.fail_to_pass)), str(len(task.pass_to_pass))
        table.add_row(task.task_id, task.repo, task.split, task.difficulty, *counts)
    console = terminal()
    console.print(table)
    console.print(f"{len(tasks)} tasks")


@app.command("show")
def show_task(
    task_id: Annotated[str, typer.Argument(help="Id of the task.")],
    source: options.Source = "bundled",
    gold: Annotated[bool, typer.Option("--gold", help="Also print the gold patch.")] = False,
    tree: Annotated[
        Path | None,
        typer.Option(help="Also copy the base tree, a git repository, to this new folder."),
    ] = None,
) -> None:
    """Print a task: the issue, its tests, and with --gold the gold patch."""
    (task,) = load_tasks(source, task_ids=[task_id])
    console = terminal()
    console.print(f"{task.task_id} ({task.repo}, {task.difficulty})", style="bold")
    console.print(f"\n{task.problem_statement.strip()}\n")
    console.print(
        "\n  ".join(["tests that fail and must pass (FAIL_TO_PASS):", *task.fail_to_pass])
    )
    console.print(f"tests that must keep passing (PASS_TO_PASS): {len(task.pass_to_pass)}")
    if gold:
        console.print(f"\n{task.gold_patch}")
    if tree:
        shutil.copytree(TemplateStore().get(task).spec.layers[0], tree, symlinks=True)
        console.print(f"base tree: {tree}")


@app.command("export")
def export_tasks(
    out: Annotated[Path, typer.Option("--out", "-o", help="JSONL file to write.")],
    source: options.Source = "bundled",
    task: options.TaskIds = None,
    split: options.Split = None,
    repositories: options.Repositories = None,
    environments: options.Environments = None,
    num_tasks: options.NumTasks = None,
    impossible: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tasks that get an impossible test.")
    ] = 0.0,
) -> None:
    """Write tasks as self-contained rows to a JSONL file.

    Example: coding-gym tasks export --tasks rows.jsonl --environments swebench --out ready.jsonl

    Example: coding-gym tasks export --impossible 1 --out impossible.jsonl
    """
    arguments = options.task_source(source, repositories, environments, split, task, num_tasks)
    tasks = with_impossible(load_tasks(**arguments), impossible)
    text = "".join(json.dumps(task.to_row()) + "\n" for task in tasks)
    out.write_text(text, encoding="utf-8")
    terminal().print(f"{len(tasks)} tasks in {out}")


@app.command("plan")
def plan_tasks(
    folder: Annotated[Path, typer.Argument(help="Task folder, or a folder of task folders.")],
    concurrency: options.TasksPerCore = options.NUM_CORES,
) -> None:
    """Run gold patches to plan the negation of hidden tests; write each task's plan.json."""
    for task_id, outcome in write_plans(folder, num_workers=concurrency):
        terminal().print(f"{task_id:<36} {outcome}")


@app.command("new")
def new_task(
    folder: Annotated[Path, typer.Argument(help="New folder; its name becomes the task id.")],
) -> None:
    """Create a folder with a small, valid task, as a template for your own task."""
    files = write_new_task(folder)
    console = terminal()
    for file in files:
        console.print(str(folder / file))
    console.print(f"\ncheck it:       coding-gym validate {shlex.quote(str(folder))}")
