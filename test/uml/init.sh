#!/bin/sh
# PID 1 of the machine: sets up mounts and network, runs the job, writes its exit code to the job
# directory, and powers the machine off.
# usage: JOB=DIR [SHARED=DIR] [SYSTEMD=yes] [ADDRESS=A.B.C.D/N GATEWAY=A.B.C.D] init.sh, with
# directories of the host; JOB has run.sh
modules=/usr/lib/uml/modules

job() {
  export TMPDIR=/run/tmp
  mkdir -m 1777 "$TMPDIR"
  sh "$JOB/run.sh" </dev/null >/dev/ttyS0 2>&1
  echo $? > "$JOB/code"
  sync
  exec busybox poweroff -f # kill what still runs
}

case ${STAGE:-} in
  rooted) ;;
  job) job ;;
  *)
    # The host's files are the lower layer: everything is writable, and the host does not change.
    insmod "$modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko"
    mount -t tmpfs -o mode=755 tmpfs /mnt
    mkdir /mnt/upper /mnt/work /mnt/root
    mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
    cd /mnt/root
    pivot_root . mnt
    umount -l /mnt
    STAGE=rooted exec "$0"
    ;;
esac

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t mqueue mqueue /dev/mqueue
# Not on the overlay: the runtime cannot use it as the upper layer of another overlay.
for dir in /dev/shm /run /var/lib /var/log /etc/cni /etc/kubernetes; do
  mkdir -p "$dir"
  mount -t tmpfs -o mode=755 tmpfs "$dir"
done
for dir in "$JOB" ${SHARED:+"$SHARED"}; do
  mount -t hostfs -o "$dir" none "$dir"
done
rm -rf /lib/modules
ln -s "$modules" /lib/modules
modprobe -a bridge veth
mount --make-rshared / # as on a machine with systemd
hostname uml
ip link set lo up
if [ -n "${ADDRESS:-}" ]; then
  ip link set vec0 name eth0
  ip addr add "$ADDRESS" dev eth0
  ip link set eth0 up
  ip route add default via "$GATEWAY"
fi
[ ! -e /dev/ubda ] || { mkswap /dev/ubda && swapon /dev/ubda; }
# /proc/cpuinfo lacks the clock rate, which programs read.
{ cat /proc/cpuinfo; printf 'cpu MHz\t\t: 1000.000\n'; } > /run/cpuinfo
mount --bind /run/cpuinfo /proc/cpuinfo
stty -F /dev/ttyS0 raw -echo
[ -n "${SYSTEMD:-}" ] || job

# systemd becomes PID 1, with D-Bus and the job, but without the host's services.
units=/run/systemd/system
for unit in dbus.service dbus.socket; do
  mkdir -p "$units/$unit.d"
  printf '[Unit]\nDefaultDependencies=no\n' > "$units/$unit.d/alone.conf"
done
cat > "$units/job.service" <<END
[Unit]
DefaultDependencies=no
Requires=dbus.service
After=dbus.service
[Service]
Environment=STAGE=job "JOB=$JOB"
ExecStart=$0
Delegate=yes
END
exec /lib/systemd/systemd --system --unit=job.service
