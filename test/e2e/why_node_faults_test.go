package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/apifaults"
	"swiftlet/test/bed"
	"swiftlet/test/crifaults"
	"swiftlet/test/criproxy"
)

// whyNode is a node that reaches the API server and containerd through proxies that inject faults.
type whyNode struct {
	*faultyAPI
	runtime *crifaults.Proxy
}

func newWhyNode(t *testing.T) *whyNode {
	t.Helper()
	f := &whyNode{faultyAPI: &faultyAPI{faultyNode: &faultyNode{node: bareNode(t, "why")}}}
	f.connect(t)
	var err error
	if f.runtime, err = crifaults.Start(f.node.Path(faultySocket), f.node.RuntimeSocket()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.runtime.Close(); err != nil {
			t.Error(err)
		}
	})
	startKubelet(t, f.node, "contentType: application/json\ncontainerRuntimeEndpoint: unix://"+faultySocket)
	return f
}

// injectCalls makes calls for certain pods fail or hang, and returns the faults of those.
func (f *whyNode) injectCalls(t *testing.T, in string) []whyFault {
	t.Helper()
	f.proxy.Set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/unread"):
			next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				apifaults.Failing(http.StatusServiceUnavailable)(w, r, nil)
			})
		case strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/cut"):
			next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { apifaults.Cutting(w, r, nil) })
		}
		next.ServeHTTP(w, r)
	})
	var hanging []crifaults.Fault
	for pod, method := range map[string]string{"sandbox-hangs": "RunPodSandbox", "create-hangs": "CreateContainer", "start-hangs": "StartContainer", "stop-hangs": "StopContainer"} {
		fault, _ := crifaults.HangingPod(pod, method)
		hanging = append(hanging, fault)
	}
	f.runtime.Set(together(hanging))
	for _, name := range []string{"deleted-class", "no-handler"} {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "none"}
		if _, err := client().NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const runtime = "the container runtime of node NODE, if it takes too long"
	const api = "the API server, or the node's connection to it"
	return []whyFault{
		{name: "sandbox-hangs", step: `sandbox: is being created with the pod's network, since`, object: "the CNI network or " + runtime},
		{name: "create-hangs", step: `container c: is being created, since`, object: runtime},
		{name: "start-hangs", step: `container c: is being started, since`, object: runtime},
		{name: "stop-hangs", deleted: true, step: `container c: does not end although its grace period is over`, object: "its processes, which may be stuck in the kernel, or the container runtime of the node"},
		{name: "api-server-fails", change: mounts(fromClaim("unread")), step: `volume data: the API server does not answer \(.+\), since`, object: api},
		{name: "api-server-cut", change: mounts(fromClaim("cut")), step: `volume data: the API server does not answer \(.+\), since`, object: api},
		{name: "no-handler", change: func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("no-handler") },
			step: `sandbox: the container runtime cannot create it, with the pod's network \(.+\), since`, object: "the CNI network or the container runtime of node NODE"},
		{name: "no-runtime-class", change: func(p *corev1.Pod) {
			p.Spec.RuntimeClassName, p.Spec.NodeName, p.Spec.SchedulerName = ptr.To("deleted-class"), "", "none"
		}, created: func(p *corev1.Pod) error { return f.bindWithoutClass(t.Context(), in, p) },
			step: `sandbox: RuntimeClass deleted-class does not exist, since`, object: "spec.runtimeClassName, or the RuntimeClass"},
	}
}

// together injects several faults that hang.
func together(all []crifaults.Fault) crifaults.Fault {
	return crifaults.Fault{
		Before: func(ctx context.Context, c criproxy.Call) error {
			for _, one := range all {
				if err := one.Before(ctx, c); err != nil {
					return err
				}
			}
			return nil
		},
		Answer: func(ctx context.Context, c criproxy.Call, response []byte) (answers [][]byte, err error) {
			for _, one := range all {
				if answers, err = one.Answer(ctx, c, response); err != nil {
					return nil, err
				}
			}
			return answers, nil
		},
	}
}

// bindWithoutClass deletes the RuntimeClass, which the API server demands of a pod that is created, and then
// assigns the pod to the node.
func (f *whyNode) bindWithoutClass(ctx context.Context, in string, p *corev1.Pod) error {
	if err := client().NodeV1().RuntimeClasses().Delete(ctx, "deleted-class", metav1.DeleteOptions{}); err != nil {
		return err
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: f.node.Name()}}
	return client().CoreV1().Pods(in).Bind(ctx, binding, metav1.CreateOptions{})
}

