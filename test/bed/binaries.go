package bed

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries has the paths of the programs that a bed runs.
type Binaries struct {
	Bundle    string // directory of containerd, its shim, runc, ctr and cni/
	Reference string // directory of etcd, the control plane, kubectl and the reference kubelet
	Root      string // the checkout that Swiftlet is built from
	Cache     string // directory of build results, keyed by their inputs
}

// FindBinaries builds what is not in the cache, which takes minutes the first time, and writes
// its progress to w. It must be called from within the checkout.
func FindBinaries(ctx context.Context, w io.Writer) (*Binaries, error) {
	b, err := FindBundle(ctx, w)
	if err != nil {
		return nil, err
	}
	b.Reference, err = output(ctx, w, b.Root, b.script(), "reference")
	return b, err
}

// FindBundle is FindBinaries without the control plane and the reference kubelet.
func FindBundle(ctx context.Context, w io.Writer) (*Binaries, error) {
	gomod, err := output(ctx, w, "", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	b := &Binaries{Root: filepath.Dir(gomod), Cache: cacheDir()}
	b.Bundle, err = output(ctx, w, b.Root, b.script(), "bundle")
	return b, err
}

func (b *Binaries) script() string { return filepath.Join(b.Root, "hack", "build-tools.sh") }

// BuildSwiftlet builds Swiftlet from the checkout to out. Go's build cache makes that quick. A
// separate copy is not replaced by the next build while a node runs it.
func (b *Binaries) BuildSwiftlet(ctx context.Context, w io.Writer, out string) error {
	_, err := output(ctx, w, b.Root, "go", "build", "-tags", "grpcnotrace", "-o", out, "./cmd/swiftlet")
	return err
}

// oldKubelet returns the reference kubelet of an earlier release. It builds it if it is not in the cache.
func (b *Binaries) oldKubelet(ctx context.Context, w io.Writer, version string) (string, error) {
	dir, err := output(ctx, w, b.Root, filepath.Join(b.Root, "hack", "build-old-kubelet.sh"), version)
	return filepath.Join(dir, "kubelet"), err
}

// cacheDir follows the rule of hack/build-tools.sh.
func cacheDir() string {
	if dir := os.Getenv("SWIFTLET_CACHE"); dir != "" {
		return dir
	}
	dir := os.Getenv("XDG_CACHE_HOME")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	return filepath.Join(dir, "swiftlet")
}

// output runs a program and returns its trimmed standard output.
func output(ctx context.Context, stderr io.Writer, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
