#!/bin/sh
# Runs a command in its own namespaces and cgroup, which end with the command.
# usage: box.sh NAME COMMAND [ARGUMENT…]
set -eu
if [ "$1" != --inside ]; then
  name=$1
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$name"; echo $$ > "/sys/fs/cgroup/$name/cgroup.procs"
  else
    for dir in /sys/fs/cgroup/*/; do
      [ -e "$dir/cgroup.procs" ] || continue
      mkdir -p "$dir$name"
      if [ -e "$dir/cpuset.cpus" ]; then # a new v1 cpuset is empty
        cat "$dir/cpuset.cpus" > "$dir$name/cpuset.cpus"; cat "$dir/cpuset.mems" > "$dir$name/cpuset.mems"
      fi
      echo $$ > "$dir$name/cgroup.procs"
    done
  fi
  exec unshare -m -n -p -f -C -i -u --mount-proc --kill-child "$0" --inside "$@"
fi
shift 2
mount --make-rprivate /
controllers=$(awk '$4 == 1 && NR > 1 {print $1}' /proc/cgroups)
named=$(sed -n 's/^[0-9]*:name=\([^:]*\):.*/\1/p' /proc/self/cgroup) # systemd's hierarchy, without a controller
v2=$([ -e /sys/fs/cgroup/cgroup.controllers ] && echo yes || true)
umount -l -R /sys # or the mount table would still list the hidden hierarchies
mount -t sysfs sysfs /sys
if [ "$v2" ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  for c in $controllers; do
    mkdir "/sys/fs/cgroup/$c"
    mount -t cgroup -o "$c" cgroup "/sys/fs/cgroup/$c" 2>/dev/null || rmdir "/sys/fs/cgroup/$c"
  done
  for n in $named; do # a runtime needs every hierarchy that a process is in
    mkdir "/sys/fs/cgroup/$n"
    mount -t cgroup -o "none,name=$n" cgroup "/sys/fs/cgroup/$n"
  done
fi
mount -t tmpfs tmpfs /run
mkdir -p /var/lib/cni && mount -t tmpfs tmpfs /var/lib/cni && rmdir /var/lib/cni 2>/dev/null || true
ip link set lo up
"$@"
