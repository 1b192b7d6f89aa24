"""Shell scripts that run git inside a sandbox.

The scripts read paths and limits from environment variables: ``CG_TREE`` (the working tree),
``CG_BASE`` (the second git folder), ``CG_TMP`` (the scratch folder that the script creates; for
`REFRESH_INDEX`, the copy of the index), ``CG_COMMIT`` (the base commit), ``CG_MAX`` (maximum size
of a file and of the patch, in bytes). ``PATH`` has only system folders, which a policy can change
only in an image.

`DIFF` and `NORMALIZE` are fragments in sequence. They share the functions of ``_BEGIN``, and

- ``$is_same``, from ``_LIST``: ``yes`` if the tree has exactly the paths of the base;
- ``$paths``, from ``_LIST``: the name of the file with the paths of the patch, ``present`` or
  ``paths``;
- files in the scratch folder ``CG_TMP``:
    - ``modes``, from ``_LIST`` and ``_INDEX``, for `CLEAN`;
    - ``marks``, ``cores`` and ``large``, from ``_LIST``, for ``_EXCLUDE``;
    - ``links``, ``present`` and ``paths``, from ``_LIST``, for ``_INDEX``; ``_EXCLUDE`` shortens
      ``paths``;
    - ``names``, the excluded paths, from ``_EXCLUDE``, for ``_RESULT``;
    - ``result``, the patch, for ``_RESULT``.
"""

from coding_gym.workspace.template import BASE_IGNORES, BASE_PATHS

TIMEOUT_S = 600.0  # of a script that reads a whole tree
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

# Restores modes, children first, and removes the scratch folder.
CLEAN = """\
[ ! -s "$CG_TMP/modes" ] || sort -zrk2 "$CG_TMP/modes" |
    while IFS= read -rd '' entry; do chmod "${entry%% *}" "${entry#* }"; done
rm -rf "$CG_TMP"
"""

