#!/bin/sh
# PID 1 of a box. It starts in new mount, network, pid, ipc and uts namespaces, sets up the mounts
# of a node, writes "ready" to descriptor 3, and execs a program that only reaps. When it exits,
# the kernel kills everything else in the box.
# usage: box_init.sh NAME DIR REAPER CNI_BIN_DIR CONTROLLERS:CGROUP_DIR…
set -eu
name=$1 dir=$2 reaper=$3 cni=$4
shift 4

if [ "${BOX_STAGE:-}" != cgrouped ]; then
  mount --make-rprivate / # mounts do not propagate to the host
  # The root of a cgroup namespace is the cgroup of its creator: move first, then unshare.
  for h; do echo 0 > "${h#*:}/cgroup.procs"; done
  BOX_STAGE=cgrouped exec unshare --cgroup -- sh "$0" "$name" "$dir" "$reaper" "$cni" "$@"
fi

hostname "$name"
mount -t proc proc /proc   # of this pid namespace
mount -t sysfs sysfs /sys  # of this network namespace
mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
for h; do
  controllers=${h%%:*} options=${h%%:*}
  case $controllers in name=*) controllers=${controllers#name=} options=none,$options ;; esac
  mkdir "/sys/fs/cgroup/$controllers"
  mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$controllers"
done

# A node writes below these directories. Its changes stay in the box.
for p in /etc /opt /usr/libexec /var; do
  mkdir -p "$dir/upper$p" "$dir/work$p"
  mount -t overlay -o "lowerdir=$p,upperdir=$dir/upper$p,workdir=$dir/work$p" overlay "$p"
done
# These are directories of the host, so that tests can read and write them, and so that the
# snapshotter does not put an overlay on an overlay.
for p in /etc/kubernetes /etc/containerd /etc/cni /var/lib/kubelet /var/lib/containerd \
  /var/lib/cni /var/lib/swiftlet /var/log/pods /var/log/containers; do
  mkdir -p "$p" "$dir/fs$p"
  mount --bind "$dir/fs$p" "$p"
done
mkdir -p /opt/cni/bin
mount --bind "$cni" /opt/cni/bin
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock

rm -f /etc/hosts /etc/resolv.conf /etc/machine-id
tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id # unique per node
printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %s\n' "$name" > /etc/hosts
printf 'nameserver 127.0.0.1\n' > /etc/resolv.conf
echo 1 > /proc/sys/net/ipv4/ip_forward
mount --make-rshared / # mounts propagate into pods, as on a machine with systemd

echo ready >&3
exec 3>&-
exec "$reaper"
