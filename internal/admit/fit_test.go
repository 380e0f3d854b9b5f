package admit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

func testNode() *v1.Node {
	node := &v1.Node{}
	node.Name = "node-1"
	node.Labels = map[string]string{"disk": "ssd"}
	node.Status.Allocatable = amounts("cpu", "2", "memory", "1Gi", "ephemeral-storage", "10Gi", "pods", "3", "x.com/gpu", "1", "hugepages-2Mi", "4Mi")
	return node
}

func nodeGetter(node *v1.Node) func() (*v1.Node, error) {
	return func() (*v1.Node, error) { return node, nil }
}

func port(hostPort int32, change ...func(*v1.ContainerPort)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		cp := v1.ContainerPort{ContainerPort: 1, HostPort: hostPort}
		for _, c := range change {
			c(&cp)
		}
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, cp)
	}
}

const (
	wrongAffinity = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	wrongPorts    = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)

// byClaim replaces the resource of the pod's container with a resource claim.
func byClaim(resource string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{
			RequestMappings: []v1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: resource}}}
	}
}

func TestFit(t *testing.T) {
	udp := func(p *v1.ContainerPort) { p.Protocol = v1.ProtocolUDP }
	ip := func(ip string) func(*v1.ContainerPort) { return func(p *v1.ContainerPort) { p.HostIP = ip } }
	selector := func(key, value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	taint := func(effect v1.TaintEffect) func(*v1.Node) {
		return func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}} }
	}
	none := func(*v1.Node) {}
	for name, c := range map[string]struct {
		node            func(*v1.Node)
		pod             *v1.Pod
		others          []*v1.Pod
		reason, message string
	}{
		"no_requests": {none, newPod(), nil, "", ""},
		"exactly_fits": {none, newPod(requests("cpu", "500m", "memory", "512Mi")),
			[]*v1.Pod{newPod(requests("cpu", "1500m", "memory", "512Mi"))}, "", ""},
		"too_many_pods": {none, newPod(), []*v1.Pod{newPod(), newPod(), newPod()},
			"OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"},
		"not_enough_cpu": {none, newPod(requests("cpu", "600m")), []*v1.Pod{newPod(requests("cpu", "1500m"))},
			"OutOfcpu", "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"},
		"not_enough_memory": {none, newPod(requests("cpu", "1", "memory", "2Gi")), nil,
			"OutOfmemory", "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824"},
		"not_enough_ephemeral_storage": {none, newPod(requests("ephemeral-storage", "11Gi")), nil,
			"OutOfephemeral-storage", "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240"},
		"not_enough_of_extended_resource": {none, newPod(requests("x.com/gpu", "1")), []*v1.Pod{newPod(requests("x.com/gpu", "1"))},
			"OutOfx.com/gpu", "Node didn't have enough resource: x.com/gpu, requested: 1, used: 1, capacity: 1"},
		"cluster_level_extended_resource": {none, newPod(requests("x.com/licence", "1")), nil, "", ""},
		"extended_resource_by_claim":      {none, newPod(requests("x.com/gpu", "5"), byClaim("x.com/gpu")), nil, "", ""},
		"device_class_with_claim": {none, newPod(requests("deviceclass.resource.kubernetes.io/gpu", "1"),
			byClaim("deviceclass.resource.kubernetes.io/gpu")), nil, "", ""},
		"device_class_without_claim": {none, newPod(requests("deviceclass.resource.kubernetes.io/gpu", "1")), nil,
			"OutOfdeviceclass.resource.kubernetes.io/gpu", "Node didn't have enough resource: deviceclass.resource.kubernetes.io/gpu, requested: 1, used: 0, capacity: 0"},
		"unknown_huge_page_size": {none, newPod(requests("hugepages-1Gi", "1Gi")), nil,
			"OutOfhugepages-1Gi", "Node didn't have enough resource: hugepages-1Gi, requested: 1073741824, used: 0, capacity: 0"},
		"no_requests_on_full_node": {none, newPod(), []*v1.Pod{newPod(requests("cpu", "3"))}, "", ""},
		"cpu_reported_before_affinity": {none, newPod(requests("cpu", "3"), selector("disk", "hdd")), nil,
			"OutOfcpu", "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"},

		"selector_matches":        {none, newPod(selector("disk", "ssd")), nil, "", ""},
		"selector_does_not_match": {none, newPod(selector("disk", "hdd")), nil, "NodeAffinity", wrongAffinity},
		"node_name_does_not_match": {none, newPod(func(p *v1.Pod) { p.Spec.NodeName = "node-2" }), nil,
			"NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"},
		"node_name_matches": {none, newPod(func(p *v1.Pod) { p.Spec.NodeName = "node-1" }), nil, "", ""},

		"host_port_in_use":            {none, newPod(port(80)), []*v1.Pod{newPod(port(80))}, "NodePorts", wrongPorts},
		"host_port_of_other_protocol": {none, newPod(port(80)), []*v1.Pod{newPod(port(80, udp))}, "", ""},
		"host_port_on_other_ip":       {none, newPod(port(80, ip("10.0.0.1"))), []*v1.Pod{newPod(port(80, ip("10.0.0.2")))}, "", ""},
		"host_port_on_any_ip":         {none, newPod(port(80, ip("10.0.0.1"))), []*v1.Pod{newPod(port(80))}, "NodePorts", wrongPorts},
		"host_port_of_sidecar": {none, newPod(port(80)), []*v1.Pod{newPod(func(p *v1.Pod) {
			always := v1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []v1.Container{{RestartPolicy: &always, Ports: []v1.ContainerPort{{HostPort: 80}}}}
		})}, "NodePorts", wrongPorts},
		"host_port_of_init_container": {none, newPod(port(80)), []*v1.Pod{newPod(func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Ports: []v1.ContainerPort{{HostPort: 80}}}}
		})}, "", ""},

		"no_execute_taint": {taint(v1.TaintEffectNoExecute), newPod(), nil,
			"TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		"no_schedule_taint":           {taint(v1.TaintEffectNoSchedule), newPod(), nil, "", ""},
		"no_execute_taint_static_pod": {taint(v1.TaintEffectNoExecute), newPod(static), nil, "", ""},
		"no_execute_taint_tolerated": {taint(v1.TaintEffectNoExecute), newPod(func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists}}
		}), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := testNode()
			c.node(node)
			before := c.pod.DeepCopy()
			var want *pod.Rejection
			if c.reason != "" {
				want = &pod.Rejection{Reason: c.reason, Message: c.message}
			}
			if diff := cmp.Diff(want, Fit(nodeGetter(node), nil)(c.pod, c.others)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, c.pod); diff != "" {
				t.Errorf("the pod was changed: %s", diff)
			}
		})
	}
}