# The trap prints nothing, because its output would become part of the result.
_BEGIN = (
    f"clean() {{\n{CLEAN}}}\n"
    + """\
exec 2>&1
set -eu -o pipefail
mkdir -m 700 "$CG_TMP"
finish() {
    status=$?
    set +e
    exec > /dev/null 2>&1
    clean
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
)

# Lists the files of the tree, as NUL-terminated paths in byte order. `git ls-files` would obey the
# policy's ignore files and stop at repositories that the policy made. With `./`, git does not read
# a name that starts with a colon as a pattern. `find` writes into the scratch folder: `modes`, each
# mode before it is changed, so that `CLEAN` can restore it after a kill; `found`, all paths;
# `links`, symbolic links; `marks`, repositories and virtual environments; `cores`, files with names
# of core dumps; `large`, files above the size limit that are younger than the template. New large
# files are excluded without hashing; a changed large base file is an error. `present` is `found` in
# order; `paths` is `present` without new paths that are ignored or excluded.
_LIST = f"""\
find "$CG_TREE" \\( -type d ! -perm -500 -printf '%m %p\\0' -exec chmod u+rx {{}} \\; \\) , \
    \\( -path "$CG_TREE/.git" -prune -o -name .git -fprintf marks '%P\\0' -prune -o \
    \\( -type f -o -type l -fprintf links '%P\\0' \\) -fprintf found '%P\\0' \
    -type f \\( -name pyvenv.cfg -fprintf marks '%P\\0' , \
    \\( -name core -o -name 'core.[0-9]*' \\) -fprintf cores '%P\\0' , \
    -size "+${{CG_MAX}}c" -newercc "$CG_BASE/index" -fprintf large '%P\\0' \\) \\) \
    > modes
sort -z found > present
paths=present is_same=yes
if ! cmp -s "$CG_BASE/{BASE_PATHS}" present; then
    comm -z -13 "$CG_BASE/{BASE_PATHS}" present | sed -z 's,^,./,' > others
    cd "$CG_BASE/{BASE_IGNORES}"
    GIT_WORK_TREE=. git check-ignore --no-index -z --stdin < "$CG_TMP/others" > "$CG_TMP/ignored" \
        || [ $? = 1 ]
    cd "$CG_TMP"
    sed -z 's,^\\./,,' ignored | comm -z -23 present - > paths
    paths=paths
    [ ! -s marks ] && [ ! -s cores ] && [ ! -s large ] || exclude
    cmp -s "$CG_BASE/{BASE_PATHS}" paths || is_same=no
fi
if [ -s large ]; then
    sort -z large | comm -z -12 - "$paths" | while IFS= read -rd '' path; do
        (cd "$CG_TREE"
         git --literal-pathspecs diff --quiet --no-ext-diff "$CG_COMMIT" -- "$path") ||
            printf '%s\\n' "$path"
    done > refused
    [ ! -s refused ] || {{ cat refused; exit {TOO_LARGE}; }}
fi
cd "$CG_TREE"
"""

# Excludes new paths that cannot be part of a repair, and writes them to `names`: large files, core
# dumps, and folders with a repository or a virtual environment and without files of the base.
_EXCLUDE = f"""\
exclude() {{
    comm -z -13 "$CG_BASE/{BASE_PATHS}" paths > new
    sort -z large | comm -z -12 - new > dropped
    sort -z cores | comm -z -12 - new > named
    : > folders
    local path folder magic
    while IFS= read -rd '' path; do
        magic=
        IFS= read -rN 4 magic < "$CG_TREE/$path" || :
        [ "$magic" != $'\\177ELF' ] || printf '%s\\0' "$path" >> dropped
    done < named
    while IFS= read -rd '' path; do
        folder=${{path%/*}}
        [ "$folder" != "$path" ] || continue
        [ -n "$(cd "$CG_TREE"; git --literal-pathspecs ls-files -- "$folder")" ] ||
            printf '%s/\\0' "$folder" >> folders
    done < marks
    cat dropped folders > names
    sort -z new folders > merged  # the paths in a folder follow the folder
    folder=/
    while IFS= read -rd '' path; do
        case $path in
            "$folder"*) printf '%s\\0' "$path" ;;
            */) folder=$path ;;
        esac
    done < merged >> dropped
    sort -zu dropped | comm -z -23 paths - > rest
    mv rest paths
}}
"""

# Updates a copy of the base's index to the tree. Git does not read files whose times and inode
# equal those in the index. If a file is unreadable, modes are changed and the update runs again.
# --info-only stores no contents, because `git diff` reads files with a current index entry from the
# tree. For symbolic links, `git diff` needs the stored contents.
_INDEX = f"""\
index_tree() {{
    copy_index
    comm -z -23 "$CG_BASE/{BASE_PATHS}" "$CG_TMP/$paths" > "$CG_TMP/gone"
    [ ! -s "$CG_TMP/gone" ] || git update-index -z --force-remove --stdin < "$CG_TMP/gone"
    add_paths || {{
        find "$CG_TREE" -name .git -prune -o -type f ! -readable -printf '%m %p\\0' \
            -exec chmod u+r {{}} + >> "$CG_TMP/modes"
        add_paths
    }}
}}
add_paths() {{
    sort -z "$CG_TMP/links" > "$CG_TMP/sorted"
    comm -z -23 "$CG_TMP/$paths" "$CG_TMP/sorted" |
        git update-index -z --add --replace --info-only --stdin &&
        comm -z -12 "$CG_TMP/$paths" "$CG_TMP/sorted" | git update-index -z --add --replace --stdin
}}
"""

_RESULT = f"""\
printf '%s' '{RESULT}'
[ ! -s "$CG_TMP/result" ] || base64 -w 0 "$CG_TMP/result"
printf ' '
[ ! -s "$CG_TMP/names" ] || base64 -w 0 "$CG_TMP/names"
"""

# The index is updated only if paths were added or removed, or a file cannot be read. The result is
# in base64, because a command's output is text and a patch is bytes.
_PRINT = f"""\
write_patch() {{
    compare --binary --full-index > "$CG_TMP/result"
}}
if [ $is_same = no ] || ! write_patch; then
    index_tree
    write_patch
fi
{_RESULT}"""

DIFF = _BEGIN + _EXCLUDE + _LIST + _INDEX + _PRINT

# Applies a patch to the index as SWE-bench's harness applies it to a tree: by git, else by
# `patch --fuzz=5`, from a clean state each time. --forward, because `patch --batch` alone reverses
# hunks that seem to be applied. New files of the environment's build are not part of the patch.
_APPLY_TO_INDEX = """\
apply_to_index() {
    cat > patch
    git apply --cached --whitespace=nowarn patch > log 2>&1 || apply_with_fuzz > fuzz 2>&1 || {
        [ $? -lt 126 ] || { cat fuzz; exit 127; }  # the program cannot run
        cat log
        ! git apply --cached --check -p0 patch 2> /dev/null ||
            echo "error: its paths lack the prefixes a/ and b/; make it without --no-prefix"
        return 1
    }
    if [ -n "$(sed -n '/^new file mode/{p;q}; s,^--- /dev/null,&,p' patch)" ]; then
        compare --cached --name-only -z --diff-filter=A > added
        while IFS= read -rd '' path; do
            [ ! -e "$CG_TREE/$path" ] || printf '%s\\0' "$path"
        done < added | git update-index -z --force-remove --stdin
    fi
}
apply_with_fuzz() (
    mkdir tree
    sed -nE 's,^(---|\\+\\+\\+) [^/]+/([^\\t\\r]+).*,\\2,p
        s,^(rename|copy) from ([^\\r]+).*,\\2,p' patch |
        sort -u | tr '\\n' '\\0' > changed
    cd tree
    export GIT_WORK_TREE=$CG_TMP/tree
    git checkout-index -q -f -z --stdin < ../changed || :
    patch --batch --forward --fuzz=5 -p1 --no-backup-if-mismatch -i ../patch || exit
    find . \\( -type f -o -type l \\) -printf '%P\\0' | sort -zu ../changed - |
        git update-index -z --add --remove --stdin
)
"""

# Prints the changes of a patch, computed in an index without a working tree.
NORMALIZE = (
    _BEGIN
    + _APPLY_TO_INDEX
    + f"""\
copy_index
apply_to_index
GIT_ALTERNATE_OBJECT_DIRECTORIES= git cat-file --batch-all-objects \\
    --batch-check='%(objectsize)' > "$CG_TMP/sizes"
while read -r size; do
    [ "$size" -le "$CG_MAX" ] || {{ echo "a file of $size bytes"; exit {TOO_LARGE}; }}
done < "$CG_TMP/sizes"
compare --cached --binary --full-index > "$CG_TMP/result"
"""
    + _RESULT
)

APPLY = """\
cd "$CG_TREE"
GIT_DIR="$CG_BASE" GIT_WORK_TREE="$CG_TREE" git apply --whitespace=nowarn -
"""

# Refreshes a copy of the index with the times and owners in the sandbox. The second git folder
# ignores attributes, which would show some files with unusual line ends as changed.
REFRESH_INDEX = """\
set -eu
cp "$CG_TREE/.git/index" "$CG_TMP"
cd "$CG_TREE"
GIT_DIR="$CG_BASE" GIT_WORK_TREE="$CG_TREE" GIT_INDEX_FILE="$CG_TMP" \
    git update-index --really-refresh --ignore-submodules
"""

# Copies files that are in the tree but not in the base, except byte code, to the folder `CG_INTO`.
COLLECT = f"""\
set -eu -o pipefail
cd "$CG_TREE"
find . -mindepth 1 \\( -name .git -o -name __pycache__ \\) -prune -o \
    \\( -type f -o -type l \\) -printf '%P\\0' \
    | sort -z | comm -z -13 "$CG_BASE/{BASE_PATHS}" - \
    | tar -c --null --verbatim-files-from -T - | tar -x -C "$CG_INTO"
"""
