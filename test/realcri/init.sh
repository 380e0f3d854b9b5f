# The first process of the namespaces: it makes them usable, says so, and becomes a program
# that only reaps. When it ends the kernel ends everything else in them.
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
echo ready
exec "$1" >/dev/null 2>&1
