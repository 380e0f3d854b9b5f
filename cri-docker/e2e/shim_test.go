package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/dockerbox"
)

// shim is a running cri-docker.
type shim struct {
	runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	name    string
	process *dockerbox.Process
	conn    *grpc.ClientConn
}

// startShim starts cri-docker and waits until it answers. All use the same directories.
func startShim(name string, flags ...string) (*shim, error) {
	s := &shim{name: name}
	if err := s.start(flags...); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	return s, nil
}

// connect waits until it answers.
func (s *shim) connect() error {
	conn, err := grpc.NewClient("unix://"+s.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	s.conn, s.RuntimeServiceClient, s.images = conn, runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		text, _ := os.ReadFile(box.Path(s.name + ".log"))
		return fmt.Errorf("cri-docker does not answer: %w\n%s", err, text)
	}
	return nil
}

func (s *shim) socket() string { return box.Path(s.name + ".sock") }

func (s *shim) start(flags ...string) (err error) {
	args := append([]string{"--listen=unix://" + s.socket(), "--docker-endpoint=" + box.Endpoint(), "--state-dir=" + box.Path(s.name),
		"--cni-conf-dir=" + box.Path("net.d"), "--cni-bin-dir=" + box.Path("cni-bin"), "--cni-cache-dir=" + box.Path("cni"), "--log-level=debug"}, flags...)
	s.process, err = box.Start(s.name+".log", program, args...)
	return err
}

// restart kills it with SIGKILL and starts it again.
func (s *shim) restart(t *testing.T) {
	t.Helper()
	s.process.Kill()
	s.startAgain(t)
}

func (s *shim) startAgain(t *testing.T) {
	t.Helper()
	_ = s.conn.Close() // its server is gone
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.connect(); err != nil {
		t.Fatal(err)
	}
}

// ownShim starts a server that a test may kill. The log is shown if the test fails.
func ownShim(t *testing.T, flags ...string) *shim {
	t.Helper()
	s, err := startShim(t.Name(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.process.Kill()
		_ = s.conn.Close() // nothing to flush
		showLog(t, s.name)
	})
	return s
}

func showLog(t *testing.T, name string) {
	if t.Failed() {
		text, _ := os.ReadFile(box.Path(name + ".log"))
		t.Logf("end of the log of %s:\n%s", name, text[max(0, len(text)-3000):])
	}
}

// patience is for a machine that runs other tests, too.
const patience = 3 * time.Minute

// eventually waits until is returns true. Nothing reports the condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
