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

// Binaries says where the programs are that a bed runs.
type Binaries struct {
	Bundle    string // directory of containerd, its shim, runc, ctr and cni/
	Reference string // directory of etcd, the control plane, kubectl and the reference kubelet
	Root      string // the checkout, where our own program is built from
	Cache     string // what is costly to make and keyed by its contents
}

// FindBinaries builds what the cache does not hold yet, which takes minutes the first time
// on a machine; progress goes to w. It must be called from within the checkout.
func FindBinaries(ctx context.Context, w io.Writer) (*Binaries, error) {
	b, err := FindBundle(ctx, w)
	if err != nil {
		return nil, err
	}
	b.Reference, err = output(ctx, w, b.Root, b.script(), "reference")
	return b, err
}

// FindBundle is FindBinaries for those who need nothing of the reference.
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

// BuildSwiftlet builds our program from the checkout as it stands. Go's build cache makes
// that quick; a copy of its own keeps a running node apart from the next build.
func (b *Binaries) BuildSwiftlet(ctx context.Context, w io.Writer, out string) error {
	_, err := output(ctx, w, b.Root, "go", "build", "-o", out, "./cmd/swiftlet")
	return err
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

// output runs a program to its end and returns its trimmed standard output.
func output(ctx context.Context, stderr io.Writer, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
