package dockerbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/moby/moby/client"
)

// Endpoint is the address of the box's Docker.
func (b *Box) Endpoint() string { return "unix://" + b.Path("docker.sock") }

// Docker returns a client of the box's Docker.
func (b *Box) Docker() (*client.Client, error) { return client.New(client.WithHost(b.Endpoint())) }

// startLimit bounds Docker's start on a loaded machine.
const startLimit = 2 * time.Minute

// StartDocker starts the engine and waits until it answers. After KillDocker it finds its containers again.
func (b *Box) StartDocker(ctx context.Context) error {
	var err error
	// Docker's own networks are not used: CNI connects pods.
	b.docker, err = b.Start("dockerd.log", "dockerd", "--oom-score-adjust=0", "--live-restore", "--bridge=none", "--iptables=false", "--ip6tables=false",
		"--data-root="+b.Path("docker"), "--exec-root=/run/docker", "--pidfile=/run/docker.pid", "--host="+b.Endpoint(),
		"--insecure-registry=registry.k8s.io", "--insecure-registry=k8s.gcr.io", "--insecure-registry=gcr.io")
	if err != nil {
		return err
	}
	docker, err := b.Docker()
	if err != nil {
		return err
	}
	defer docker.Close()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if _, err = docker.Ping(ctx, client.PingOptions{}); err == nil {
			return nil
		}
		select {
		case <-b.docker.Done:
			text, _ := os.ReadFile(b.Path("dockerd.log"))
			return fmt.Errorf("dockerd exited: %s", text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return fmt.Errorf("wait for dockerd: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// KillDocker kills the engine. Containers and their shims keep running. It returns when another engine may be
// started, which refuses to while the process ID in the file exists.
func (b *Box) KillDocker(ctx context.Context) error {
	b.docker.Kill()
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	script := `while kill -0 "$(cat /run/docker.pid)" 2>/dev/null; do sleep 0.05; done; rm -f /run/docker.pid`
	if out, err := b.Command(ctx, "sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("wait for the end of Docker: %w: %s", err, out[max(0, len(out)-3000):])
	}
	return nil
}

// Load loads a Docker archive.
func (b *Box) Load(ctx context.Context, archive io.Reader) error {
	docker, err := b.Docker()
	if err != nil {
		return err
	}
	defer docker.Close()
	result, err := docker.ImageLoad(ctx, io.NopCloser(archive)) // the client closes what it sends
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	defer result.Close()
	if _, err := io.Copy(io.Discard, result); err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	return nil
}
