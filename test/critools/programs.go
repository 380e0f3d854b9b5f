package critools

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs is the output directory of hack/build-critools.sh.
type Programs string

// FindPrograms builds what is not in the cache, and writes its progress to w. root is the checkout.
func FindPrograms(ctx context.Context, root string, w io.Writer) (Programs, error) {
	build := exec.CommandContext(ctx, filepath.Join(root, "hack", "build-critools.sh"))
	build.Stderr = w
	dir, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build cri-tools: %w", err)
	}
	return Programs(strings.TrimSpace(string(dir))), nil
}

func (p Programs) path(name string) string { return filepath.Join(string(p), name) }
