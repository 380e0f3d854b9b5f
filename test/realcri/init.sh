# PID 1 of the namespaces: sets up mounts, writes "ready", and execs a program that only reaps. When
# it exits, the kernel kills everything else in the pid namespace.
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
echo ready
exec "$1" >/dev/null 2>&1
