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

// With --kubeconfig the node's own need not exist: another --root has it elsewhere.
func TestNamesKubeconfig(t *testing.T) {
	for arguments, want := range map[string]bool{
		"get pods --kubeconfig /root/x":      true,
		"--kubeconfig=/root/x get pods":      true,
		"get pods":                           false,
		"exec web -- tool --kubeconfig /etc": false,
		"get pods --kubeconfigs":             false,
	} {
		if got := namesKubeconfig(strings.Fields(arguments)); got != want {
			t.Errorf("%s: %v, want %v", arguments, got, want)
		}
	}
}
