package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// kubectl itself would try a server on port 8080 and say that it is refused.
func TestMissingKubeconfigNamesTheCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	err := readable(file)
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "swiftlet up --api") {
		t.Errorf("got %v", err)
	}
}
