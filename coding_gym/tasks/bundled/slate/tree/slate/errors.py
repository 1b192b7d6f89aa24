"""What can go wrong with templates."""


class TemplateError(Exception):
    """A template cannot be used."""


class TemplateNotFoundError(TemplateError, LookupError):
    """There is no template of that name."""


class TemplateSyntaxError(TemplateError, ValueError):
    """A template is malformed.

    Attributes:
        line: where, counted from 1.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


class RenderError(TemplateError):
    """A template cannot be rendered with these values."""
