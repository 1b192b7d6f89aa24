# Process 1 of a container: runs its owner's commands, one at a time, until its input ends.
#
# A request is a line `run NONCE NUM_CHUNKS SIZE...` and then as many texts of those sizes, in bytes:
# the chunks of standard input, the folder, the command, variables as NAME=VALUE. They are written
# for `printf %b`, since bash holds no NUL. The answer is `NONCE begin`, the output, and
# `NONCE end EXIT_CODE NUM_LEFTOVERS NUM_OUT_OF_MEMORY`; nobody else knows the nonce.
# While a command runs, a line that holds its nonce kills it, and any other is a poke.

LC_MESSAGES=C
is_set=${LC_ALL+yes} was=${LC_ALL-}
LC_ALL=C
# With job control, background commands do not ignore SIGINT.
set -m
exec 2>/dev/null 9<> <(:)
input=/dev/shm/.coding_gym
trap 'kill -9 -1' USR1

pause() { # for a few milliseconds: nothing is ever written to 9
  read -r -t 0.004 -u 9
}

take() { # the next text of $2 bytes into the variable named $1
  local taken=
  (($2 == 0)) || read -r -N "$2" taken || exit
  printf -v "$1" %b "$taken"
}

take_input() { # chunks of the given sizes into descriptor 8
  exec 8</dev/null
  (($#)) || return 0
  local size taken status=0
  : >"$input"
  for size; do
    read -r -N "$size" taken || exit
    printf %b "$taken" >>"$input" || status=1
  done
  exec 8<"$input" || status=1
  rm -f "$input"
  return $status
}

count_running() { # sets num_running to the processes but this one and the watch
  local entry line
  num_running=0
  for entry in /proc/[0-9]*; do
    [[ $entry = /proc/1 || $entry = "/proc/$watch" ]] && continue
    line=
    IFS= read -r -d '' line <"$entry/stat"
    line=${line##*) }
    [[ ! $line || $line = [ZX]* ]] || ((num_running += 1))
  done
}

count_out_of_memory() {
  local file key value
  num_out_of_memory=0
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [[ -r $file ]] || continue
    while read -r key value; do
      [[ $key = oom_kill ]] && num_out_of_memory=$value
    done <"$file"
  done
}

start() { # the command, as the process $child
  (
    trap - USR1
    cd -- "$folder" || {
      reason=$(cd -- "$folder" 2>&1)
      echo "bash: cd: $folder: ${reason##*: }"
      exit 1
    }
    unset OLDPWD
    if [[ $is_set ]]; then LC_ALL=$was; else unset LC_ALL; fi
    prefix=()
    ((${#variables[@]})) && prefix=(env -- "${variables[@]}")
    # One argument of a program has at most 128 KiB.
    if ((${#command} < 131072)); then
      exec "${prefix[@]}" bash -c -- "$command"
    fi
    exec 7<<<"$command"
    exec "${prefix[@]}" bash -c 'command=$(</dev/fd/7); exec 7<&-; eval "unset command; $command"'
    # An own opening of the output: flags that one command sets must not meet the next.
  ) <&8 8<&- 9<&- >/proc/self/fd/1 2>&1 &
  child=$!
  exec 8<&-
}

watch() { # reads what the owner says meanwhile, as the process $watch
  (
    trap - USR1
    read -r line || exit 1
    [[ $line = *"$nonce"* ]] && exit 2
    exit 3
  ) <&0 &
  watch=$!
}

await() { # the command's end; sets exit_code
  local said
  killed=
  while kill -0 "$child"; do
    # By the command or by somebody's word, whichever is first. Once in a blue moon bash misses an
    # end that comes just now: the owner pokes from time to time.
    wait -n
    kill -0 "$watch" && continue
    wait "$watch"
    said=$?
    ((said == 1)) && { kill -9 -1; exit; }
    ((said == 2)) && { killed=yes; kill -9 -1; }
    watch
  done
  wait "$child"
  exit_code=$?
}

end_others() { # what the command left running; sets num_leftovers
  local pauses=12
  [[ $killed ]] && pauses=0
  count_running
  while ((num_running && pauses--)); do
    # A process substitution may have a little to do yet.
    pause
    count_running
  done
  num_leftovers=$num_running
  kill -9 -1
  wait "$watch"
  while count_running; ((num_running)); do
    kill -9 -1
    pause
  done
}

while read -r op nonce num_chunks sizes; do
  [[ $op = run ]] || continue
  sizes=($sizes)
  take_input "${sizes[@]:0:num_chunks}"
  status=$?
  take folder "${sizes[num_chunks]}"
  take command "${sizes[num_chunks + 1]}"
  variables=()
  for size in "${sizes[@]:num_chunks + 2}"; do
    take variable "$size"
    variables+=("$variable")
  done
  echo "$nonce begin"
  if ((status)); then
    echo "bash: standard input: No space left on device"
    echo "$nonce end 1 0 0"
    continue
  fi
  watch
  start
  await
  end_others
  count_out_of_memory
  echo "$nonce end $exit_code $num_leftovers $num_out_of_memory"
done
kill -9 -1
