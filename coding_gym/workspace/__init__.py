"""Templates of tasks (base tree, history, environment), and patches against their base tree."""

from coding_gym.workspace.image_python import missing_programs
from coding_gym.workspace.patching import apply_patch, diff, normalize
from coding_gym.workspace.store import TemplateStore
from coding_gym.workspace.template import Template

__all__ = [
    "Template",
    "TemplateStore",
    "apply_patch",
    "diff",
    "missing_programs",
    "normalize",
]
