package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"swiftlet/test/images"
)

// Bed is a control plane with the nodes that were added to it.
type Bed struct {
	ControlPlane *ControlPlane // nil: the test sets one up on a node

	slot     *slot
	bin      *Binaries
	images   *images.Set
	progress io.Writer
	kernel   kernelSettings
	ca       *authority // of a bed without a control plane, once it has issued a certificate

	mu          sync.Mutex
	nodes       []*Box
	machines    []*Machine
	routesMu    sync.Mutex // guards wired
	routed      []*Box     // the nodes that have routes to each other's pods
	hosts       int        // the last host number given out on the bridge's subnet
	buildErr    error      // result of building our kubelet
	kubeletPath string
}

// Start creates a bed without nodes. It takes a few seconds once the programs are built, and
// writes its progress to progress. The control plane turns the given feature gates on.
func Start(ctx context.Context, progress io.Writer, gates ...string) (*Bed, error) {
	b, err := StartNetwork(ctx, progress)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if b.ControlPlane, err = startControlPlane(ctx, b.slot, b.bin.Reference, gates); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	fmt.Fprintf(progress, "bed %d: control plane up in %.1f s\n", b.slot.number, time.Since(began).Seconds())
	return b, nil
}

// StartAPI is Start with etcd and the API server only. The API server gets the given flags in addition to its
// own. There are no controllers: no namespace gets its default service account, and no node is tainted.
func StartAPI(ctx context.Context, progress io.Writer, flags ...string) (*Bed, error) {
	b, err := StartNetwork(ctx, progress)
	if err != nil {
		return nil, err
	}
	if b.ControlPlane, err = startAPI(ctx, b.slot, b.bin.Reference, flags); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// StartNetwork is Start without a control plane. The nodes belong to no cluster, and only the
// methods that need none can be used.
func StartNetwork(ctx context.Context, progress io.Writer) (*Bed, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("start bed: needs root, for namespaces and cgroups")
	}
	bin, err := FindBinaries(ctx, progress)
	if err != nil {
		return nil, err
	}
	set, err := images.Build(ctx, bin.Cache)
	if err != nil {
		return nil, err
	}
	settings, err := readKernelSettings()
	if err != nil {
		return nil, err
	}
	s, err := claimSlot()
	if err != nil {
		return nil, err
	}
	b := &Bed{slot: s, bin: bin, images: set, progress: progress, kernel: settings, hosts: 1}
	if err := s.addBridge(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// AddNode creates a box with a running containerd and the test images. It does not start a
// kubelet.
func (b *Bed) AddNode(ctx context.Context, name string) (*Box, error) {
	b.mu.Lock()
	box := &Box{nodeFiles: b.newNodeFiles(name)}
	b.nodes = append(b.nodes, box)
	b.mu.Unlock()

	began := time.Now()
	if err := box.start(ctx); err != nil {
		return nil, err
	}
	if err := b.addPodRoutes(ctx, box); err != nil {
		return nil, err
	}
	if b.ControlPlane != nil {
		if err := box.writeIdentity(); err != nil {
			return nil, err
		}
	}
	if err := box.StartContainerd(ctx); err != nil {
		return nil, err
	}
	if err := box.ImportImages(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "bed %d: node %s up in %.1f s\n", b.slot.number, name, time.Since(began).Seconds())
	return box, nil
}

// Kubectl runs the command against the bed and returns its standard output.
func (b *Bed) Kubectl(ctx context.Context, args ...string) (string, error) {
	return b.kubectl(ctx, os.Getenv("PATH"), args...)
}

// KubectlWhy runs "kubectl why", which runs Swiftlet as a plugin.
func (b *Bed) KubectlWhy(ctx context.Context, args ...string) (string, error) {
	plugin, err := b.swiftletAs(ctx, "kubectl-why")
	if err != nil {
		return "", err
	}
	return b.kubectl(ctx, filepath.Dir(plugin)+":"+os.Getenv("PATH"), append([]string{"why"}, args...)...)
}

// Report runs "swiftlet report" for a node, through the API server.
func (b *Bed) Report(ctx context.Context, node, file string) error {
	program, err := b.swiftletAs(ctx, "swiftlet")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "report", node, "--output", file, "--kubeconfig", b.ControlPlane.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("swiftlet report: %w: %s", err, out)
	}
	return nil
}

// swiftletAs returns a link to Swiftlet with the name of one of its commands.
func (b *Bed) swiftletAs(ctx context.Context, name string) (string, error) {
	program, err := b.ourKubelet(ctx)
	if err != nil {
		return "", err
	}
	link := filepath.Join(filepath.Dir(program), name)
	if err := os.Symlink(filepath.Base(program), link); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("name program: %w", err)
	}
	return link, nil
}

func (b *Bed) kubectl(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.ToolDir(), "kubectl"), args...)
	// kubectl keeps its caches among the bed's files.
	cmd.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+b.ControlPlane.Kubeconfig, "HOME="+b.slot.dir)
	var stderr outputBuffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, stderr)
	}
	return string(out), nil
}

// ToolDir is the directory of kubectl, for a user's PATH.
func (b *Bed) ToolDir() string { return b.bin.Reference }

// PauseProgram is a small program that waits and reaps, for images.
func (b *Bed) PauseProgram() string { return b.images.PauseBin }

// Logs is the directory with one log file per program.
func (b *Bed) Logs() string { return b.slot.logDir() }

// ourKubelet builds Swiftlet once per bed, as a program called kubelet: so it acts as a kubelet,
// and tests that look for a process of that name find it.
func (b *Bed) ourKubelet(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kubeletPath == "" {
		b.kubeletPath = filepath.Join(b.slot.dir, "kubelet")
		b.buildErr = b.bin.BuildSwiftlet(ctx, b.progress, b.kubeletPath)
	}
	return b.kubeletPath, b.buildErr
}

// authority is that of the control plane or, without one, of the bed itself.
func (b *Bed) authority() (*authority, error) {
	if b.ControlPlane != nil {
		return b.ControlPlane.ca, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	if b.ca == nil {
		b.ca, err = newAuthority(filepath.Join(b.slot.dir, "pki"))
	}
	return b.ca, err
}

// Close stops everything, nodes first, and removes all files, interfaces and cgroups.
func (b *Bed) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, node := range b.nodes {
		errs = append(errs, node.Close())
	}
	for _, machine := range b.machines {
		errs = append(errs, machine.Close())
	}
	b.nodes, b.machines = nil, nil
	if b.ControlPlane != nil {
		errs = append(errs, b.ControlPlane.Stop())
	}
	errs = append(errs, removeLink(b.slot.bridge()), b.kernel.restore(), b.slot.release())
	return errors.Join(errs...)
}
