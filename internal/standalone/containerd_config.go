package standalone

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"text/template"

	"golang.org/x/sys/unix"
)

// SandboxImage is the pause image of every pod sandbox; `make build` builds it.
const SandboxImage = "registry.k8s.io/pause:3.10"

// containerdTemplate sets every path that has a host-wide default, so that the bundled
// containerd shares nothing with another one. Unused plugins are disabled: each costs start-up
// time.
var containerdTemplate = template.Must(template.New("containerd").Funcs(template.FuncMap{"q": strconv.Quote}).Parse(
	`version = 4
root = {{q .Root}}
state = {{q .State}}
oom_score = {{.OOMScore}}
imports = []
disabled_plugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.mount-handler.v1.erofs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.native",
]

[plugins."io.containerd.server.v1.grpc"]
  address = {{q .Socket}}
[plugins."io.containerd.server.v1.ttrpc"]
  address = {{q .Ttrpc}}
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = {{q .Shims}}
[plugins."io.containerd.internal.v1.opt"]
  path = {{q .Opt}}
[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = {{q .Sandbox}}
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {{.RestrictOOM}}
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [{{q .CNIBin}}]
    conf_dir = {{q .CNIConf}}
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = {{q .Shim}}
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = {{q .Runc}}
        Root = {{q .RuncState}}
        SystemdCgroup = {{.Systemd}}
`))

// containerdConfig renders the runtime's configuration. mayLowerOOM says whether this process
// may set an OOM score below its own.
func containerdConfig(p Paths, systemd, mayLowerOOM bool) ([]byte, error) {
	values := map[string]any{
		"Root": p.containerdRoot(), "State": p.containerdState(), "Socket": p.Socket(),
		"Ttrpc": p.Socket() + ".ttrpc", "Shims": p.shimSockets(), "Opt": filepath.Join(p.containerdRoot(), "opt"),
		"Sandbox": SandboxImage, "CNIBin": p.program("cni"), "CNIConf": p.networkConf(),
		"Shim": p.program("containerd-shim-runc-v2"), "Runc": p.program("runc"), "RuncState": p.runcState(),
		"Systemd": systemd, "RestrictOOM": !mayLowerOOM, "OOMScore": 0,
	}
	if mayLowerOOM {
		values["OOMScore"] = -999
	}
	var out bytes.Buffer
	if err := containerdTemplate.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("render containerd configuration: %w", err)
	}
	return out.Bytes(), nil
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
