package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"swiftlet/test/images"
)

// Bed is a control plane with the nodes that were added to it.
type Bed struct {
	ControlPlane *ControlPlane

	site     *site
	bin      *Binaries
	images   *images.Set
	progress io.Writer
	kernel   kernelSettings

	mu     sync.Mutex
	nodes  []*Box
	wiring sync.Mutex // guards wired
	wired  []*Box     // those of the nodes that know the way to each other's pods
	hosts  int        // how many addresses of the wire were given out
	built  error      // how the build of our program went, once there is one
	ours   string
}

// Start makes a bed without nodes, in a few seconds once the programs are built. What it
// does meanwhile is told to progress.
func Start(ctx context.Context, progress io.Writer) (*Bed, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("start bed: it needs root, for namespaces and cgroups")
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
	s, err := claimSite()
	if err != nil {
		return nil, err
	}
	b := &Bed{site: s, bin: bin, images: set, progress: progress, kernel: settings, hosts: 1}
	if err := s.addBridge(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	began := time.Now()
	if b.ControlPlane, err = startControlPlane(ctx, s, bin.Reference); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	fmt.Fprintf(progress, "bed %d: control plane up in %.1f s\n", s.number, time.Since(began).Seconds())
	return b, nil
}

// AddNode makes a box with a running containerd that holds the test images. Its kubelet
// is not started.
func (b *Bed) AddNode(ctx context.Context, name string) (*Box, error) {
	b.mu.Lock()
	b.hosts++
	box := &Box{name: name, host: b.hosts, dir: filepath.Join(b.site.dir, "nodes", name), bed: b}
	b.nodes = append(b.nodes, box)
	b.mu.Unlock()

	began := time.Now()
	if err := box.start(ctx); err != nil {
		return nil, err
	}
	if err := b.wire(ctx, box); err != nil {
		return nil, err
	}
	if err := box.writeIdentity(); err != nil {
		return nil, err
	}
	if err := box.StartContainerd(ctx); err != nil {
		return nil, err
	}
	if err := box.ImportImages(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.progress, "bed %d: node %s up in %.1f s\n", b.site.number, name, time.Since(began).Seconds())
	return box, nil
}

// Kubectl runs the command against the bed and returns its standard output.
func (b *Bed) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.ToolDir(), "kubectl"), args...)
	// Its caches go where the bed's files go.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.ControlPlane.Kubeconfig, "HOME="+b.site.dir)
	var said lines
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %v: %w: %s", args, err, said)
	}
	return string(out), nil
}

// ToolDir is the directory that holds kubectl, for a person's PATH.
func (b *Bed) ToolDir() string { return b.bin.Reference }

// PauseProgram is a small program that waits and reaps, for images.
func (b *Bed) PauseProgram() string { return b.images.PauseBin }

// Logs is the directory with a file of each program.
func (b *Bed) Logs() string { return b.site.logDir() }

// ourKubelet builds our program, once for the bed. Its name makes it a kubelet, also to those
// who look for one among the processes of a node.
func (b *Bed) ourKubelet(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ours == "" {
		b.ours = filepath.Join(b.site.dir, "kubelet")
		b.built = b.bin.BuildSwiftlet(ctx, b.progress, b.ours)
	}
	return b.ours, b.built
}

// Close ends everything, nodes first, and removes every trace.
func (b *Bed) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, node := range b.nodes {
		errs = append(errs, node.Close())
	}
	b.nodes = nil
	if b.ControlPlane != nil {
		errs = append(errs, b.ControlPlane.Stop())
	}
	errs = append(errs, removeLink(b.site.bridge()), b.kernel.restore(), b.site.release())
	return errors.Join(errs...)
}
