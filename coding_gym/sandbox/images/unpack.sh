#!/bin/bash
# Unpacks the layer CG_LAYER (a plain, gzip or zstd tar of at most CG_MAX bytes) into the folder
# CG_INTO, in a sandbox. The exit code is 127 if a program is missing. After a failure, the last line
# of output is the reason.
case $(head -c 4 "$CG_LAYER" | od -An -tx1) in
    ' 1f 8b'*) reader=(gzip -dc) ;;
    ' 28 b5 2f fd') reader=(zstd -dcq) ;;
    *) reader=(cat) ;;
esac
command -v "${reader[0]}" tar > /dev/null || {
    echo "no ${reader[0]} or tar"
    exit 127
}
cd "$CG_INTO" && umask 022 || exit
export LC_ALL=C
"${reader[@]}" < "$CG_LAYER" 2> /tmp/reading | head -c "$CG_MAX" |
    tar -x -f - --no-same-owner --no-same-permissions --delay-directory-restore 2> /tmp/errors
status=("${PIPESTATUS[@]}")
# Without privileges tar cannot create device nodes, which a sandbox does not need.
grep -v -e ': Cannot mknod: [^:]*$' -e ': Exiting with failure status' /tmp/errors > /tmp/reasons
if ((status[2] > 2 || (status[2] && $(wc -l < /tmp/reasons)))); then
    tail -n 1 /tmp/reasons
    exit 1
fi
if ((status[0])); then
    echo "it cannot be uncompressed, or has more than $CG_MAX bytes: $(tail -n 1 /tmp/reading)"
    exit 1
fi
chmod -R u+rwX .
