"""Templates (base tree, history, environment) built once and cached, and the patch against them."""

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
