package conformance

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs is the output of hack/build-conformance.sh: e2e.test, ginkgo and the programs of images.
type Programs struct {
	Root    string // the checkout
	Dir     string
	Release string // version of the suite
}

// FindPrograms builds what is not in the cache, which takes 15 minutes the first time, and writes
// its progress to w. It must be called within the checkout.
func FindPrograms(ctx context.Context, w io.Writer) (*Programs, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find checkout: %w", err)
	}
	p := &Programs{Root: filepath.Dir(strings.TrimSpace(string(gomod)))}
	build := exec.CommandContext(ctx, filepath.Join(p.Root, "hack", "build-conformance.sh"))
	build.Stderr = w
	dir, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("build suite: %w", err)
	}
	p.Dir = strings.TrimSpace(string(dir))
	release, err := os.ReadFile(p.path("release"))
	if err != nil {
		return nil, fmt.Errorf("read release of the suite: %w", err)
	}
	p.Release = strings.TrimSpace(string(release))
	return p, nil
}

func (p *Programs) path(name string) string { return filepath.Join(p.Dir, name) }
