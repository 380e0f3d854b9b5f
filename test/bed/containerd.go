package bed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

//go:embed containerd.toml
var containerdConfig []byte

// cniConfig is the pod network of a box: a bridge, with host ports.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "bed",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
      "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// StartContainerd starts containerd and returns when it answers.
func (b *Box) StartContainerd(ctx context.Context) error {
	if b.containerd.running() {
		return errors.New("start containerd: already running")
	}
	if err := b.writeContainerdConfig(slices.Concat(containerdConfig, b.runtimeHandlers)); err != nil {
		return err
	}
	var err error
	if b.containerd, err = b.spawn("containerd", "containerd"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return b.containerd.await(ctx, func(ctx context.Context) error {
		_, err := b.Exec(ctx, "ctr", "version")
		return err
	})
}

// writeContainerdConfig writes containerd's configuration and that of the pod network.
func (n *nodeFiles) writeContainerdConfig(config []byte) error {
	if err := n.writeFile("/etc/containerd/config.toml", config); err != nil {
		return err
	}
	return n.writeFile("/etc/cni/net.d/10-bed.conflist", fmt.Appendf(nil, cniConfig, n.PodCIDR()))
}

// StopContainerd stops containerd. Shims are not its children, so containers keep running.
func (b *Box) StopContainerd() error { return b.containerd.stop(10 * time.Second) }

// KillContainerd kills containerd. Containers keep running.
func (b *Box) KillContainerd() error { return b.containerd.kill() }

// ImportImages loads the test images into the running containerd.
func (b *Box) ImportImages(ctx context.Context) error {
	for _, archive := range b.bed.images.Archives {
		if err := b.ImportImage(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// ImportImage loads a docker archive of the host into the running containerd.
func (b *Box) ImportImage(ctx context.Context, archive string) error {
	if _, err := b.Exec(ctx, "ctr", "-n", "k8s.io", "images", "import", archive); err != nil {
		return fmt.Errorf("import %s: %w", archive, err)
	}
	return nil
}

// AddRuntime adds a runtime handler for RuntimeClasses, which is runc like the default. It takes
// effect with the next start of containerd. It is written to config.toml, where upstream's tests
// look for it.
func (b *Box) AddRuntime(handler string) {
	b.runtimeHandlers = fmt.Appendf(b.runtimeHandlers,
		"\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s]\n  runtime_type = 'io.containerd.runc.v2'\n", handler)
}

// writeFile writes a file of the node.
func (n *nodeFiles) writeFile(path string, data []byte) error {
	host := n.Path(path)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		return fmt.Errorf("write %s of %s: %w", path, n.name, err)
	}
	if err := os.WriteFile(host, data, 0o644); err != nil {
		return fmt.Errorf("write %s of %s: %w", path, n.name, err)
	}
	return nil
}
