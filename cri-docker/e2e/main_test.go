// Package e2e runs cri-docker with a real Docker Engine.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"swiftlet/cri-docker/internal/dockerbox"
)

var (
	box     *dockerbox.Box
	program string // cri-docker
	shared  *shim  // used by all tests that do not restart it
)

func TestMain(m *testing.M) {
	dockerbox.Main()
	flag.Parse()
	if testing.Short() || os.Geteuid() != 0 {
		fmt.Println("e2e: skipped: runs Docker as root, and not in short mode")
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	if box, err = dockerbox.Start(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if err := prepare(ctx, root); err != nil {
		return 1, err
	}
	if shared, err = startShim("shared"); err != nil {
		return 1, err
	}
	return m.Run(), races()
}

// races returns an error if a server that was built with the race detector found one.
func races() error {
	logs, err := filepath.Glob(box.Path("*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if at := bytes.Index(text, []byte("DATA RACE")); at >= 0 {
			return fmt.Errorf("%s: %s", log, text[at:min(len(text), at+3000)])
		}
	}
	return nil
}

// prepare builds the program and loads images.
func prepare(ctx context.Context, root string) error {
	program = box.Path("cri-docker")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if os.Getenv("SWIFTLET_RACE") != "" {
		build = exec.CommandContext(ctx, "go", "build", "-race", "-o", program, "..")
	}
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build cri-docker: %w", err)
	}
	for _, name := range []string{"pause.tar", "example.tar"} {
		archive, err := os.Open(filepath.Join(root, "bin/images", name))
		if err != nil {
			return fmt.Errorf("load images (run make images): %w", err)
		}
		err = errors.Join(box.Load(ctx, archive), archive.Close())
		if err != nil {
			return err
		}
	}
	if err := box.LoadBusybox(ctx, "", dockerbox.Busybox); err != nil {
		return err
	}
	return writeNetwork(ctx, root)
}

// writeNetwork configures a bridge, and links the bundled CNI plugins.
func writeNetwork(ctx context.Context, root string) error {
	bundle := exec.CommandContext(ctx, filepath.Join(root, "hack/build-tools.sh"), "bundle")
	bundle.Stderr = os.Stderr
	dir, err := bundle.Output()
	if err != nil {
		return fmt.Errorf("find CNI plugins: %w", err)
	}
	if err := os.Symlink(filepath.Join(string(dir[:len(dir)-1]), "cni"), box.Path("cni-bin")); err != nil {
		return err
	}
	if err := os.MkdirAll(box.Path("net.d"), 0o755); err != nil {
		return err
	}
	config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pod-net","plugins":[
{"type":"bridge","bridge":"cni0","isGateway":true,"ipam":{"type":"host-local","dataDir":%q,"ranges":[[{"subnet":"10.77.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
{"type":"portmap","capabilities":{"portMappings":true}}]}`, box.Path("ipam"))
	return os.WriteFile(box.Path("net.d/10-bridge.conflist"), []byte(config), 0o600)
}
