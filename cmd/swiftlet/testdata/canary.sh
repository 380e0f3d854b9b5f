# Functions of tests that search for secrets of `swiftlet up`. $secrets has one on each line.

# keys prints a line of each private key.
keys() { # DIR
  find "$1" -name '*.key' -exec sed -n 2p {} \;
}

# leaks prints where a secret is: in a log, the report, the arguments of a process, or a file that others can read.
leaks() { # ROOT OUT...
  local root=$1 process
  shift
  grep -lFf "$secrets" "$@" | sed 's/^/log /'
  find "$root" /run/swiftlet -name '*.log*' -type f -exec grep -lFf "$secrets" {} + | sed 's/^/log /'
  rm -rf "$state/report" "$state/report.tar.gz"
  "$swiftlet" report --root "$root" -o "$state/report.tar.gz" >/dev/null 2>&1 && mkdir "$state/report" && tar -xzf "$state/report.tar.gz" -C "$state/report" || echo "no report"
  grep -rlFf "$secrets" "$state/report" | sed 's/^/report /'
  for process in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null <"$process/cmdline" | grep -qFf "$secrets" && echo "arguments of $process: $(tr '\0' ' ' <"$process/cmdline")"
  done
  find "$root" /run/swiftlet -xdev \( -type d ! -perm -001 -prune \) -o \( -type f -perm -004 -exec grep -lFf "$secrets" {} + \) 2>/dev/null | sed 's/^/readable file /'
}
