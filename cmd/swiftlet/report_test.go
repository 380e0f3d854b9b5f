package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reported returns the files of an archive, and its mode.
func reported(t *testing.T, path string) (files map[string]string, mode os.FileMode) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files, info.Mode()
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}

// TestReportCommand reports on a kubelet of this machine, on one of another machine through the API server, and on
// one that is down.
func TestReportCommand(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{NodeInfo: v1.NodeSystemInfo{BootID: "other"}}}
	server, ca := serve(t, func(path string) string {
		return map[string]string{
			"/healthz": "ok", "/api/v1/nodes/n1": encode(t, node), "/api/v1/nodes/n1/proxy/healthz": "ok by proxy",
		}[path]
	})
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL, ca))
	down := server.Listener.Addr().Network() // no server has this name
	for name, c := range map[string]struct {
		args string
		want map[string]string
	}{
		"here":      {"--server=" + server.URL + " --certificate-authority=" + ca, map[string]string{"healthz.txt": "ok", "host/kernel.txt": "Linux version", "index.txt": "pods.json"}},
		"elsewhere": {"n1 --cluster", map[string]string{"healthz.txt": "ok by proxy", "node.json": "n1", "index.txt": "node n1 is not this machine"}},
		"down":      {"--server=https://127.0.0.1:1", map[string]string{"host/kernel.txt": "Linux version", "index.txt": "connection refused"}},
		"no host":   {"--server=https://" + down + ".invalid", map[string]string{"index.txt": "is not this machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "report.tar.gz")
			if err := os.WriteFile(out, nil, 0o644); err != nil { // with a mode that lets others read
				t.Fatal(err)
			}
			code, printed, progress := runWhy(t, append(strings.Fields("swiftlet report "+c.args), "-o", out)...)
			if code != 0 || printed != out+"\n" || !strings.Contains(progress, "report: done") {
				t.Fatalf("exit code %d: %s%s", code, printed, progress)
			}
			files, mode := reported(t, out)
			if mode != 0o600 {
				t.Errorf("mode %o", mode)
			}
			for file, want := range c.want {
				if !strings.Contains(files[file], want) {
					t.Errorf("%s has no %q:\n%.1000s", file, want, files[file])
				}
			}
		})
	}
	if code, _, errOut := runWhy(t, "swiftlet", "report", "--cluster"); code != 1 || !strings.Contains(errOut, "name the node") {
		t.Errorf("without a node: %d, %s", code, errOut)
	}
	if left, _ := filepath.Glob(".swiftlet-report-*"); left != nil {
		t.Errorf("left: %q", left)
	}
}