// stopAPI makes the API server unreachable for the node.
func (f *whyNode) stopAPI(w *whyPlace) {
	w.Helper()
	f.proxy.Set(apifaults.Failing(http.StatusServiceUnavailable))
	w.await(whyFault{name: "api-server-down", step: `volume data: the API server does not answer \(.+\), since`,
		object: "the API server, or the node's connection to it"}, "why", w.in, "claim-unbound")
	f.proxy.Set(nil)
}

// whyNodeConfig is the configuration of a node with faults of its own.
const whyNodeConfig = `
cpuManagerPolicy: static
topologyManagerPolicy: single-numa-node
systemReserved: {cpu: 100m}
shutdownGracePeriod: 25s
shutdownGracePeriodCriticalPods: 12s
`

// whyEviction is the configuration of evictions of a node with smallDisk.
const whyEviction = `
evictionHard: {nodefs.available: 80Mi}
evictionPressureTransitionPeriod: 1s
`

// testWhyNodeFaults injects faults of a whole node, one after another.
func testWhyNodeFaults(t *testing.T) []whyRow {
	t.Helper()
	node := bareNode(t, "why-node")
	login := startLogind(t, node)
	inNode(t, node, "set -e\n"+smallDisk)
	startKubelet(t, node, whyNodeConfig+whyEviction)
	w := &whyPlace{T: t, node: node, in: clearedNamespace(t)}
	w.inject([]whyFault{{name: "cpu-set", change: func(p *corev1.Pod) { setLimits(p, "cpu", "1000", "memory", "32Mi") },
		step:   `pod: was rejected: its CPUs, memory and devices are not available on the NUMA nodes that the policy demands \(.+\), since`,
		object: "spec.containers[*].resources, or topologyManagerPolicy of the node"}})
	w.injectNetworkFaults()
	w.injectRuntimeDown()
	w.injectDiskPressure()
	w.injectMemoryPressure()
	startPod(t, w.in, sleeper("node-shut-down", node.Name()))
	eventually(t, timeout, func() string {
		if login.Held() == 0 {
			return "there is no inhibitor lock"
		}
		return ""
	})
	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	w.await(whyFault{name: "node-shut-down", step: `pod: was stopped: the node is shutting down \(.+\), since`, object: "the node"}, "why", w.in, "node-shut-down")
	w.inject([]whyFault{{name: "node-shutting-down", step: `pod: was rejected: the node is shutting down \(.+\), since`, object: "the node"}})
	w.await(whyFault{name: "node: shutting down", step: "node " + node.Name() + `: is not ready \(.*shutting down.*\), since`, object: "what the message names"}, "why")
	return w.rows
}

