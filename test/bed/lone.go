package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// LoneNode is a box in which `swiftlet up --api` runs. Its API is reached from inside the box alone. The bed
// needs no control plane.
type LoneNode struct{ box *Box }

const (
	loneRoot       = "/var/lib/swiftlet"
	loneManifests  = "/etc/kubernetes/manifests"  // empty
	loneRegistries = "/etc/kubernetes/registries" // what --registry-config takes
	loneConfigs    = "/etc/kubernetes/kubelet.conf.d"
)

// loneConfig keeps the disk usage of the host from causing evictions.
const loneConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
`

// AddLoneNode creates a box without a container runtime.
func (b *Bed) AddLoneNode(ctx context.Context, name string) (*LoneNode, error) {
	b.mu.Lock()
	box := &Box{nodeFiles: b.newNodeFiles(name)}
	b.nodes = append(b.nodes, box)
	b.mu.Unlock()
	if err := box.start(ctx); err != nil {
		return nil, err
	}
	for path, text := range map[string]string{loneManifests + "/.keep": "", loneRegistries + "/.keep": "", loneConfigs + "/bed.conf": loneConfig} {
		if err := box.writeFile(path, []byte(text)); err != nil {
			return nil, err
		}
	}
	return &LoneNode{box: box}, nil
}

// Mirror has images of a registry pulled from the bed's, from the next Start on.
func (n *LoneNode) Mirror(name string, r *Registry) error {
	certificate, err := r.caCertificate()
	if err != nil {
		return err
	}
	if err := n.box.writeFile(nodeCAFile, certificate); err != nil {
		return err
	}
	return n.box.writeFile(filepath.Join(loneRegistries, name, "hosts.toml"), hostsFile(r))
}

// Start runs bin/swiftlet of the checkout and returns when the API has a node that is ready.
func (n *LoneNode) Start(ctx context.Context) error {
	for _, program := range []string{"bin/swiftlet", "bin/api/swiftlet-apiserver", "bin/bundle/containerd", "bin/images/pause.tar"} {
		if _, err := os.Stat(n.program(program)); err != nil {
			return fmt.Errorf("start lone node: %w (build it with `make build api`)", err)
		}
	}
	var err error
	n.box.kubelet, err = n.box.spawn("swiftlet", n.program("bin/swiftlet"), "up", "--api", "--no-table", "--manifests", loneManifests,
		"--registry-config", loneRegistries, "--config-dir", loneConfigs, "--node-name", n.box.name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return n.box.kubelet.await(ctx, func(ctx context.Context) error {
		_, err := n.Kubectl(ctx, "wait", "--for=condition=Ready", "node/"+n.box.name, "--timeout=1s")
		return err
	})
}

// Stop ends swiftlet, which stops the pods first.
func (n *LoneNode) Stop() error { return n.box.kubelet.stop(time.Minute) }

// LoadImages runs `swiftlet image load`.
func (n *LoneNode) LoadImages(ctx context.Context, archives ...string) error {
	if len(archives) == 0 {
		return errors.New("load images: no archives")
	}
	_, err := n.box.Exec(ctx, append([]string{n.program("bin/swiftlet"), "image", "load"}, archives...)...)
	return err
}

// Kubectl runs the node's kubectl in the box and returns its standard output.
func (n *LoneNode) Kubectl(ctx context.Context, args ...string) (string, error) {
	return n.box.Exec(ctx, append([]string{n.KubectlProgram(), "--kubeconfig", n.Kubeconfig()}, args...)...)
}

// Command returns a command that runs argv in the box's namespaces, where the API listens.
func (n *LoneNode) Command(ctx context.Context, argv ...string) *exec.Cmd {
	return n.box.Command(ctx, argv...)
}

// Kubeconfig is the administrator's, as a path of the box.
func (n *LoneNode) Kubeconfig() string { return filepath.Join(loneRoot, "admin.kubeconfig") }

// KubectlProgram is the kubectl that comes with swiftlet.
func (n *LoneNode) KubectlProgram() string { return n.program("bin/api/kubectl") }

// KubeletDir is the kubelet's directory, as a path of the box.
func (n *LoneNode) KubeletDir() string { return filepath.Join(loneRoot, "kubelet") }

// LogDir has the logs of containerd, the API server and CoreDNS, as a path of the host.
func (n *LoneNode) LogDir() string { return n.box.Path(filepath.Join(loneRoot, "log")) }

// program is a path below the checkout, which the box sees, too.
func (n *LoneNode) program(path string) string { return filepath.Join(n.box.bed.bin.Root, path) }
