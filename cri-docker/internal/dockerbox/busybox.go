package dockerbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Busybox is the name of the image that LoadBusybox makes.
const Busybox = "docker.io/library/busybox:1.36"

// LoadBusybox makes an image of the machine's busybox, which is linked statically, and loads it under names.
func (b *Box) LoadBusybox(ctx context.Context, user string, names ...string) error {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox (run hack/install-deps.sh): %w", err)
	}
	layer, err := busyboxLayer(ctx, program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"sh"}, "User": user},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, data := range map[string][]byte{"config.json": config, "manifest.json": manifest, "layer.tar": layer} {
		if err := addFile(w, name, data, 0o644); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	return b.Load(ctx, &archive)
}

func busyboxLayer(ctx context.Context, program string) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	applets, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list applets of busybox: %w", err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	files := []struct{ name, text string }{
		{"etc/passwd", "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/:/bin/sh\n"},
		{"etc/group", "root:x:0:\napp:x:1000:\nextra:x:50000:app\n"},
	}
	for _, f := range files {
		if err := addFile(w, f.name, []byte(f.text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := addFile(w, "bin/busybox", data, 0o755); err != nil {
		return nil, err
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet == "busybox" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
	}
	for _, dir := range []string{"tmp/", "proc/", "root/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	return layer.Bytes(), nil
}

func addFile(w *tar.Writer, name string, data []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	return nil
}
