"""A small template engine for HTML."""

from slate.environment import Environment
from slate.errors import RenderError, TemplateError, TemplateNotFoundError, TemplateSyntaxError
from slate.escaping import Safe, escape

__all__ = [
    "Environment",
    "RenderError",
    "Safe",
    "TemplateError",
    "TemplateNotFoundError",
    "TemplateSyntaxError",
    "escape",
]
