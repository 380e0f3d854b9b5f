package standalone

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// SandboxImage is the pause image of every pod sandbox; `make build` builds it.
const SandboxImage = "registry.k8s.io/pause:3.10"

// containerdTemplate sets every path that has a host-wide default, so that the bundled
// containerd shares nothing with another one. Unused plugins are disabled: each costs start-up
// time.
//
// It is not a text/template: that calls methods by name, so the linker would keep every exported
// method of the program.
const containerdTemplate = `version = 4
root = ${Root}
state = ${State}
oom_score = ${OOMScore}
imports = []
disabled_plugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.mount-handler.v1.erofs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.native",
]

[plugins."io.containerd.server.v1.grpc"]
  address = ${Socket}
[plugins."io.containerd.server.v1.ttrpc"]
  address = ${Ttrpc}
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = ${Shims}
[plugins."io.containerd.internal.v1.opt"]
  path = ${Opt}
[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = ${Sandbox}
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = ${HostConfigs}

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = ${RestrictOOM}
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [${CNIBin}]
    conf_dir = ${CNIConf}
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = ${Shim}
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = ${Runc}
        Root = ${RuncState}
        SystemdCgroup = ${Systemd}
`

// containerdConfig renders the runtime's configuration. mayLowerOOM says whether this process
// may set an OOM score below its own.
func containerdConfig(p Paths, registries Registries, systemd, mayLowerOOM bool) []byte {
	values := map[string]string{
		"Root": p.containerdRoot(), "State": p.containerdState(), "Socket": p.Socket(),
		"Ttrpc": p.Socket() + ".ttrpc", "Shims": p.shimSockets(), "Opt": filepath.Join(p.containerdRoot(), "opt"),
		"HostConfigs": registries.configPath(p), "Sandbox": SandboxImage, "CNIBin": p.program("cni"), "CNIConf": p.networkConf(),
		"Shim": p.program("containerd-shim-runc-v2"), "Runc": p.program("runc"), "RuncState": p.runcState(),
	}
	for name, value := range values {
		values[name] = strconv.Quote(value)
	}
	values["Systemd"] = strconv.FormatBool(systemd)
	values["RestrictOOM"] = strconv.FormatBool(!mayLowerOOM)
	values["OOMScore"] = "0"
	if mayLowerOOM {
		values["OOMScore"] = "-999"
	}
	return []byte(os.Expand(containerdTemplate, func(name string) string { return values[name] }))
}

// mayLowerOOMScore reports whether this process has CAP_SYS_RESOURCE. Negative OOM scores of
// containers need it, and root inside a container often lacks it.
func mayLowerOOMScore() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
