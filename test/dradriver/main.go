// Dradriver is a driver of resource claims for tests, a process of its own made with
// upstream's library for such drivers. It offers devices a and b of its node. A container
// that uses one finds its name in $SAMPLE_CLAIM_DEVICE, and what was prepared stands in the
// file prepared of the state folder, a line "CLAIM DEVICE" each.
//
// It is a module of its own, so that what the library needs stays out of the agent's.
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

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const cdiKind = "claims.swiftlet.dev/device"

func main() {
	d := &driver{prepared: map[types.UID]string{}}
	kubeconfig := flag.String("kubeconfig", "/etc/kubernetes/kubelet.kubeconfig", "way to the API server")
	flag.StringVar(&d.name, "name", "", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.state, "state", "", "folder for notes and sockets")
	flag.StringVar(&d.cdi, "cdi", "/var/run/cdi", "folder of CDI descriptions")
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

	mu       sync.Mutex
	prepared map[types.UID]string // claim's name and device
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
		kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(d.state))
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := d.describe(); err != nil {
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

// describe tells the container runtime what to do about the devices.
func (d *driver) describe() error {
	var devices []string
	for _, name := range []string{"a", "b"} {
		devices = append(devices, fmt.Sprintf(`{"name":%q,"containerEdits":{"env":["SAMPLE_CLAIM_DEVICE=%s"]}}`, name, name))
	}
	text := fmt.Sprintf(`{"cdiVersion":"0.6.0","kind":%q,"devices":[%s]}`, cdiKind, strings.Join(devices, ","))
	return os.WriteFile(filepath.Join(d.cdi, d.name+".json"), []byte(text), 0o644)
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		var result kubeletplugin.PrepareResult
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != d.name {
				continue
			}
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device, CDIDeviceIDs: []string{cdiKind + "=" + r.Device},
			})
			d.prepared[c.UID] = c.Name + " " + r.Device
		}
		answer[c.UID] = result
	}
	return answer, d.note()
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := map[types.UID]error{}
	for _, c := range claims {
		delete(d.prepared, c.UID)
		answer[c.UID] = nil
	}
	return answer, d.note()
}

// note writes down what is prepared.
func (d *driver) note() error {
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

// WatchHealthStatus has nothing to tell.
func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
