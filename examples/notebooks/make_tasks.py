"""Makes tasks from a project by inserting bugs.

A notebook: Jupyter with Jupytext, and VS Code, open its cells. In a clone,
``python examples/notebooks/make_tasks.py`` runs it in less than a minute.

Needs: pip install -e .
"""

# %%
import shutil
from pathlib import Path
from tempfile import mkdtemp

import gymnasium as gym

from coding_gym import load_tasks
from coding_gym.synthesis import Project, synthesize, write_rows
from coding_gym.tasks.bundled_tasks import bundled_folder

# %% [markdown]
# ## A project whose tests pass
#
# This example uses one of the bundled programs. You can name any folder with pytest tests instead;
# if it needs packages, `install_commands` build its environment.

# %%
folder = Path(mkdtemp()) / "ledgerline"
shutil.copytree(bundled_folder() / "ledgerline" / "tree", folder)
project = Project(name="ledgerline", folder=folder)

# %% [markdown]
# ## Bugs that the project's tests detect
#
# Each bug is an edit that makes tests fail. Those tests are hidden from the agent, and the grader
# confirms every task: the repair passes, the broken program does not.

# %%
tasks = synthesize(project, 4, num_workers=2)
for task in tasks:
    print(f"== {task.task_id}: {len(task.fail_to_pass)} tests fail")
    print(task.problem_statement)
    print(task.gold_patch)

# %% [markdown]
# ## A file of tasks
#
# Every command and `gym.make` accept this file.

# %%
rows = folder.parent / "bugs.jsonl"
write_rows(tasks, rows)
print(len(load_tasks(str(rows))), "tasks in", rows)

env = gym.make("coding_gym:CodingRepair-v0", tasks=str(rows))
_, info = env.reset(seed=0)
print(info["text"])
env.close()
