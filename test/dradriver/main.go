// Dradriver is a DRA driver for tests. It runs as its own process and uses upstream's library for
// DRA drivers. It publishes the devices a and b of its node. A container that uses one has its name
// in $SAMPLE_CLAIM_DEVICE. In the state directory, the file prepared has a line "CLAIM DEVICE" for
// each prepared device, and the file calls has the calls. While the file hang exists there, Prepare
// blocks. With -health the directory health has a file for each device with its health, such as
// "Unhealthy too hot".
//
// It is its own module, so that the library's dependencies stay out of the agent's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

func main() {
	d := &driver{prepared: map[types.UID]string{}}
	kubeconfig := flag.String("kubeconfig", "/etc/kubernetes/kubelet.kubeconfig", "kubeconfig of the API server")
	flag.StringVar(&d.name, "name", "", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.state, "state", "", "directory of recorded calls and sockets")
	flag.StringVar(&d.cdi, "cdi", "/var/run/cdi", "directory of CDI specifications")
	flag.DurationVar(&d.health, "health", 0, "report device health that expires after this time")
	flag.BoolVar(&d.old, "old", false, "serve only the older API versions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := d.run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "dradriver:", err)
		os.Exit(1)
	}
}

type driver struct {
	name, node, state, cdi string
	health                 time.Duration
	old                    bool

	mu       sync.Mutex
	prepared map[types.UID]string // claim name and device, by claim UID
}

// run serves until ctx is done.
func (d *driver) run(ctx context.Context, kubeconfig string) error {
	if d.name == "" || d.node == "" || d.state == "" {
		return errors.New("-name, -node and -state are needed")
	}
	for _, dir := range []string{d.state, d.cdi} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(d.name), kubeletplugin.NodeName(d.node),
		kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(d.state),
		kubeletplugin.NodeV1(!d.old), kubeletplugin.HealthV1(!d.old))
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := d.writeCDISpec(); err != nil {
		return err
	}
	err = helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		d.node: {Slices: []resourceslice.Slice{{Devices: []resourceapi.Device{{Name: "a"}, {Name: "b"}}}}},
	}})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// writeCDISpec writes the CDI specification of the devices, for the container runtime.
func (d *driver) writeCDISpec() error {
	var devices []string
	for _, name := range []string{"a", "b"} {
		devices = append(devices, fmt.Sprintf(`{"name":%q,"containerEdits":{"env":["SAMPLE_CLAIM_DEVICE=%s"]}}`, name, name))
	}
	text := fmt.Sprintf(`{"cdiVersion":"0.6.0","kind":%q,"devices":[%s]}`, d.cdiKind(), strings.Join(devices, ","))
	return os.WriteFile(filepath.Join(d.cdi, d.name+".json"), []byte(text), 0o644)
}

// cdiKind is the CDI kind of the devices.
func (d *driver) cdiKind() string { return d.name + "/device" }

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	for _, c := range claims {
		if err := d.recordCall("prepare", c.Name); err != nil {
			return nil, err
		}
	}
	for d.exists("hang") {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		var result kubeletplugin.PrepareResult
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != d.name {
				continue
			}
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device, CDIDeviceIDs: []string{d.cdiKind() + "=" + r.Device},
			})
			d.prepared[c.UID] = c.Name + " " + r.Device
		}
		results[c.UID] = result
	}
	return results, d.writePrepared()
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]error{}
	for _, c := range claims {
		if err := d.recordCall("unprepare", c.Name); err != nil {
			return nil, err
		}
		delete(d.prepared, c.UID)
		results[c.UID] = nil
	}
	return results, d.writePrepared()
}

// writePrepared writes the file prepared.
func (d *driver) writePrepared() error {
	var lines []string
	for _, line := range d.prepared {
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return os.WriteFile(filepath.Join(d.state, "prepared"), []byte(strings.Join(lines, "")), 0o644)
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintln(os.Stderr, "dradriver:", message, err)
}

// recordCall appends a call to the file calls.
func (d *driver) recordCall(method, claim string) error {
	f, err := os.OpenFile(filepath.Join(d.state, "calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, method, claim)
	return err
}

func (d *driver) exists(name string) bool {
	_, err := os.Stat(filepath.Join(d.state, name))
	return err == nil
}