// injectNetworkFaults disturbs the pod network of the node.
func (w *whyPlace) injectNetworkFaults() {
	w.Helper()
	const cannotCreate = `sandbox: the container runtime cannot create it, with the pod's network \(.+\), since`
	const object = "the CNI network or the container runtime of node NODE"
	startPod(w.T, w.in, sleeper("cni-fails-at-end", w.node.Name()))
	inNode(w.T, w.node, "mount --bind /bin/false /opt/cni/bin/portmap")
	w.inject([]whyFault{{name: "cni-fails", step: cannotCreate, object: object}})
	if err := client().CoreV1().Pods(w.in).Delete(w.Context(), "cni-fails-at-end", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.await(whyFault{name: "cni-fails-at-end", step: `sandbox: it cannot be stopped \(.+\), since`, object: object}, "why", w.in, "cni-fails-at-end")
	inNode(w.T, w.node, "umount -l /opt/cni/bin/portmap")

	config := w.node.Path("/etc/cni/net.d/10-bed.conflist")
	before, err := os.ReadFile(config)
	if err != nil {
		w.Fatal(err)
	}
	// Its only address is taken.
	prefix := w.node.PodCIDR()[:strings.LastIndex(w.node.PodCIDR(), ".")]
	inNode(w.T, w.node, "mkdir -p /var/lib/cni/networks/narrow && echo other > /var/lib/cni/networks/narrow/"+prefix+".200")
	write(w.T, config, fmt.Appendf(nil, `{"cniVersion": "1.0.0", "name": "narrow", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
		"ipam": {"type": "host-local", "ranges": [[{"subnet": %q, "rangeStart": "%[2]s.200", "rangeEnd": "%[2]s.200"}]]}}]}`, w.node.PodCIDR(), prefix))
	w.inject([]whyFault{{name: "no-address", step: cannotCreate, object: object}})
	if err := os.Remove(config); err != nil {
		w.Fatal(err)
	}
	awaitReadyIs(w.T, w.node.Name(), corev1.ConditionFalse, "")
	w.inject([]whyFault{{name: "network-not-ready", step: `pod: the pod network of the node is not ready \(.+\), since`, object: "the CNI configuration of node NODE"}})
	w.await(whyFault{name: "node: network not ready", step: "node " + w.node.Name() + `: is not ready \(.*network.*\), since`, object: "what the message names"}, "why")
	write(w.T, config, before)
	awaitReadyIs(w.T, w.node.Name(), corev1.ConditionTrue, "")
}

// injectRuntimeDown stops the runtime.
func (w *whyPlace) injectRuntimeDown() {
	w.Helper()
	if err := w.node.StopContainerd(); err != nil {
		w.Fatal(err)
	}
	w.inject([]whyFault{{name: "runtime-down", step: `pod: the container runtime is not running \(.+\), since`, object: "the container runtime of node NODE"}})
	w.await(whyFault{name: "node: runtime down", step: "node " + w.node.Name() + `: is not ready \(.+\), since`, object: "what the message names"}, "why")
	if err := w.node.StartContainerd(w.Context()); err != nil {
		w.Fatal(err)
	}
	awaitReadyIs(w.T, w.node.Name(), corev1.ConditionTrue, "")
}

// injectDiskPressure fills the disk.
func (w *whyPlace) injectDiskPressure() {
	w.Helper()
	const name = "disk-pressure"
	w.clear()
	startPod(w.T, w.in, sleeper(name, w.node.Name()))
	inNode(w.T, w.node, "fallocate -l 130M /var/lib/kubelet/fill")
	w.await(whyFault{name: "node: " + name, step: "node " + w.node.Name() + ": has too little disk space", object: "what fills its disk, or evictionHard of the node"}, "why")
	w.await(whyFault{name: name, step: `pod: was evicted: the node's disk was too full \(.+\), since`,
		object: "spec.containers[*].resources.requests.ephemeral-storage, or what fills the node's disk"}, "why", w.in, name)
	inNode(w.T, w.node, "rm /var/lib/kubelet/fill")
	awaitNode(w.T, w.node.Name(), timeout, schedulable)
}

// injectMemoryPressure restarts the kubelet with a threshold that no node can stay below. Pods may then be evicted
// or rejected.
func (w *whyPlace) injectMemoryPressure() {
	w.Helper()
	w.clear()
	w.restart("evictionHard: {memory.available: 99.9%}\nevictionPressureTransitionPeriod: 1s\n")
	w.await(whyFault{name: "node: memory-pressure", step: "node " + w.node.Name() + ": has too little memory", object: "the pods that use most memory, or evictionHard of the node"}, "why")
	w.restart(whyEviction)
	awaitNode(w.T, w.node.Name(), timeout, schedulable)
	// The kubelet may have removed images that it found unused.
	if err := w.node.ImportImages(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// clear deletes all pods.
func (w *whyPlace) clear() {
	w.Helper()
	all := client().CoreV1().Pods(w.in)
	if err := all.DeleteCollection(w.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
		w.Fatal(err)
	}
	eventually(w.T, timeout, func() string {
		left, err := all.List(w.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			return fmt.Sprintf("%d pods are left: %v", len(left.Items), err)
		}
		return ""
	})
}

// restart restarts the kubelet with further configuration.
func (w *whyPlace) restart(config string) {
	w.Helper()
	err := errors.Join(w.node.StopKubelet(), w.node.StartKubelet(w.Context(), bed.KubeletOptions{Kind: kubelet, Config: whyNodeConfig + config}))
	if err != nil {
		w.Fatal(err)
	}
	if err := w.node.WaitReady(w.Context()); err != nil {
		w.Fatal(err)
	}
}
