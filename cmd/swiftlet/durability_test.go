package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swiftlet/test/crashfs"
	"swiftlet/test/pdeathsig"
)

// kills is how often a test kills each process.
func kills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("SWIFTLET_KILLS"))
	if err != nil {
		return 1
	}
	return n
}

// TestUpKills runs testdata/up_kills.sh, as TestUp does. SWIFTLET_KILLS is the number of kills of each process.
func TestUpKills(t *testing.T) {
	t.Parallel()
	swiftlet := built(t, "swiftlet", "make build")
	built(t, "api/swiftlet-apiserver", "make api")
	runInBox(t, "testdata/up_kills.sh", swiftlet, t.TempDir(), strconv.Itoa(kills(t)))
}

// TestPowerLoss cuts the power while clients write. What the API server has acknowledged is there when it starts
// on what the disk has then. SWIFTLET_KILLS is the number of cuts.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	server := built(t, "api/swiftlet-apiserver", "make api")
	for n := range kills(t) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			disk := crashfs.Mount(t)
			i := &apiInstance{t: t, server: server, dir: t.TempDir()}
			process := i.start(disk.Dir)
			authority, err := os.ReadFile(filepath.Join(disk.Dir, "pki", "ca.crt"))
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var acknowledged []string
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for w := range 3 {
				writers.Go(func() {
					for k := 0; ; k++ {
						select {
						case <-stop:
							return
						default:
						}
						name := fmt.Sprintf("write-%d-%d", w, k)
						if _, err := i.kubectl("create", "configmap", name); err == nil {
							mu.Lock()
							acknowledged = append(acknowledged, "configmap/"+name)
							mu.Unlock()
						}
					}
				})
			}
			time.Sleep(time.Duration(1500+137*n%1000) * time.Millisecond) // the cut is to come at any moment
			disk.CutAt(0)
			process()
			close(stop)
			writers.Wait()
			if len(acknowledged) == 0 {
				t.Fatal("no write was acknowledged")
			}
			losses := crashfs.Losses[:1]
			if kills(t) > 1 {
				losses = crashfs.Losses
			}
			for _, loss := range losses {
				after := t.TempDir()
				if err := disk.Build(after, loss); err != nil {
					t.Fatal(err)
				}
				process := i.start(after)
				if now, err := os.ReadFile(filepath.Join(after, "pki", "ca.crt")); err != nil || string(now) != string(authority) {
					t.Errorf("%s: there is another certificate authority: %v", loss, err)
				}
				stored, err := i.kubectl("get", "configmaps", "-o", "name")
				if err != nil {
					t.Fatalf("%s: %v\n%s", loss, err, stored)
				}
				for _, name := range acknowledged {
					if !slices.Contains(strings.Fields(stored), name) {
						t.Errorf("%s: %s is lost, of %d acknowledged", loss, name, len(acknowledged))
					}
				}
				process()
			}
			t.Logf("%d acknowledged writes", len(acknowledged))
		})
	}
}

// apiInstance runs the API server without swiftlet.
type apiInstance struct {
	t           *testing.T
	server, dir string
}

// start returns when the API server is ready on the store and the keys in dir. The function that it returns kills it.
func (i *apiInstance) start(dir string) (kill func()) {
	i.t.Helper()
	log, err := os.Create(filepath.Join(i.dir, "log"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(i.server, "--data-dir="+filepath.Join(dir, "data"), "--pki-dir="+filepath.Join(dir, "pki"),
		"--kubeconfig="+filepath.Join(i.dir, "kubeconfig"), "--node-name=lone", "--address=127.0.0.1:"+freePort(i.t))
	command.Stdout, command.Stderr = log, log
	exited, err := pdeathsig.Start(command)
	if err != nil {
		i.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		<-exited
	})
	i.t.Cleanup(kill)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, err := i.kubectl("get", "--raw", "/readyz")
		if err == nil {
			return kill
		}
		if time.Now().After(deadline) {
			written, _ := os.ReadFile(log.Name())
			i.t.Fatalf("not ready after a minute: %v\n%s\n%s", err, out, written)
		}
	}
}

func (i *apiInstance) kubectl(args ...string) (string, error) {
	command := exec.CommandContext(i.t.Context(), filepath.Join(filepath.Dir(i.server), "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(i.dir, "kubeconfig"), "HOME="+i.dir)
	out, err := command.CombinedOutput()
	return string(out), err
}

// freePort returns a port of loopback on which no one listens.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
