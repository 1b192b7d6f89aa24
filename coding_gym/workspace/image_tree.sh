#!/bin/bash
# Copies the tracked files of CG_PATH to CG_INTO/base, and the untracked files to CG_INTO/rest, in a
# sandbox of an image. Without tracked files, all files are in `rest`, and the tree's .gitignore
# files select the base files later. CG_TMP is an empty folder. The exit code is 43 if there is no
# folder CG_PATH.
set -eu -o pipefail

copy() {
    mkdir "$CG_INTO/$1"
    tar -cf - --null --no-recursion -T - | tar -xof - -C "$CG_INTO/$1"
}

cd "$CG_PATH" || exit 43
find . \( -name .git -o -name __pycache__ \) -prune -o \( ! -type d -o -empty \) -print0 |
    sort -z > "$CG_TMP/all"
# Git trusts a tree of another user only with `safe.directory`, which old versions of git read only
# from a file.
export HOME=$CG_TMP GIT_CONFIG_GLOBAL=$CG_TMP/.gitconfig
printf '[safe]\n\tdirectory = *\n' > "$GIT_CONFIG_GLOBAL"
reason=$(git ls-files -z 2>&1 > "$CG_TMP/listed") || [[ $reason == *'not a git repository'* ]] || {
    echo "$reason"
    exit 1
}
sed -z 's,^,./,' "$CG_TMP/listed" | sort -z | comm -z -12 - "$CG_TMP/all" > "$CG_TMP/tracked"
comm -z -13 "$CG_TMP/tracked" "$CG_TMP/all" | copy rest
[ ! -s "$CG_TMP/tracked" ] || copy base < "$CG_TMP/tracked"
