"""SWE-bench's log formats by name, and which of them each of its projects has.

Verdicts are those of SWE-bench: a test has passed where the log says PASSED or XFAIL, whatever it
said before. Whoever prints such a line last decides, and SWE-bench knows no defence against that.
Where a task can be run by one of the other runners, use that instead.
"""

from coding_gym.arguments import unknown_name
from coding_gym.grade import TestStatus
from coding_gym.grading.formats.outcomes import Outcomes
from coding_gym.grading.formats.swebench_others import OTHER_FORMATS
from coding_gym.grading.formats.swebench_python import PYTHON_FORMATS

FORMATS = {**PYTHON_FORMATS, **OTHER_FORMATS}
# Those whose ids are pytest's.
PYTEST_FORMATS = frozenset({"matplotlib", "pytest", "pytest_options", "pytest_v2"})

_PROJECTS = {
    "ant": "projectlombok/lombok",
    "cargo": "astral-sh/ruff burntsushi/ripgrep nushell/nushell sharkdp/bat tokio-rs/axum "
    "tokio-rs/tokio uutils/coreutils",
    "django": "django/django",
    "googletest": "fmtlib/fmt",
    "gotest": "caddyserver/caddy gin-gonic/gin gohugoio/hugo hashicorp/terraform "
    "prometheus/prometheus",
    "gradle": "apache/lucene reactivex/rxjava",
    "jest": "babel/babel facebook/docusaurus",
    "jq": "jqlang/jq",
    "matplotlib": "matplotlib/matplotlib",
    "maven": "apache/druid google/gson javaparser/javaparser",
    "micropython": "micropython/micropython",
    "phpunit": "briannesbitt/carbon laravel/framework php-cs-fixer/php-cs-fixer "
    "phpoffice/phpspreadsheet",
    "pytest": "marshmallow-code/marshmallow pallets/flask pvlib/pvlib-python pydata/xarray "
    "pylint-dev/astroid pytest-dev/pytest pyvista/pyvista sqlfluff/sqlfluff",
    "pytest_options": "psf/requests pydicom/pydicom pylint-dev/pylint",
    "pytest_v2": "astropy/astropy scikit-learn/scikit-learn sphinx-doc/sphinx",
    "redis": "redis/redis valkey-io/valkey",
    "rspec": "fastlane/fastlane jordansissel/fpm rubocop/rubocop",
    "ruby_unit": "faker-ruby/faker fluent/fluentd",
    "seaborn": "mwaskom/seaborn",
    "sympy": "sympy/sympy",
    "tap": "axios/axios mrdoob/three.js",
    "vitest": "vuejs/core",
}
FORMAT_BY_REPO = {repo: name for name, repos in _PROJECTS.items() for repo in repos.split()}

_START, _END = ">>>>> Start Test Output", ">>>>> End Test Output"
_GIVEN_UP = tuple(
    f">>>>> {said}"
    for said in ("Patch Apply Failed", "Reset Failed", "Tests Errored", "Tests Timed Out")
)
_STATUSES = {
    "PASSED": TestStatus.PASSED,
    "XFAIL": TestStatus.PASSED,
    "FAILED": TestStatus.FAILED,
    "ERROR": TestStatus.ERROR,
    "SKIPPED": TestStatus.SKIPPED,
}


def read_log(log: str, name: str) -> Outcomes:
    """Returns what SWE-bench would make of a log.

    Args:
        log: The output of the test command, or of a whole ``eval_script``, between whose marks it
            then is.
        name: The format.

    Raises:
        UnknownNameError: There is no such format.
    """
    if name not in FORMATS:
        raise unknown_name("log format", name, FORMATS)
    if any(said in log for said in _GIVEN_UP):
        return Outcomes()
    inside = log.split(_START)[1].split(_END)[0] if _START in log and _END in log else log
    words = FORMATS[name](inside) or FORMATS[name](log)
    return Outcomes({test: _STATUSES.get(word, TestStatus.FAILED) for test, word in words.items()})
