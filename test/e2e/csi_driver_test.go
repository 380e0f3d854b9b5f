package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"swiftlet/test/bed"
)

// csiDriver is test/csidriver, a real driver in a process of its own on a node.
type csiDriver struct {
	t    *testing.T
	node *bed.Box
	name string
	args []string
	kill context.CancelFunc // ends it without warning
	done chan struct{}
}

var buildDriver = builderOf("csidriver")

// startDriver runs a driver on the node until the test ends.
func startDriver(t *testing.T, node *bed.Box, name string, args ...string) *csiDriver {
	t.Helper()
	program, err := buildDriver()
	if err != nil {
		t.Fatal("build the driver:", err)
	}
	home := "/var/lib/kubelet/plugins/" + name
	d := &csiDriver{t: t, node: node, name: name, args: append([]string{program,
		"-name", name, "-node", "id-of-" + node.Name(), "-endpoint", home + "/csi.sock", "-state", home + "/state",
		"-register", "/var/lib/kubelet/plugins_registry/" + name + "-reg.sock"}, args...)}
	d.start()
	t.Cleanup(func() { d.kill(); <-d.done; d.keepCalls() })
	return d
}

// start runs the program; one that was killed is started again the same way.
func (d *csiDriver) start() {
	d.t.Helper()
	if err := d.launch(); err != nil {
		d.t.Fatal(err)
	}
}

// launch is start for those who may not end the test.
func (d *csiDriver) launch() error {
	log, err := os.OpenFile(d.node.Log("csidriver"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := d.node.Command(ctx, d.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		return err
	}
	d.kill, d.done = cancel, make(chan struct{})
	go func() { defer close(d.done); _ = cmd.Wait() }()
	return nil
}

// state is a file of the driver as this machine sees it.
func (d *csiDriver) state(name string) string {
	return d.node.Path(filepath.Join("/var/lib/kubelet/plugins", d.name, "state", name))
}

// hold has the driver hang at the point until the function it returns is called.
func (d *csiDriver) hold(point string) (release func()) {
	d.t.Helper()
	if err := os.WriteFile(d.state("hold-"+point), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return func() { os.Remove(d.state("hold-" + point)) }
}

// awaitHeld returns when the driver hangs at the point.
func (d *csiDriver) awaitHeld(point string) {
	d.t.Helper()
	eventually(d.t, usual, func() string {
		if _, err := os.Stat(d.state("in-" + point)); err != nil {
			return "the driver is not asked " + point
		}
		return ""
	})
}

// makeVolume has the driver make a volume and returns its handle.
func (d *csiDriver) makeVolume(name string, size int64) string {
	d.t.Helper()
	socket := d.node.Inside("/var/lib/kubelet/plugins/" + d.name + "/csi.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), usual)
	defer cancel()
	made, err := csi.NewControllerClient(conn).CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Mount{}}},
	}, grpc.WaitForReady(true))
	if err != nil {
		d.t.Fatal(err)
	}
	return made.GetVolume().GetVolumeId()
}

// asked is what matters here of a request to the driver.
type asked struct {
	VolumeID          string `json:"volumeId"`
	VolumePath        string
	StagingTargetPath string
	TargetPath        string
	VolumeContext     map[string]string
	PublishContext    map[string]string
	Secrets           map[string]string
	CapacityRange     struct{ RequiredBytes string }
	VolumeCapability  struct {
		Mount      struct{ VolumeMountGroup string }
		AccessMode struct{ Mode string }
	}
}

// calls returns the requests of one method that were answered without error, in order.
func (d *csiDriver) calls(method string) []asked {
	d.t.Helper()
	f, err := os.Open(d.state("calls.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	var all []asked
	for lines := json.NewDecoder(f); ; {
		var line struct {
			Method, Error string
			Request       asked
		}
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			d.t.Fatal(err)
		case line.Method == method && line.Error == "":
			all = append(all, line.Request)
		}
	}
}

// keepCalls puts what the driver was asked beside the logs that a failed test shows.
func (d *csiDriver) keepCalls() {
	if !d.t.Failed() {
		return
	}
	calls, err := os.ReadFile(d.state("calls.jsonl"))
	if err == nil {
		err = os.WriteFile(d.node.Log("csidriver-calls"), calls, 0o644)
	}
	if err != nil {
		d.t.Log("keep the driver's calls:", err)
	}
}

// traces lists what is left of the driver's volumes on the node.
func (d *csiDriver) traces() string {
	d.t.Helper()
	var left []string
	mounts, err := d.node.Exec(d.t.Context(), "cat", "/proc/self/mounts")
	if err != nil {
		return err.Error()
	}
	for _, line := range strings.Split(mounts, "\n") {
		if strings.Contains(line, "kubernetes.io/csi") || strings.Contains(line, "kubernetes.io~csi") {
			left = append(left, "mount "+line)
		}
	}
	for _, pattern := range []string{"plugins/kubernetes.io/csi/*/*/*", "pods/*/volumes/kubernetes.io~csi/*", "pods/*/volumeDevices/*/*"} {
		found, err := filepath.Glob(d.node.Path("/var/lib/kubelet/" + pattern))
		if err != nil {
			return err.Error()
		}
		left = append(left, found...)
	}
	loops, err := d.node.Exec(d.t.Context(), "losetup", "-n", "-O", "BACK-FILE", "-l")
	if err != nil {
		return err.Error()
	}
	for _, file := range strings.Fields(loops) {
		if strings.Contains(file, "/"+d.name+"/") {
			left = append(left, "loop device of "+file)
		}
	}
	return strings.Join(left, "\n")
}

// holds lists what the driver itself has staged or published, by its own books.
func (d *csiDriver) holds() string {
	d.t.Helper()
	books, err := filepath.Glob(d.state("volumes/*/volume.json"))
	if err != nil {
		return err.Error()
	}
	var held []string
	for _, book := range books {
		text, err := os.ReadFile(book)
		if errors.Is(err, fs.ErrNotExist) {
			continue // of a pod that is just going
		}
		var v struct {
			ID, Name, Staged string
			Targets          []string
		}
		if err := errors.Join(err, json.Unmarshal(text, &v)); err != nil {
			return err.Error()
		}
		if v.Staged != "" || len(v.Targets) > 0 || v.Name == "" { // without a name it is a pod's own
			held = append(held, string(text))
		}
	}
	return strings.Join(held, "\n")
}
