package uml

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/cpu"
)

//go:embed xstate/xstate.c
var xstateSource []byte

// environment is the kernel's environment. On processors with AMX it preloads xstate.c.
func environment(ctx context.Context, job string) ([]string, error) {
	if !cpu.X86.HasAMXTile {
		return os.Environ(), nil
	}
	source, library := filepath.Join(job, "xstate.c"), filepath.Join(job, "xstate.so")
	if err := os.WriteFile(source, xstateSource, 0o600); err != nil {
		return nil, fmt.Errorf("write xstate.c: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build xstate.c: %w\n%s", err, out)
	}
	return append(os.Environ(), "LD_PRELOAD="+library), nil
}
