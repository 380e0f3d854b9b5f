// Dradriver is a driver of resource claims for tests, a process of its own made with
// upstream's library for such drivers. It offers devices a and b of its node. A container
// that uses one finds its name in $SAMPLE_CLAIM_DEVICE. In the state folder stand what is
// prepared, in the file prepared with a line "CLAIM DEVICE" each, and what was asked for, in
// the file calls. While there is a file hang, nothing is prepared. With -health the folder
// health has a file for each device that tells how it is, such as "Unhealthy too hot".
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
	kubeconfig := flag.String("kubeconfig", "/etc/kubernetes/kubelet.kubeconfig", "way to the API server")
	flag.StringVar(&d.name, "name", "", "name of the driver")
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.state, "state", "", "folder for notes and sockets")
	flag.StringVar(&d.cdi, "cdi", "/var/run/cdi", "folder of CDI descriptions")
	flag.DurationVar(&d.health, "health", 0, "tell the health of devices, which is good for this long")
	flag.BoolVar(&d.old, "old", false, "speak the older versions only")
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
		kubeletplugin.KubeClient(client), kubeletplugin.PluginDataDirectoryPath(d.state),
		kubeletplugin.NodeV1(!d.old), kubeletplugin.HealthV1(!d.old))
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
	text := fmt.Sprintf(`{"cdiVersion":"0.6.0","kind":%q,"devices":[%s]}`, d.kind(), strings.Join(devices, ","))
	return os.WriteFile(filepath.Join(d.cdi, d.name+".json"), []byte(text), 0o644)
}

// kind is what the devices are to the container runtime.
func (d *driver) kind() string { return d.name + "/device" }

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	for _, c := range claims {
		if err := d.called("prepare", c.Name); err != nil {
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
	answer := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		var result kubeletplugin.PrepareResult
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != d.name {
				continue
			}
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests: []string{r.Request}, PoolName: r.Pool, DeviceName: r.Device, CDIDeviceIDs: []string{d.kind() + "=" + r.Device},
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
		if err := d.called("unprepare", c.Name); err != nil {
			return nil, err
		}
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

// called notes what was asked for.
func (d *driver) called(method, claim string) error {
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
