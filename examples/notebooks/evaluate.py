"""Evaluates an agent, and compares it with another one.

A notebook: Jupyter with Jupytext, and VS Code, open its cells. In a clone,
``python examples/notebooks/evaluate.py`` runs it in about a minute.

Needs: pip install -e .
"""

# %%
from pathlib import Path
from tempfile import mkdtemp

from coding_gym.evaluation import compare, evaluate, report

TASKS = ["ledgerline-month-overlap", "cronwise-working-days"]
runs = Path(mkdtemp())

# %% [markdown]
# ## An agent without a model
#
# `template-repair` tries small edits until the visible tests pass. It is the baseline that a model
# has to beat. Hidden tests grade the patch in a clean sandbox.

# %%
repair = evaluate(runs / "repair", "template-repair", episode={"task_ids": TASKS}, concurrency=2)
print(report(repair).to_markdown())

# %% [markdown]
# ## Your model
#
# Any server with OpenAI's chat completions works the same way. Pass a player instead of the name:
#
#     from coding_gym.agents.players import get_player
#     player = get_player("chat", model="Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")
#
# This notebook uses an agent that changes nothing instead of a model.

# %%
nothing = evaluate(runs / "noop", "noop", episode={"task_ids": TASKS}, concurrency=2)
print(compare(repair.path, nothing.path).to_markdown())

# %% [markdown]
# ## One episode
#
# The folder of a run has a record of every attempt: messages, patch and grade.

# %%
for trajectory in repair.trajectories():
    print(f"== {trajectory.task_id}: {trajectory.grade and trajectory.grade.detail}")
    print(trajectory.patch)
