"""Reads and writes one file inside a container, by a script for its bash."""

import errno
import os
import shlex

# What a script says beside the file, such as why it cannot be read.
MESSAGE_BYTES = 1 << 16
# bash reads and prints between NULs; programs are quicker, where the image has them.
_SCRIPT = """LC_ALL=C; path={path}
refuse() {{ echo "refused: $1"; exit 1; }}
copy() {{
  local text
  while IFS= read -r -d '' text; do printf '%s\\0' "$text" || return; done
  printf %s "$text"
}}
[[ -d $path ]] && refuse EISDIR
[[ -e $path && ! -f $path ]] && refuse EINVAL
"""
_READ = """exec 5<"$path" || exit 1
type -P head >/dev/null && exec head -c {limit} <&5
copy <&5
"""
_WRITE = """is_new=
[[ -e $path || -L $path ]] || is_new=yes
if [[ $is_new && $path = */* && ! -d ${path%/*} ]]; then
  # Where a file is in the way, opening says so better.
  message=$(mkdir -p -- "${path%/*}/" 2>&1) || [[ $message = *"File exists" ]] || refuse "$message"
fi
exec 5>"$path" || exit 1
copy=copy
type -P cat >/dev/null && copy=cat
$copy >&5 && exit
[[ $is_new ]] && rm -f -- "$path"
exit 1
"""
_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}


def read_script(path: str, max_bytes: int) -> bytes:
    """Returns the script that prints a file, and one byte more than is allowed where there is."""
    return _script(_READ.format(limit=max_bytes + 1), path)


def write_script(path: str) -> bytes:
    """Returns the script that writes its standard input to a file, making missing folders."""
    return _script(_WRITE, path)


def raise_error(exit_code: int, output: bytes, path: str, *, max_bytes: int | None = None) -> None:
    """Raises the OSError that a script met, if any.

    Args:
        exit_code: Of the script.
        output: What it printed; its last line says what went wrong.
        path: Goes into the error.
        max_bytes: How much it may have printed.
    """
    if exit_code == 0:
        if max_bytes is not None and len(output) > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", path)
        return
    lines = output.decode("utf-8", "replace").strip().splitlines() or [""]
    reason = lines[-1].rpartition(": ")[2]
    number = getattr(errno, reason, None) if reason.isupper() else _BY_TEXT.get(reason)
    number = number or errno.EIO
    raise OSError(number, os.strerror(number), path)


def _script(body: str, path: str) -> bytes:
    quoted = shlex.quote(path)
    return os.fsencode(_SCRIPT.format(path=quoted)) + os.fsencode(body)
