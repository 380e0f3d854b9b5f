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

// Programs is the directory that hack/build-conformance.sh fills: e2e.test, ginkgo and what
// goes into the images.
type Programs struct {
	Root    string // the checkout
	Dir     string
	Release string // of the suite
}

// FindPrograms builds what the cache does not hold yet, which takes a quarter of an hour
// the first time on a machine; progress goes to w. It must be called within the checkout.
func FindPrograms(ctx context.Context, w io.Writer) (*Programs, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w", err)
	}
	p := &Programs{Root: filepath.Dir(strings.TrimSpace(string(gomod)))}
	build := exec.CommandContext(ctx, filepath.Join(p.Root, "hack", "build-conformance.sh"))
	build.Stderr = w
	dir, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("build the suite: %w", err)
	}
	p.Dir = strings.TrimSpace(string(dir))
	release, err := os.ReadFile(p.path("release"))
	if err != nil {
		return nil, fmt.Errorf("read the suite's release: %w", err)
	}
	p.Release = strings.TrimSpace(string(release))
	return p, nil
}

func (p *Programs) path(name string) string { return filepath.Join(p.Dir, name) }
