#!/bin/sh
# PID 1 of a box. It starts in new mount, network, pid, ipc and uts namespaces, sets up mounts, writes
# "ready" to descriptor 3, and execs a program that only reaps. When that exits, the kernel kills everything
# else in the box.
# usage: init.sh REAPER CONTROLLERS:CGROUP_DIR…
set -eu
reaper=$1
shift
if [ "${BOX_STAGE:-}" != cgrouped ]; then
  mount --make-rprivate / # mounts do not propagate to the host
  # The root of a cgroup namespace is the cgroup of its creator: move first, then unshare.
  for h; do echo 0 > "${h#*:}/cgroup.procs"; done
  BOX_STAGE=cgrouped exec unshare --cgroup -- sh "$0" "$reaper" "$@"
fi
mount -t proc proc /proc   # of this pid namespace
mount -t sysfs sysfs /sys  # of this network namespace
if [ $# -gt 0 ]; then # cgroup v1
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  for h; do
    controllers=${h%%:*} options=${h%%:*}
    case $controllers in name=*) controllers=${controllers#name=} options=none,$options ;; esac
    mkdir "/sys/fs/cgroup/$controllers"
    mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$controllers"
  done
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
mount --make-rshared / # mounts propagate into pods, as on a machine with systemd
echo ready >&3
exec 3>&-
exec "$reaper"
