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

// csiDriver is test/csidriver, a CSI driver in its own process on a node.
type csiDriver struct {
	t    *testing.T
	node *bed.Box
	name string
	args []string
	kill context.CancelFunc // sends SIGKILL
	done chan struct{}
}

var buildDriver = builderOf("csidriver")

// startDriver runs a driver on the node until the test ends.
func startDriver(t *testing.T, node *bed.Box, name string, args ...string) *csiDriver {
	t.Helper()
	program, err := buildDriver()
	if err != nil {
		t.Fatal("build driver:", err)
	}
	home := "/var/lib/kubelet/plugins/" + name
	d := &csiDriver{t: t, node: node, name: name, args: append([]string{program,
		"-name", name, "-node", "id-of-" + node.Name(), "-endpoint", home + "/csi.sock", "-state", home + "/state",
		"-register", "/var/lib/kubelet/plugins_registry/" + name + "-reg.sock"}, args...)}
	d.start()
	t.Cleanup(func() { d.kill(); <-d.done; d.saveCalls() })
	return d
}

// start starts the driver, also after kill.
func (d *csiDriver) start() {
	d.t.Helper()
	if err := d.launch(); err != nil {
		d.t.Fatal(err)
	}
}

// launch is start for goroutines that must not call t.Fatal.
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

// state is the host path of a file of the driver.
func (d *csiDriver) state(name string) string {
	return d.node.Path(filepath.Join("/var/lib/kubelet/plugins", d.name, "state", name))
}

// hold makes the driver block at the point until the returned function is called.
func (d *csiDriver) hold(point string) (release func()) {
	d.t.Helper()
	if err := os.WriteFile(d.state("hold-"+point), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return func() { os.Remove(d.state("hold-" + point)) }
}

// awaitBlocked waits until the driver blocks at the point.
func (d *csiDriver) awaitBlocked(point string) {
	d.t.Helper()
	eventually(d.t, timeout, func() string {
		if _, err := os.Stat(d.state("in-" + point)); err != nil {
			return "the driver is not blocked at " + point
		}
		return ""
	})
}

// makeVolume creates a volume with the driver and returns its handle.
func (d *csiDriver) makeVolume(name string, size int64) string {
	d.t.Helper()
	socket := d.node.Inside("/var/lib/kubelet/plugins/" + d.name + "/csi.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), timeout)
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

// csiRequest has the fields of requests to the driver that tests read.
type csiRequest struct {
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

// calls returns the successful requests of one method, in order.
func (d *csiDriver) calls(method string) []csiRequest {
	d.t.Helper()
	f, err := os.Open(d.state("calls.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	var all []csiRequest
	for lines := json.NewDecoder(f); ; {
		var line struct {
			Method, Error string
			Request       csiRequest
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

// saveCalls copies the driver's calls to the logs if the test has failed.
func (d *csiDriver) saveCalls() {
	if !d.t.Failed() {
		return
	}
	calls, err := os.ReadFile(d.state("calls.jsonl"))
	if err == nil {
		err = os.WriteFile(d.node.Log("csidriver-calls"), calls, 0o644)
	}
	if err != nil {
		d.t.Log("save driver calls:", err)
	}
}

// leftovers lists the mounts, files and loop devices of CSI volumes on the node.
func (d *csiDriver) leftovers() string {
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
	for file := range strings.Lines(loops) {
		// The images of this node exist. A deleted one is of an earlier bed.
		if strings.Contains(file, "/"+d.name+"/") && !strings.Contains(file, "(deleted)") {
			left = append(left, "loop device of "+strings.TrimSpace(file))
		}
	}
	return strings.Join(left, "\n")
}

// stagedOrPublished lists the volumes that are staged or published according to the driver's state.
func (d *csiDriver) stagedOrPublished() string {
	d.t.Helper()
	books, err := filepath.Glob(d.state("volumes/*/volume.json"))
	if err != nil {
		return err.Error()
	}
	var held []string
	for _, book := range books {
		text, err := os.ReadFile(book)
		if errors.Is(err, fs.ErrNotExist) {
			continue // just deleted
		}
		var v struct {
			ID, Name, Staged string
			Targets          []string
		}
		if err := errors.Join(err, json.Unmarshal(text, &v)); err != nil {
			return err.Error()
		}
		if v.Staged != "" || len(v.Targets) > 0 || v.Name == "" { // without a name: an ephemeral volume
			held = append(held, string(text))
		}
	}
	return strings.Join(held, "\n")
}
