#!/bin/bash
# Runs pods on the GPUs of this machine, as docs/gpu.md describes: with NVIDIA's device plugin as a process and
# as a static pod, with time slicing, with the API of `swiftlet up --api`, and with NVIDIA's DRA driver. It says
# what it sees, step by step, and exits with 1 when a step fails. Where there is no GPU it says so and exits
# with 0. Needs root, and what `make gpu` builds.
# usage: run.sh [--probe]     with --probe it only says whether there is a GPU: the exit status is 3 if not
set -uo pipefail
cd "$(dirname "$0")/../.."
here=examples/gpu
. $here/functions.sh
. $here/driver.sh
. $here/passes.sh

if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "gpu: skipped: this machine has no NVIDIA GPU, or its driver is not loaded (no /dev/nvidia0)"
  [ "${1:-}" = --probe ] && exit 3
  exit 0
fi
[ "${1:-}" = --probe ] && exit 0
[ "$(id -u)" = 0 ] || { echo "gpu: pods need root; use: sudo make gpu"; exit 1; }

swiftlet=$PWD/bin/swiftlet programs=$PWD/bin/gpu dra_driver=$PWD/bin/gpu-dra/gpu-kubelet-plugin
for program in "$swiftlet" "$programs/nvidia-device-plugin" "$programs/nvidia-cdi-hook" "$dra_driver" bin/gpu-images/saxpy.tar; do
  [ -e "$program" ] || { echo "gpu: $program is missing; run: make gpu"; exit 1; }
done
work=$(mktemp -d /var/tmp/swiftlet-gpu.XXXXXX)
root=$work/root manifests=$work/manifests out=$work/out
mkdir "$manifests"
touch "$out" "$work/log"
plugin= up=
had_cdi=$(ls -A /var/run/cdi 2>/dev/null)
had_kubelet=$(ls -d /var/lib/kubelet /var/lib/kubelet/device-plugins 2>/dev/null)
trap clean EXIT

begin_traces
find_driver
lone_node
time_slicing
down
node_with_api
dra
down
clean
end_traces
echo "gpu: all steps passed"
