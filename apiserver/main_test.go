package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const nodeName = "lone"

// TestMain runs the program instead of the tests if a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("SWIFTLET_APISERVER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// instance is a running program.
type instance struct {
	t          *testing.T
	dir        string // of all its files
	address    string
	kubeconfig string
	flags      []string             // more than those that every test needs
	under      []string             // a command that starts the program, such as with other limits
	readStdout func(*bufio.Scanner) // nil for the log
	process    *exec.Cmd
	log        *os.File
}

// start runs the program with an empty store.
func start(t *testing.T) *instance {
	t.Helper()
	i := prepare(t)
	i.launch()
	return i
}

// prepare is start without the start.
func prepare(t *testing.T) *instance {
	t.Helper()
	dir := t.TempDir()
	i := &instance{t: t, dir: dir, address: freeAddress(t), kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	t.Cleanup(i.kill)
	return i
}

// launch starts the process and waits until it is ready.
func (i *instance) launch() {
	i.t.Helper()
	var err error
	if i.log, err = os.Create(filepath.Join(i.dir, "log")); err != nil {
		i.t.Fatal(err)
	}
	command := append(slices.Clone(i.under), os.Args[0], "--data-dir="+filepath.Join(i.dir, "data"), "--pki-dir="+filepath.Join(i.dir, "pki"),
		"--volumes-dir="+filepath.Join(i.dir, "volumes"), "--kubeconfig="+i.kubeconfig, "--node-name="+nodeName, "--address="+i.address)
	command = append(command, i.flags...)
	i.process = exec.Command(command[0], command[1:]...)
	i.process.Env = append(os.Environ(), "SWIFTLET_APISERVER=1")
	i.process.Stdout, i.process.Stderr = i.log, i.log
	if i.readStdout != nil {
		i.process.Stdout = nil
		stdout, err := i.process.StdoutPipe()
		if err != nil {
			i.t.Fatal(err)
		}
		go i.readStdout(bufio.NewScanner(stdout)) // until the process ends
	}
	if err := i.process.Start(); err != nil {
		i.t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := i.run("kubectl get --raw /readyz", "")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(i.log.Name())
			i.t.Fatalf("not ready after a minute: %v\n%s\n%s", err, out, log)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kill ends the process without notice.
func (i *instance) kill() {
	if i.process == nil {
		return
	}
	i.process.Process.Kill()
	i.process.Wait()
	i.log.Close()
}

// run executes a line of shell in which kubectl is that of Kubernetes, with the administrator's kubeconfig.
func (i *instance) run(line, stdin string) (string, error) {
	dir, err := tools()
	if err != nil {
		return "", fmt.Errorf("find kubectl: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	c.Env = append(os.Environ(), "KUBECONFIG="+i.kubeconfig, "PATH="+dir+":"+os.Getenv("PATH"),
		"HOME="+i.dir, "SERVER=https://"+i.address, "PKI="+filepath.Join(i.dir, "pki"))
	c.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	return out.String(), err
}

// must is run for a line that succeeds.
func (i *instance) must(line, stdin string) string {
	i.t.Helper()
	out, err := i.run(line, stdin)
	if err != nil {
		i.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// tools is the directory of Kubernetes' kubectl, which `make reference` builds.
var tools = sync.OnceValues(func() (string, error) {
	dir, err := exec.Command("../hack/build-tools.sh", "reference").Output()
	return strings.TrimSpace(string(dir)), err
})

// freeAddress returns a loopback address on which no one listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
