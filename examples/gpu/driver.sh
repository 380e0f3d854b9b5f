# Finds the driver of the GPUs. Sourced by run.sh.

# find_driver sets $driver, the root directory of the driver for NVIDIA's programs; $count, the number of
# devices; and $mig, the strategy for MIG.
#
# The programs look for the driver's libraries in the directories of distributions, and in these only. A driver
# that is elsewhere, or that links there lead to, gets a root of its own, with the directories mounted where the
# programs look: in a pod, links lead nowhere.
find_driver() {
  local library smi dir
  library=$(ldconfig -p | sed -n 's/.*libnvidia-ml\.so\.1 .*x86-64.* => //p; s/.*libnvidia-ml\.so\.1 .*AArch64.* => //p' | head -n 1)
  smi=$(command -v nvidia-smi)
  [ "$library" ] || { echo "gpu: FAIL: the driver's library libnvidia-ml.so.1 is not in the cache of ldconfig"; exit 1; }
  [ "$smi" ] || { echo "gpu: FAIL: nvidia-smi is not in the PATH"; exit 1; }
  driver=/
  for dir in /usr/lib64 /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu none; do
    [ -e $dir/libnvidia-ml.so.1 ] && [ "$(dirname "$(readlink -f $dir/libnvidia-ml.so.1)")" = "$(readlink -f $dir)" ] && break
  done
  if [ $dir = none ]; then
    driver=$work/driver
    mkdir -p "$driver/usr/lib64" "$driver/usr/bin"
    mount -n --bind "$(dirname "$(readlink -f "$library")")" "$driver/usr/lib64" &&
      mount -n --bind "$(dirname "$(readlink -f "$smi")")" "$driver/usr/bin" || { echo "gpu: FAIL: mount the driver"; exit 1; }
  fi
  step "the GPUs of this machine"
  nvidia-smi --query-gpu=index,name,driver_version,memory.total,mig.mode.current --format=csv,noheader | show
  count=$(nvidia-smi -L | grep -c '^GPU ') mig=none
  if nvidia-smi -L | grep -q '^ *MIG '; then
    count=$(nvidia-smi -L | grep -c '^ *MIG ') mig=single
  fi
  echo "    $(uname -r), $(stat -fc %T /sys/fs/cgroup), driver in $library, root for NVIDIA's programs $driver"
}

release_driver() {
  [ "${driver:-/}" = / ] || umount -n "$driver/usr/lib64" "$driver/usr/bin"
}
