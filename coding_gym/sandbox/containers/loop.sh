# Two processes of a container run this text; commands can neither read nor trace them.
#
# With the argument `first` it is process 1: it kills all others at each line of its input and then
# writes a line, and it ends the container at the end of its input.
#
# Without an argument it runs its owner's commands, one at a time. A request is a line
# `NONCE NUM_CHUNKS SIZE...` and then texts of those sizes, in bytes: chunks of standard input, the
# folder, the command, variables as NAME=VALUE. They are written for `printf %b`, since bash holds
# no NUL. The answer is the output and a line `NONCE EXIT_CODE NUM_LEFTOVERS NUM_OUT_OF_MEMORY`.

is_set=${LC_ALL+yes} was=${LC_ALL-}
LC_ALL=C
input=/dev/shm/.coding_gym
exec 2>/dev/null 9<> <(:)

pause() { # for four milliseconds: nothing is ever written to 9
  read -r -t 0.004 -u 9
}

count_running() { # sets num_running to the processes but the two
  local entry line
  num_running=0
  for entry in /proc/[0-9]*; do
    [[ $entry = /proc/1 || $entry = "/proc/$$" ]] && continue
    line=
    IFS= read -r -d '' line <"$entry/stat"
    line=${line##*) }
    [[ ! $line || $line = [ZX]* ]] || ((num_running += 1))
  done
}

kill_others() {
  kill -9 -1
  while count_running; ((num_running)); do
    kill -9 -1
    pause
  done
}

take() { # the next text of $2 bytes into the variable named $1
  local taken=
  (($2 == 0)) || read -r -N "$2" taken || exit
  printf -v "$1" %b "$taken"
}

take_input() { # chunks of the given sizes into the file $input
  local size taken status=0
  : >"$input"
  for size; do
    read -r -N "$size" taken || exit
    printf %b "$taken" >>"$input" || status=1
  done
  return $status
}

if [[ ${1-} = first ]]; then
  while read -r; do
    kill_others
    echo
  done
  kill -9 -1
  exit
fi

# Signals to the process group are for the command.
trap '' HUP INT QUIT TERM USR1 USR2
while read -r nonce num_chunks sizes; do
  sizes=($sizes)
  exec 8</dev/null
  status=0
  if ((num_chunks)); then
    take_input "${sizes[@]:0:num_chunks}" && exec 8<"$input" || status=1
    rm -f "$input"
  fi
  take folder "${sizes[num_chunks]}"
  take command "${sizes[num_chunks + 1]}"
  variables=()
  for size in "${sizes[@]:num_chunks + 2}"; do
    take variable "$size"
    variables+=("$variable")
  done
  (
    trap - HUP INT QUIT TERM USR1 USR2
    if ((status)); then
      echo "bash: standard input: No space left on device"
      exit 1
    fi
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
    # The output is opened anew: flags that one command sets must not affect the next.
  ) <&8 8<&- 9<&- >/proc/self/fd/1 2>&1
  exit_code=$?
  exec 8<&-
  # A process substitution may still have something to do.
  for _ in {1..12}; do
    count_running
    ((num_running)) || break
    pause
  done
  num_leftovers=$num_running
  ((num_leftovers)) && kill_others
  num_out_of_memory=0
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    while read -r key value; do
      [[ $key = oom_kill ]] && num_out_of_memory=$value
    done <"$file"
  done
  echo "$nonce $exit_code $num_leftovers $num_out_of_memory"
done
