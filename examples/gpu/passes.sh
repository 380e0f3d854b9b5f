# The passes of run.sh. Sourced by it.

# plugin_process starts the device plugin. It always makes its socket in /var/lib/kubelet/device-plugins, so it
# gets the directory of `swiftlet up` there, in a mount namespace of its own.
plugin_process() {
  mkdir -p /var/lib/kubelet/device-plugins
  DEVICE_LIST_STRATEGY=cdi-cri MIG_STRATEGY=$mig NVIDIA_DRIVER_ROOT=$driver CONTAINER_DRIVER_ROOT=$driver NVIDIA_DEV_ROOT=/ \
    NVIDIA_CDI_HOOK_PATH=$programs/nvidia-cdi-hook \
    unshare --mount sh -c 'mount -n --bind "$1" /var/lib/kubelet/device-plugins && exec "$2"' \
    sh "$root/kubelet/device-plugins" "$programs/nvidia-device-plugin" >"$work/plugin.log" 2>&1 &
  plugin=$!
}
stop_plugin() {
  kill "$plugin" && wait "$plugin"
  plugin=
}
plugin_pod() { # CONFIG: a file with the ConfigMap
  cp "$here/manifests/$1" "$manifests/config.yaml"
  manifest $here/manifests/device-plugin.yaml device-plugin.yaml -e "s,/var/lib/swiftlet,$root," \
    -e "s,NVIDIA_DRIVER_ROOT\, value: /,NVIDIA_DRIVER_ROOT\, value: $driver," -e "s,hostPath: {path: /},hostPath: {path: $driver}," \
    -e "s,/usr/bin/nvidia-cdi-hook,$programs/nvidia-cdi-hook," \
    -e "s,^    - {name: CONFIG_FILE.*,&\n    - {name: MIG_STRATEGY\, value: $mig},"
}
remove_plugin_pod() {
  rm "$manifests/device-plugin.yaml"
  await "the pod of the plugin is gone" gone nvidia-device-plugin-gpu-node
}
remove() { # NAME…
  for name; do rm "$manifests/$name.yaml"; done
  for name; do await "pod $name is gone" gone "$name-gpu-node"; done
}

# one_after_the_other: a pod waits for the plugin and computes, the next is rejected, and one that comes when the
# first has ended computes.
one_after_the_other() { # STARTS THE PLUGIN…
  saxpy one
  await "pod one waits for a device plugin" says one 'waits for a device \(no device plugin offers nvidia.com/gpu'
  show_why one
  "$@"
  computed one
  saxpy two
  await "pod two is rejected" says two 'nvidia.com/gpu'
  show_why two
  computes one || fail "pod one no longer computes"
  remove one
  saxpy three
  computed three
  remove two three
}

lone_node() {
  step "a lone node, the device plugin is a process"
  run_up
  one_after_the_other plugin_process
  stop_plugin
  step "a lone node, the device plugin is a static pod"
  one_after_the_other plugin_pod config.yaml
  remove_plugin_pod
}

time_slicing() {
  step "time slicing: two pods at once on each GPU"
  plugin_pod time-slicing.yaml
  saxpy four
  saxpy five
  computed four
  computed five
  await "both run" eval "says four ' is ready' && says five ' is ready'"
  nvidia-smi --query-compute-apps=name,used_memory --format=csv,noheader | show
  remove four five
  remove_plugin_pod
}

allocatable() { kubectl get node gpu-node -o jsonpath='{.status.allocatable}'; }
offers() { allocatable | grep -F "\"nvidia.com/gpu\":\"$1\""; }

# second_waits: pod one computes, pod two waits until it has ended.
second_waits() { # STARTS A POD, REGEXP of the resource that pod two waits for
  "$1" one
  computed one
  "$1" two
  await "pod two waits" says two "$2" --kubeconfig "$root/admin.kubeconfig"
  show_why two --kubeconfig "$root/admin.kubeconfig"
  rm "$manifests/one.yaml"
  computed two
  rm "$manifests/two.yaml"
  await "pod two is gone" gone two
}

node_with_api() {
  step "a node with an API, the device plugin is a pod"
  run_up --api
  plugin_pod config.yaml
  await "the node offers $count nvidia.com/gpu" offers "$count"
  allocatable | show; echo
  second_waits saxpy 'nvidia.com/gpu'
  rm "$manifests/device-plugin.yaml"
  await "the node offers no nvidia.com/gpu" offers 0
}

dra_saxpy() { # NAME: a pod with a claim of its own
  manifest $here/manifests/dra.yaml "$1.yaml" -e '/^kind: DeviceClass/,/^---/d; 1,/^apiVersion/{/^apiVersion/d}' \
    -e "s/^  name: saxpy$/  name: $1/; s/^  name: gpu$/  name: $1/; s/resourceClaimName: gpu/resourceClaimName: $1/" \
    -e "s/deviceClassName: gpu.nvidia.com/&, count: $count/"
}

dra() {
  step "DRA: NVIDIA's driver is a process"
  if [ ! -e "$dra_driver" ] || [ $mig != none ]; then
    echo "    not run: the driver is not built, or MIG is on"
    return
  fi
  "$dra_driver" --node-name gpu-node --namespace default --image-name none --kubeconfig "$root/admin.kubeconfig" \
    --cdi-root /var/run/cdi --nvidia-driver-root "$driver" --container-driver-root "$driver" --nvidia-cdi-hook-path "$programs/nvidia-cdi-hook" \
    --kubelet-registrar-directory-path "$root/kubelet/plugins_registry" --kubelet-plugins-directory-path "$root/kubelet/plugins" \
    >"$work/plugin.log" 2>&1 &
  plugin=$!
  await "the driver offers all GPUs: $count" eval '[ "$(kubectl get resourceslices -o jsonpath="{.items[*].spec.devices[*].name}" | wc -w)" = $count ]'
  kubectl get resourceslices -o jsonpath='{range .items[*].spec.devices[*]}{.name}{": "}{.attributes.productName.string}{", "}{.capacity.memory.value}{"\n"}{end}' | show
  sed '/^---/,$d' $here/manifests/dra.yaml >"$manifests/class.yaml"
  second_waits dra_saxpy 'claim|allocate'
  stop_plugin
}
