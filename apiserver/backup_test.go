package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// command runs a subcommand of the program on the files of the instance.
func (i *instance) command(args ...string) (string, error) {
	c := exec.Command(os.Args[0], append(args, "--data-dir="+filepath.Join(i.dir, "data"), "--pki-dir="+filepath.Join(i.dir, "pki"))...)
	c.Env = append(os.Environ(), "SWIFTLET_APISERVER=1")
	out, err := c.CombinedOutput()
	return string(out), err
}

// mustCommand is command for one that succeeds.
func (i *instance) mustCommand(args ...string) string {
	i.t.Helper()
	out, err := i.command(args...)
	if err != nil {
		i.t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return out
}

// What was stored at the time of a backup is there after a restore, with the credentials of that time, and
// clients that watch notice.
func TestBackupAndRestore(t *testing.T) {
	i := start(t)
	file := filepath.Join(i.dir, "node.backup")
	i.must("kubectl create configmap kept --from-literal=colour=red && kubectl create configmap deleted && until kubectl get serviceaccount default; do sleep 0.1; done", "")
	token := strings.TrimSpace(i.must("kubectl create token default", ""))
	before := i.must("kubectl get configmaps -o yaml", "")

	if out := i.mustCommand("backup", file); !strings.Contains(out, "the API server runs") || !strings.Contains(out, "wrote "+file) {
		t.Errorf("backup says:\n%s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if out, err := i.command("backup", file); err == nil || !strings.Contains(out, file+": the file exists") {
		t.Errorf("another backup to the same file: %v\n%s", err, out)
	}
	if out, err := i.command("restore", file); err == nil || !strings.Contains(out, "a process uses the store") {
		t.Errorf("restore while the API server runs: %v\n%s", err, out)
	}

	i.must("kubectl create configmap added && kubectl delete configmap deleted && kubectl patch configmap kept -p '{\"data\":{\"colour\":\"blue\"}}'", "")
	late := strings.TrimSpace(i.must("kubectl get configmap kept -o jsonpath={.metadata.resourceVersion}", ""))
	i.kill()
	second := filepath.Join(i.dir, "stopped.backup")
	if out := i.mustCommand("backup", second); !strings.Contains(out, "no API server runs") {
		t.Errorf("backup of a stopped node says:\n%s", out)
	}
	for _, name := range []string{"ca.crt", "ca.key", "sa.key"} { // as on another machine
		if err := os.Remove(filepath.Join(i.dir, "pki", name)); err != nil {
			t.Fatal(err)
		}
	}
	i.mustCommand("restore", file)
	i.launch()
	if after := i.must("kubectl get configmaps -o yaml", ""); after != before {
		t.Errorf("after the restore:\n%s\nwant:\n%s", after, before)
	}
	if out, err := i.run("kubectl --kubeconfig=/dev/null --server=$SERVER --certificate-authority=$PKI/ca.crt --token="+token+" auth whoami", ""); err != nil || !strings.Contains(out, "system:serviceaccount:default:default") {
		t.Errorf("a token of the time of the backup: %v\n%s", err, out)
	}
	if out := i.must("kubectl get --raw '/api/v1/configmaps?watch=1&timeoutSeconds=5&resourceVersion="+late+"'", ""); !strings.Contains(out, `"code":410`) {
		t.Errorf("a watch from before the restore: %s", out)
	}
	created := i.must("kubectl create configmap next -o jsonpath={.metadata.resourceVersion}", "")
	if now, err := strconv.Atoi(created); err != nil || strconv.Itoa(now) <= late && len(created) <= len(late) {
		t.Errorf("revision %s after %s", created, late)
	}

	i.kill()
	i.mustCommand("restore", second)
	i.launch()
	if out := i.must("kubectl get configmaps added kept -o jsonpath={.items[*].data.colour}", ""); out != "blue" {
		t.Errorf("after the restore of the later backup, kept has %q", out)
	}
	if left, _ := filepath.Glob(filepath.Join(i.dir, "data", "restoring-*")); left != nil {
		t.Errorf("left behind: %s", left)
	}
}

// A file that cannot be restored is named, with the reason, and the store stays as it is.
func TestRestoreOfDamagedFiles(t *testing.T) {
	i := start(t)
	good := filepath.Join(i.dir, "good")
	i.mustCommand("backup", good)
	i.must("kubectl create configmap present", "")
	i.kill()
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	for _, row := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "it is not a backup of swiftlet"},
		{"text", []byte("apiVersion: v1\n"), "it is not a backup of swiftlet"},
		{"another_archive", archiveOf(t, map[string]string{"a": "b"}), "it is not a backup of swiftlet"},
		{"truncated", content[:len(content)/2], "it is truncated"},
		{"without_its_last_byte", content[:len(content)-1], "it is truncated"},
		{"damaged", flipped, "it is damaged"},
		{"of_a_later_format", changeManifest(t, content, func(m map[string]any) { m["format"] = 2 }), "it has format 2, and this program reads format 1"},
		{"of_a_later_Kubernetes", changeManifest(t, content, func(m map[string]any) { m["kubernetes"] = "v1.99.0" }), "it is of Kubernetes v1.99.0"},
		{"with_another_sum", changeManifest(t, content, func(m map[string]any) { m["entries"].([]any)[0].(map[string]any)["sha256"] = "00" }), "it is damaged: ca.crt does not have the SHA-256"},
		{"without_a_key", changeManifest(t, content, func(m map[string]any) { m["entries"] = []any{} }), "it is damaged"},
	} {
		t.Run(row.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, row.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := i.command("restore", file); err == nil || !strings.Contains(out, "restore "+file+": "+row.want) {
				t.Errorf("got %v\n%s\nwant %q", err, out, row.want)
			}
		})
	}
	if out, err := i.command("restore", filepath.Join(i.dir, "none")); err == nil || !strings.Contains(out, "no such file") {
		t.Errorf("a missing file: %v\n%s", err, out)
	}
	i.launch()
	i.must("kubectl get configmap present", "")
}

// archiveOf returns a compressed tar archive.
func archiveOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// changeManifest returns the backup with another manifest.
func changeManifest(t *testing.T, backup []byte, change func(map[string]any)) []byte {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	var out bytes.Buffer
	again := gzip.NewWriter(&out)
	written := tar.NewWriter(again)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(header.Name, ".json") {
			var m map[string]any
			if err := json.Unmarshal(content, &m); err != nil {
				t.Fatal(err)
			}
			change(m)
			if content, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			header.Size = int64(len(content))
		}
		if err := written.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := written.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(written.Close(), again.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
