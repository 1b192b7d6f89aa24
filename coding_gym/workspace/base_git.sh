#!/bin/bash
# Compares trees with the base commit, by git and the template's second git folder, in a sandbox.
#
# CG_ACTION names the function to run; the end of this file has the list. GIT_DIR is the second git
# folder: beside git's files, `base-paths` has the paths of the base, NUL-terminated and sorted by
# bytes, and `base-ignores` has the base's .gitignore files. GIT_WORK_TREE is the tree. The other
# variables are
#   CG_TMP     the scratch folder, which `diff` and `normalize` create and remove
#   CG_COMMIT  the base commit
#   CG_MAX     the maximum size of a file in bytes; the exit code is 41 for a larger file
#   CG_INTO    the folder into which `collect` copies
# PATH has only system folders, which a policy can change only in an image.
set -eu -o pipefail

start() {
    mkdir -m 700 "$CG_TMP"
    trap 'clean > /dev/null 2>&1 || :' EXIT # the output would become part of the result
    cd "$CG_TMP"
}

# Restores the modes that `diff` changed, children first, and removes the scratch folder.
clean() {
    [ ! -s "$CG_TMP/modes" ] || sort -zrk2 "$CG_TMP/modes" |
        while IFS= read -rd '' entry; do chmod "${entry%% *}" "${entry#* }"; done
    rm -rf "$CG_TMP"
}

compare() {
    git diff --no-ext-diff --no-textconv --no-color --find-renames --ignore-submodules=all \
        --src-prefix=a/ --dst-prefix=b/ "$@" "$CG_COMMIT" --
}

# Prints the patch and the names of excluded paths, in base64: output is text, and a patch is bytes.
print_result() {
    printf 'result:' # after messages of the commands
    base64 -w 0 result
    printf ' '
    [ ! -s excluded ] || base64 -w 0 excluded
}

# Writes the difference between base and tree to `result`, and excluded paths to `excluded`.
write_diff() {
    # Not `git ls-files`, which would obey the policy's ignore files and stop at its repositories.
    # `modes` has each mode before it is changed, so that `clean` can restore it after a kill;
    # `files` has all files but a symbolic link .gitmodules, with which git refuses a patch; `marks`
    # has signs of repositories and virtual environments, `cores` names of core dumps, and `large`
    # files above the limit that are younger than the template.
    find "$GIT_WORK_TREE" \
        \( -type d ! -perm -500 -printf '%m %p\0' -exec chmod u+rx {} \; \) , \
        \( -type f ! -perm -400 -printf '%m %p\0' -exec chmod u+r {} \; \) , \
        -path "$GIT_WORK_TREE/.git" -prune -o -name .git -fprintf marks '%P\0' -prune -o \
        \( -type f -o -type l ! -iname .gitmodules \) -fprintf files '%P\0' -type f \
        \( -name pyvenv.cfg -fprintf marks '%P\0' , \
        \( -name core -o -name 'core.[0-9]*' \) -fprintf cores '%P\0' , \
        -size "+${CG_MAX}c" -newercc "$GIT_DIR/index" -fprintf large '%P\0' \) > modes
    sort -z files > present
    comm -z -23 "$GIT_DIR/base-paths" present > gone
    comm -z -13 "$GIT_DIR/base-paths" present > new
    [ ! -s new ] || select_new
    if [ -s large ]; then
        sort -z large | comm -z -12 - "$GIT_DIR/base-paths" | xargs -0r git --literal-pathspecs \
            diff --no-ext-diff --no-textconv --name-only "$CG_COMMIT" -- > refused
        [ ! -s refused ] || { cat refused; exit 41; }
    fi
    if [ -s gone ] || [ -s new ]; then
        cp "$GIT_DIR/index" index
        export GIT_INDEX_FILE=$CG_TMP/index
        # New paths are entered as empty files of unknown age, so `git diff` reads them in the tree.
        {
            sed -z 's,^,0 0000000000000000000000000000000000000000\t,' gone
            sed -z 's,^,100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t,' new
        } | git update-index -z --index-info
    fi
    compare --binary --full-index > result
}

