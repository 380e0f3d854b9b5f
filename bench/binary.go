package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"swiftlet/test/bed"
)

// binarySize records the size of the program that a node runs. Both are stripped.
func binarySize(_ context.Context, t *trial) error {
	program := filepath.Join(t.cluster.bed.ToolDir(), "kubelet")
	if t.kubelet().kind == bed.Ours {
		program = t.cluster.program
	}
	info, err := os.Stat(program)
	if err != nil {
		return fmt.Errorf("read size of binary: %w", err)
	}
	t.record("binary", float64(info.Size())/1e6)
	return nil
}
