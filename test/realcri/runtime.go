package realcri

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swiftlet/test/images"
)

//go:embed init.sh
var initScript string

//go:embed containerd.toml
var containerdConfig string

// Runtime is a containerd for one test, with the images of test/images.
type Runtime struct {
	t      testing.TB
	bundle string
	dir    string
	init   int // PID 1 of the namespaces, by its PID on the host

	containerd *exec.Cmd
	exited     chan struct{}
}

// Start starts a containerd that is stopped when the test ends.
func Start(t testing.TB) *Runtime {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs containerd")
	}
	// Not t.TempDir: the path of a socket is limited to 107 characters.
	dir, err := os.MkdirTemp("", "realcri")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{t: t, bundle: bundle(t), dir: dir}
	set, err := images.Build(t.Context(), cacheDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cleanUp)
	r.makeNamespaces(set.PauseBin)
	r.Restart()
	for _, archive := range set.Archives {
		r.Import(archive)
	}
	return r
}

// Import loads a docker archive.
func (r *Runtime) Import(archive string) {
	r.t.Helper()
	r.run("ctr", "--address", r.socket(), "--namespace", "k8s.io", "images", "import", archive)
}

// Endpoint is containerd's CRI endpoint.
func (r *Runtime) Endpoint() string { return "unix://" + r.socket() }

// LogDir is a directory for the logs of a pod.
func (r *Runtime) LogDir() string { return filepath.Join(r.dir, "logs") }

// CgroupParent is the parent cgroup of pods. It is removed with the test.
func (r *Runtime) CgroupParent() string { return "/" + filepath.Base(r.dir) }

func (r *Runtime) socket() string { return filepath.Join(r.dir, "containerd.sock") }

// Stop kills containerd. Containers keep running.
func (r *Runtime) Stop() {
	r.t.Helper()
	if r.containerd == nil {
		return
	}
	_ = r.containerd.Process.Kill() // it may have exited
	<-r.exited
	r.containerd = nil
	r.await("containerd to stop", func() bool { return !r.answers() })
}

// Restart starts containerd, for the first time or after Stop, and waits until it answers.
func (r *Runtime) Restart() {
	r.t.Helper()
	log, err := os.OpenFile(filepath.Join(r.dir, "containerd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	cmd := r.nsenter(context.Background(), filepath.Join(r.bundle, "containerd"), "--config", filepath.Join(r.dir, "config.toml"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }() // Stop waits for it
	r.containerd, r.exited = cmd, exited
	r.await("containerd to answer", r.answers)
}

func (r *Runtime) answers() bool {
	conn, err := net.Dial("unix", r.socket())
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func (r *Runtime) await(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// nsenter returns a command that runs a program in the runtime's namespaces. The started process is
// the program's parent, and the program dies with it.
func (r *Runtime) nsenter(ctx context.Context, program string, args ...string) *exec.Cmd {
	makeNamespaces := []string{"--target", strconv.Itoa(r.init), "--mount", "--net", "--pid", "--ipc", "--uts", "--", "setpriv", "--pdeathsig", "KILL", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(append(makeNamespaces, program), args...)...)
	cmd.Env = append(os.Environ(), "PATH="+r.bundle+":"+os.Getenv("PATH"))
	return cmd
}

// run runs a program of the bundle.
func (r *Runtime) run(program string, args ...string) {
	r.t.Helper()
	if out, err := r.nsenter(r.t.Context(), filepath.Join(r.bundle, program), args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// makeNamespaces creates the namespaces and writes the configuration.
func (r *Runtime) makeNamespaces(reaper string) {
	r.t.Helper()
	config := strings.NewReplacer("@DIR@", r.dir, "@CNI@", filepath.Join(r.bundle, "cni")).Replace(containerdConfig)
	for name, data := range map[string]string{"config.toml": config, "net.d/10-bridge.conflist": bridge(r.dir)} {
		file := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", initScript, "init", reaper)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := start(r.t, cmd); err != nil {
		r.t.Fatal(err)
	}
	r.init = cmd.Process.Pid
	if _, err := out.Read(make([]byte, 8)); err != nil {
		r.t.Fatalf("make namespaces: %v\n%s", err, stderr.String())
	}
}

func bridge(dir string) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,
"ipam":{"type":"host-local","dataDir":%q,"ranges":[[{"subnet":"10.77.0.0/24"}]]}}]}`, filepath.Join(dir, "ipam"))
}