# Removes from `new` the paths that the base's ignore files name. Moves paths that cannot be part of
# a repair to `excluded`: large files, core dumps, and folders with a repository or a virtual
# environment and without files of the base, except its submodules.
select_new() {
    # With `./`, git does not read a name that starts with a colon as a pattern.
    sed -z 's,^,./,' new |
        GIT_WORK_TREE=$GIT_DIR/base-ignores git check-ignore --no-index -z --stdin > ignored ||
        [ $? = 1 ]
    sed -z 's,^\./,,' ignored | comm -z -23 new - > unignored
    if [ -s marks ] || [ -s cores ] || [ -s large ]; then
        sort -z cores | while IFS= read -rd '' path; do
            IFS= read -rN 4 magic < "$GIT_WORK_TREE/$path" || continue
            [ "$magic" != $'\177ELF' ] || printf '%s\0' "$path"
        done | sort -z - large | comm -z -12 - unignored > unwanted
        git ls-files -z --stage | sed -zn 's,^160000 [^\t]*\t,,p' > submodules
        sed -zn ':up; p; s,/[^/]*$,,; t up' "$GIT_DIR/base-paths" submodules | sort -zu > base
        sed -zn 's,/[^/]*$,,p' marks | sort -zu | comm -z -23 - base | sed -z 's,$,/,' > folders
        cat unwanted folders > excluded
        folder=/
        sort -z unignored folders | while IFS= read -rd '' path; do
            case $path in
                "$folder"*) ;;
                */) folder=$path ;; # the paths in the folder follow
                *) printf '%s\0' "$path" ;;
            esac
        done | comm -z -23 - unwanted > new
    else
        mv unignored new
    fi
}

# Applies the patch of standard input to the base, in an index without a tree, and writes the
# difference to `result`.
write_normalized() {
    mkdir objects
    cp "$GIT_DIR/index" index
    export GIT_INDEX_FILE=$CG_TMP/index GIT_OBJECT_DIRECTORY=$CG_TMP/objects
    export GIT_ALTERNATE_OBJECT_DIRECTORIES=$GIT_DIR/objects
    cat > text
    # As SWE-bench's harness: by git, else by `patch --fuzz=5`, from a clean state each time.
    git apply --cached --whitespace=nowarn text > log 2>&1 || apply_with_fuzz > fuzz 2>&1 || {
        [ $? -lt 126 ] || { cat fuzz; exit 127; } # the program cannot run
        cat log
        grep -qE '^(---|\+\+\+) [ab]/' text || ! git apply --cached --check -p0 text 2> log ||
            echo "error: its paths lack the prefixes a/ and b/; make it without --no-prefix"
        exit 1
    }
    # New files of the environment's build are not part of the patch.
    compare --cached --name-only -z --diff-filter=A | while IFS= read -rd '' path; do
        [ ! -e "$GIT_WORK_TREE/$path" ] || printf '%s\0' "$path"
    done | git update-index -z --force-remove --stdin
    size=$(GIT_ALTERNATE_OBJECT_DIRECTORIES='' git cat-file --batch-all-objects \
        --batch-check='%(objectsize)' | sort -n | sed -n '$p')
    [ "${size:-0}" -le "$CG_MAX" ] || { echo "a file of $size bytes"; exit 41; }
    compare --cached --binary --full-index > result
}

# Applies `text` by the program patch to the files that it names, and enters them into the index.
# `set -e` has no effect here, because the caller continues after a failure.
apply_with_fuzz() (
    sed -nE 's,^(---|\+\+\+) [^/]+/([^\t\r]+).*,\2,p
        s,^(rename|copy) from ([^\r]+).*,\2,p' text | sort -u | tr '\n' '\0' > changed
    mkdir tree
    cd tree || exit
    git --work-tree=. checkout-index -q -f -z --stdin < ../changed
    # --forward, because `patch --batch` alone reverses hunks that seem to be applied.
    patch --batch --forward --fuzz=5 -p1 --no-backup-if-mismatch -i ../text || exit
    find . \( -type f -o -type l \) -printf '%P\0' | sort -zu ../changed - |
        git --work-tree=. update-index -z --add --remove --stdin
)

# Changes the tree completely or not at all.
apply() {
    cd "$GIT_WORK_TREE"
    git apply --whitespace=nowarn -
}

# Copies files that are in the tree but not in the base, except byte code.
collect() {
    cd "$GIT_WORK_TREE"
    find . -mindepth 1 \( -name .git -o -name __pycache__ \) -prune -o \
        \( -type f -o -type l \) -printf '%P\0' | sort -z | comm -z -13 "$GIT_DIR/base-paths" - |
        tar -c --null --verbatim-files-from -T - | tar -x -C "$CG_INTO"
}

# Copies the checkout's index to the file CG_TMP, with the times and owners in the sandbox. The
# second git folder ignores attributes, which would show some files with unusual line ends as
# changed.
refresh() {
    cp "$GIT_WORK_TREE/.git/index" "$CG_TMP"
    cd "$GIT_WORK_TREE"
    GIT_INDEX_FILE=$CG_TMP git update-index --really-refresh --ignore-submodules
}

case $CG_ACTION in
    diff) start; write_diff; print_result ;;
    normalize) start; write_normalized; print_result ;;
    apply | clean | collect | refresh) "$CG_ACTION" ;;
esac
