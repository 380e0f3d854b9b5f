package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
)

// builderOf returns a function that builds the program ../NAME, once for all tests, and returns its
// path. The program is removed with the bed.
func builderOf(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		program := filepath.Join(filepath.Dir(cluster.Logs()), name)
		if out, err := exec.Command("go", "build", "-o", program, "../"+name).CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
		return program, nil
	})
}
