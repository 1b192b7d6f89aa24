#!/bin/bash
# Process 1 of a container runs this script; its fork, the runner, runs each command. Commands
# can neither read nor trace these two processes.
#
# A request is a line `NONCE INPUT NUM_CHUNKS SIZE...` and then texts of those sizes, in bytes:
# chunks of standard input, the folder, the command, variables as NAME=VALUE, all written for
# `printf %b`, because bash variables cannot hold a NUL. Standard input is stored in the file
# /dev/shm/INPUT. NONCE and INPUT are random: no earlier command can create the file, and a command,
# which sees the path in /proc, cannot forge the reply: the output and a line
# `NONCE EXIT_CODE NUM_LEFTOVERS NUM_OUT_OF_MEMORY`. An empty line ends the command; its reply has
# a fifth word, `killed`, and may follow the runner's reply. End-of-file ends the container.

environment=$(unset PWD OLDPWD; export -p)
LC_ALL=C
exec 2>/dev/null 9<> <(:) # runners write to 9 when they end
# Signals to the process group are for the command; without -m the command would ignore interrupts.
# Process 1 must survive a write above the file size limit, and signals of commands: bash handles
# these, so the kernel would deliver them to process 1 too.
signals=(HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM SYS)
trap '' "${signals[@]}"
set -m

pause() { read -r -t 0.004 -u 9; } # waits four milliseconds

count_running() { # counts all processes except this process and process 1
  local entry line
  num_running=0
  for entry in /proc/[0-9]*; do
    [[ $entry = /proc/1 || $entry = "/proc/$BASHPID" ]] && continue
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

reply() { # writes the exit code $1, the number $2 of leftover processes, and the word $3
  local file key value num_out_of_memory=0
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    while read -r key value; do
      [[ $key = oom_kill ]] && num_out_of_memory=$value
    done <"$file"
  done
  echo "$nonce $1 $2 $num_out_of_memory${3:+ $3}"
}

read_text() { # reads the next text, of $1 bytes, into the variable `decoded`
  local escaped=
  (($1 == 0)) || read -r -N "$1" escaped || exit
  printf -v decoded %b "$escaped"
}

read_input() { # reads chunks of the sizes $@ into the file $input; sets input_error
  local size escaped
  : >"$input"
  for size; do
    read -r -N "$size" escaped || exit
    [[ $input_error ]] || printf %b "$escaped" >>"$input" ||
      input_error="bash: $(printf x 2>&1 >>"$input")" # the reason of the failure
  done
}

read_request() { # reads the texts after the line with words $@; opens the standard input as 8
  local size
  nonce=$1 input=/dev/shm/$2 num_chunks=$3 input_error='' variables=()
  shift 3
  exec 8</dev/null
  if ((num_chunks)); then
    read_input "${@:1:num_chunks}"
    [[ $input_error ]] || exec 8<"$input"
    rm -f "$input"
  fi
  shift "$num_chunks"
  read_text "$1"
  folder=$decoded
  read_text "$2"
  command=$decoded
  for size in "${@:3}"; do
    read_text "$size"
    variables+=("$decoded")
  done
}

run_request() {
  (
    trap - "${signals[@]}"
    if [[ $input_error ]]; then
      echo "bash: standard input: ${input_error##*: }"
      exit 1
    fi
    cd -- "$folder" || {
      reason=$(cd -- "$folder" 2>&1 || :)
      echo "bash: cd: $folder: ${reason##*: }"
      exit 1
    }
    unset OLDPWD
    set -- env -- "${variables[@]}" bash -c -- "$command"
    ((${#variables[@]})) || shift 2
    eval "$environment" 2>/dev/null # this script may have changed variables of the same names
    exec "$@"
    # The output is opened again, because flags that one command sets must not affect the next.
  ) <&8 8<&- 9<&- >/proc/self/fd/1 2>&1
  exit_code=$?
  # A process substitution may still be running.
  for _ in {1..12}; do
    count_running
    ((num_running)) || break
    pause
  done
  kill -STOP -1 # a process that forks and ends could escape the count
  count_running
  num_leftovers=$num_running
  ((num_leftovers)) && kill_others
  reply "$exit_code" "$num_leftovers"
  echo "$BASHPID" >&9 # wakes process 1
}

runner=
while :; do
  # `read -t` can discard input that arrives at its time limit, so it reads no requests.
  while [[ $runner ]] && ! read -r -t 0; do
    ended=
    read -r -t 0.2 -u 9 ended
    [[ $ended = "$runner" ]] || ! kill -0 "$runner" || continue
    wait "$runner" || { # a command killed the runner before its reply
      exit_code=$?
      kill_others
      reply "$exit_code" 0
    }
    runner=
  done
  read -r -a words || exit
  if ((${#words[@]})); then
    read_request "${words[@]}"
    run_request &
    runner=$!
    exec 8<&-
  else
    kill_others
    reply 0 0 killed
    runner=
  fi
done
