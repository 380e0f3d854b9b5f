#!/bin/sh
# Runs a node on a machine of user-mode Linux: containerd with the pause image, and a kubelet. Exits
# with the kubelet.
# usage: machine_node.sh ETC BUNDLE PAUSE_ARCHIVE CONTAINERD_LOG KUBELET [ARGUMENT…], with files of
# the host; ETC has what is copied to /etc
set -eu
etc=$1 bundle=$2 pause=$3 log=$4
shift 4
export PATH="$bundle:$PATH"

cp -r "$etc/." /etc
mkdir -p /opt/cni/bin
mount --bind "$bundle/cni" /opt/cni/bin
rm -f /etc/resolv.conf
echo 'nameserver 127.0.0.1' > /etc/resolv.conf
echo 1 > /proc/sys/net/ipv4/ip_forward
# The machine's nf_tables has no tables of IPv4.
for command in iptables ip6tables; do ln -sf "/usr/sbin/$command-legacy" "/etc/alternatives/$command"; done

containerd > "$log" 2>&1 &
until ctr version > /dev/null 2>&1; do
  kill -0 $! || { tail "$log"; exit 1; }
  sleep 0.2
done
ctr -n k8s.io images import "$pause"
exec "$@"
