"""Shell scripts that run git inside a sandbox.

They read where things are from their environment: ``CG_TREE`` (the working tree), ``CG_BASE`` (the
template's own git folder), ``CG_TMP`` (a folder that does not exist yet), ``CG_COMMIT`` (the base
commit), ``CG_MAX`` (bytes that one file, or the patch, may have). Programs are found in system
folders only, which nothing inside can write to.
"""

from coding_gym.workspace.template import BASE_IGNORES, BASE_PATHS

NO_PROGRAM = 127
TOO_LARGE = 41

# Marks the result in the output, after messages of the commands.
RESULT = "result:"

ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/dev/null",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
}

# Whatever goes wrong, the scratch folder is gone and modes are as they were, children first. It has
# nothing to say: what it printed would be taken for part of the result.
_BEGIN = """\
exec 2>&1
set -eu -o pipefail
mkdir -m 700 "$CG_TMP"
finish() {
    status=$?
    set +e
    exec > /dev/null 2>&1
    [ ! -s "$CG_TMP/modes" ] || sort -zrk2 "$CG_TMP/modes" |
        while IFS= read -rd '' entry; do chmod "${entry%% *}" "${entry#* }"; done
    rm -rf "$CG_TMP"
    exit $status
}
trap finish EXIT
cd "$CG_TMP"
export GIT_DIR="$CG_BASE" GIT_WORK_TREE="$CG_TREE" GIT_INDEX_FILE="$CG_BASE/index"
compare() {
    git diff --no-ext-diff --no-textconv --no-color --find-renames --ignore-submodules=all \
        --src-prefix=a/ --dst-prefix=b/ "$@" "$CG_COMMIT" --
}
copy_index() {
    mkdir "$CG_TMP/objects"
    cp "$CG_BASE/index" "$CG_TMP/index"
    export GIT_INDEX_FILE="$CG_TMP/index" GIT_OBJECT_DIRECTORY="$CG_TMP/objects"
    export GIT_ALTERNATE_OBJECT_DIRECTORIES="$CG_BASE/objects"
}
"""

# Lists what is there, as NUL-terminated paths in byte order. Git's own listing would obey ignore
# files of the policy and stop at repositories that it made. Files that are large and younger than
# the template are noted, so that they are refused before they are hashed. The `./` keeps a name
# that starts with a colon from being read as a pattern.
_LIST = f"""\
find "$CG_TREE" \\( -type d ! -perm -500 -fprintf modes '%m %p\\0' -exec chmod u+rx {{}} \\; \\) , \
    \\( -name .git -prune -o \\( -type f -o -type l \\) -printf '%P\\0' \
    -type f -size "+${{CG_MAX}}c" -newercc "$CG_BASE/index" -fprintf large '%P\\0' \\) \
    | sort -z > there
kept=there same=yes
if ! cmp -s "$CG_BASE/{BASE_PATHS}" there; then
    comm -z -13 "$CG_BASE/{BASE_PATHS}" there | sed -z 's,^,./,' > asked
    cd "$CG_BASE/{BASE_IGNORES}"
    GIT_WORK_TREE=. git check-ignore --no-index -z --stdin < "$CG_TMP/asked" > "$CG_TMP/told" \
        || [ $? = 1 ]
    cd "$CG_TMP"
    sed -z 's,^\\./,,' told | comm -z -23 there - > kept
    kept=kept
    cmp -s "$CG_BASE/{BASE_PATHS}" kept || same=no
fi
if [ -s large ]; then
    sort -z large | comm -z -12 - "$kept" | tr '\\0' '\\n' > refused
    [ ! -s refused ] || {{ cat refused; exit {TOO_LARGE}; }}
fi
cd "$CG_TREE"
"""

# Brings a copy of the base's index to the state of the tree. What the index holds already, by its
# times and inode, is not read again. Unreadable files are the exception that is handled late.
_INDEX = f"""\
index_tree() {{
    copy_index
    comm -z -23 "$CG_BASE/{BASE_PATHS}" "$CG_TMP/$kept" > "$CG_TMP/gone"
    [ ! -s "$CG_TMP/gone" ] || git update-index -z --force-remove --stdin < "$CG_TMP/gone"
    take || {{
        find "$CG_TREE" -name .git -prune -o -type f ! -readable -printf '%m %p\\0' \
            -exec chmod u+r {{}} + >> "$CG_TMP/modes"
        take
    }}
}}
take() {{
    git update-index -z --add --replace --stdin < "$CG_TMP/$kept"
}}
"""

_RESULT = f"""\
printf '%s' '{RESULT}'
[ ! -s "$CG_TMP/result" ] || base64 -w 0 "$CG_TMP/result"
"""

# The index is only needed where paths came or went, or where something cannot be read. Base64,
# because a command's output is text and a patch is bytes.
_PRINT = f"""\
if [ $same = no ] || ! judge; then
    index_tree
    judge --cached
fi
{_RESULT}"""

_PATCH = """\
judge() {
    compare --binary --full-index "$@" > "$CG_TMP/result"
}
"""

_WHETHER = """\
judge() {
    local status=0
    compare --quiet "$@" || status=$?
    [ $status != 1 ] || echo changed > "$CG_TMP/result"
    [ $status -le 1 ]
}
"""

DIFF = _BEGIN + _LIST + _INDEX + _PATCH + _PRINT
IS_CHANGED = _BEGIN + _LIST + _INDEX + _WHETHER + _PRINT

# What a patch changes, without a working tree.
NORMALIZE = (
    _BEGIN
    + f"""\
copy_index
git apply --cached --whitespace=nowarn -
GIT_ALTERNATE_OBJECT_DIRECTORIES= git cat-file --batch-all-objects \\
    --batch-check='%(objectsize)' > "$CG_TMP/sizes"
while read -r size; do
    [ "$size" -le "$CG_MAX" ] || {{ echo "a file of $size bytes"; exit {TOO_LARGE}; }}
done < "$CG_TMP/sizes"
compare --cached --binary --full-index > "$CG_TMP/result"
"""
    + _RESULT
)

# The whole tree of the base with a patch, as git names it.
PATCHED_TREE = (
    _BEGIN
    + """\
copy_index
git apply --cached --whitespace=nowarn -
git write-tree > "$CG_TMP/result"
"""
    + _RESULT
)

APPLY = """\
cd "$CG_TREE"
GIT_DIR="$CG_BASE" GIT_WORK_TREE="$CG_TREE" git apply --whitespace=nowarn -
"""

# Fills in what the index knows of each file, as seen through the sandbox's mounts and user ids, and
# prints it. Attributes are off, so that files whose line ends differ from what they ask are clean.
REFRESH_INDEX = """\
set -eu
cp "$CG_TREE/.git/index" "$CG_TMP"
cd "$CG_TREE"
GIT_DIR="$CG_BASE" GIT_WORK_TREE="$CG_TREE" GIT_INDEX_FILE="$CG_TMP" \
    git update-index --really-refresh --ignore-submodules
"""

# Copies what is new in the tree, but no byte code, into the folder ``CG_INTO``.
COLLECT = f"""\
set -eu -o pipefail
cd "$CG_TREE"
find . -mindepth 1 \\( -name .git -o -name __pycache__ \\) -prune -o \
    \\( -type f -o -type l \\) -printf '%P\\0' \
    | sort -z | comm -z -13 "$CG_BASE/{BASE_PATHS}" - \
    | tar -c --null --verbatim-files-from -T - | tar -x -C "$CG_INTO"
"""