func TestFitRejectsWithoutNode(t *testing.T) {
	check := Fit(func() (*v1.Node, error) { return nil, errors.New("x") }, nil)
	want := &pod.Rejection{Reason: "InvalidNodeInfo", Message: "Kubelet cannot get node info."}
	if diff := cmp.Diff(want, check(newPod(), nil)); diff != "" {
		t.Error(diff)
	}
}

func TestFitPreempts(t *testing.T) {
	hdd := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} }
	others := []*v1.Pod{newPod(requests("cpu", "1500m"))}
	for name, c := range map[string]struct {
		pod      *v1.Pod
		err      error
		preempts bool
		reason   string
	}{
		"critical_pod_preempts":      {newPod(requests("cpu", "1"), static), nil, true, ""},
		"other_pod_is_rejected":      {newPod(requests("cpu", "1")), nil, false, "OutOfcpu"},
		"no_victims":                 {newPod(requests("cpu", "1"), static), errors.New("no victims"), true, "UnexpectedAdmissionError"},
		"critical_pod_with_mismatch": {newPod(requests("cpu", "1"), static, hdd), nil, false, "NodeAffinity"},
	} {
		t.Run(name, func(t *testing.T) {
			var shortages []Shortage
			check := Fit(nodeGetter(testNode()), func(_ *v1.Pod, _ []*v1.Pod, s []Shortage) error {
				shortages = s
				return c.err
			})
			got := check(c.pod, others)
			if reasonOf(got) != c.reason || (shortages != nil) != c.preempts {
				t.Errorf("%+v, preempting for %v", got, shortages)
			}
			if c.preempts && shortages[0].Missing() != 500 {
				t.Errorf("%d is missing, want 500", shortages[0].Missing())
			}
		})
	}
}
