package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inBox is set in the test's own process in a box.
const inBox = "SWIFTLET_IN_BOX"

// TestUp does on the page of "swiftlet up" what a new user does: log in, see a pod come up and another fail, follow a
// log, type in a terminal. It runs in namespaces of its own.
func TestUp(t *testing.T) {
	if os.Getenv(inBox) == "" {
		runInBox(t)
		return
	}
	up := startUp(t)
	p := startChromium(t)
	p.allow("ERR_NETWORK_CHANGED") // The pod network is set up. The page connects again.
	p.do("open the link", chromedp.Navigate(up.link()))
	p.see("main", "No pods run on this node.")

	up.manifest("web", web)
	p.click(".scroll .row a", "web-box")
	p.see(".waterfall tbody.running, .waterfall tbody.done", "sandbox")
	p.see(".waterfall tbody.done", "start server")
	p.see(".sentence-card [role=status]", "pod: is ready")
	p.see(".title .status", "Running")
	p.see(".facts", "1/1")
	p.until("bars are in their order", `(() => { const left = (name) => [...document.querySelectorAll(".waterfall tbody")].find((b) => b.textContent.includes(name)).querySelector(".bar").getBoundingClientRect().left;
		return left("sandbox") < left("start wait") && left("start wait") < left("start server"); })()`)

	p.click("[role=tab]", "Logs")
	p.see(".log-line .ansi-fg-2", "line 3")
	p.until("the log is followed", `document.querySelectorAll(".log-line").length > 8`)

	p.click("[role=tab]", "Terminal")
	p.click("button", "Start")
	p.see(".pane-foot", "Connected")
	p.see(".xterm-rows", "/ $")
	p.key("echo $((6 * 7)) is typed", kb.Enter)
	p.see(".xterm-rows", "42 is typed")
	p.key("exit 3", kb.Enter)
	p.see(".pane-foot", "The program has ended with code 3")

	p.click("[role=tab]", "YAML")
	p.see("#yaml", "nodeName: box")

	up.manifest("absent", absent)
	p.click("nav a", "Pods")
	p.see(".cell.sentence", "image docker.io/none/none:1 is not on the node")
	p.click(".scroll .row a", "absent-box")
	p.see(".sentence-card [role=status]", "container main: image docker.io/none/none:1 is not on the node, and imagePullPolicy is Never")
	p.see(".sentence-card code", "spec.containers[0].imagePullPolicy")

	p.click("nav a", "Node")
	p.see("h1", "box")
	p.see(".conditions", "MemoryPressure")
	p.until("the use is plotted", `/[1-9]/.test(document.querySelector(".plot-value strong").textContent)`)

	up.remove("absent")
	p.click("nav a", "Pods")
	p.until("the pod is gone", `document.querySelectorAll(".scroll .row").length == 1`)
}

// The program of the image has no shell: busybox of this machine is mounted.
const (
	web = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  initContainers:
  - {name: wait, image: "docker.io/swiftlet/example:1", command: [/bin/sleep, "1"], volumeMounts: [{name: busybox, mountPath: /bin/sleep}]}
  containers:
  - name: server
    image: docker.io/swiftlet/example:1
    command: [/bin/sh, -c, 'i=0; while :; do i=$((i+1)); printf "\033[32mline %d\033[0m\n" $i; /bin/sleep 0.3; done']
    volumeMounts: [{name: busybox, mountPath: /bin/sh}, {name: busybox, mountPath: /bin/sleep}]
  volumes:
  - {name: busybox, hostPath: {path: /bin/busybox, type: File}}
`
	absent = `apiVersion: v1
kind: Pod
metadata: {name: absent}
spec:
  containers: [{name: main, image: "docker.io/none/none:1", imagePullPolicy: Never}]
`
)

func runInBox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("swiftlet-page-%d", os.Getpid())
	t.Cleanup(func() { removeCgroups(name) })
	box := exec.CommandContext(t.Context(), root+"/internal/standalone/testdata/box.sh", name, self, "-test.run=^TestUp$", "-test.v")
	box.Env = append(os.Environ(), inBox+"=1")
	out, err := box.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// removeCgroups removes the cgroup of the box from every hierarchy, children first.
func removeCgroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		tops, _ := filepath.Glob(pattern)
		for _, top := range tops {
			// Only empty cgroups can be removed, and files in them need not be.
			_ = exec.Command("find", top, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		}
	}
}

// up is a running "swiftlet up".
type up struct {
	t        *testing.T
	swiftlet string
	dir      string
}

func startUp(t *testing.T) *up {
	t.Helper()
	swiftlet, err := filepath.Abs(root + "/bin/swiftlet")
	if err != nil {
		t.Fatal(err)
	}
	u := &up{t, swiftlet, t.TempDir()}
	if err := os.Mkdir(u.dir+"/manifests", 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(u.dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(swiftlet, "up", "--root", u.dir+"/root", "--manifests", u.dir+"/manifests", "--node-name", "box")
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatalf("start swiftlet up, which make build has built: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGINT)
		if err := command.Wait(); err != nil {
			t.Errorf("swiftlet up: %v", err)
		}
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("swiftlet up:\n%s", text)
		}
	})
	return u
}

// link asks for a link to the page until the node has started.
func (u *up) link() string {
	u.t.Helper()
	var out []byte
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		out, err = exec.CommandContext(u.t.Context(), u.swiftlet, "ui", "--root", u.dir+"/root").CombinedOutput()
		if link := strings.TrimSpace(string(out)); err == nil && strings.HasPrefix(link, "https://") {
			return strings.Fields(link)[0]
		}
	}
	u.t.Fatalf("swiftlet ui: %v\n%s", err, out)
	return ""
}

// manifest writes a manifest at once, as the directory is watched.
func (u *up) manifest(name, text string) {
	u.t.Helper()
	path := filepath.Join(u.dir, "manifests", name+".yaml")
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		u.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		u.t.Fatal(err)
	}
}

func (u *up) remove(name string) {
	u.t.Helper()
	if err := os.Remove(filepath.Join(u.dir, "manifests", name+".yaml")); err != nil {
		u.t.Fatal(err)
	}
}
