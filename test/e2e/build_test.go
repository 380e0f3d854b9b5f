package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
)

// builderOf builds a program of ../NAME, once for all tests, and tells where it is. It goes
// with the bed.
func builderOf(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		program := filepath.Join(filepath.Dir(cluster.Logs()), name)
		if out, err := exec.Command("go", "build", "-o", program, "../"+name).CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
		return program, nil
	})
}
