package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// rejections are the reasons for which pods are not admitted.
var rejections = []string{
	"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "OutOfexample.com/gpu",
	"NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "InvalidNodeInfo",
	"UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError", "EmptyPodSharedPoolError",
	"PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "SupplementalGroupsPolicyNotSupported",
	"SysctlForbidden", "AppArmor", "PodLevelResourcesNotSupported", "PodFeatureUnsupported",
	"Evicted", "NodeShutdown",
}

// A rejected pod has the same status whatever the reason and its spec.
func TestRejected(t *testing.T) {
	guaranteed := func(p *v1.Pod) {
		amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Resources = v1.ResourceRequirements{Requests: amounts, Limits: amounts}
		}
	}
	scheduled := func(p *v1.Pod) {
		p.Status = v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}}
	}
	hostNetwork := func(p *v1.Pod) { p.Spec.HostNetwork = true }
	static := func(p *v1.Pod) { p.Annotations = map[string]string{pod.AnnotationSource: "file"} }
	pods := map[string]*v1.Pod{
		"plain":           newPod("Always", "a"),
		"init containers": newPod("Never", "iab"),
		"sidecar":         newPod("OnFailure", "sab"),
		"scheduled":       newPod("Always", "a", scheduled),
		"guaranteed":      newPod("Always", "a", guaranteed),
		"host network":    newPod("Always", "a", hostNetwork),
		"restarts all":    newPod("Never", "iab", restartAll),
		"static":          newPod("Always", "a", static),
	}
	for _, reason := range rejections {
		for name, p := range pods {
			p.Generation = 3
			t.Run(reason+"/"+name, func(t *testing.T) {
				failure := &pod.Failure{Reason: reason, Message: "Pod was rejected: why", Rejected: true}
				want := v1.PodStatus{
					Phase: v1.PodFailed, Reason: reason, Message: failure.Message,
					StartTime: &metav1.Time{Time: now}, QOSClass: pod.QOS(p), ObservedGeneration: 3,
				}
				in := Input{Pod: p, Previous: p.Status, Failure: failure, HostIPs: []string{"192.0.2.1"}, Now: now}
				for _, in.Stopped = range []bool{false, true} {
					if diff := cmp.Diff(want, Compute(in)); diff != "" {
						t.Errorf("stopped %v: %s", in.Stopped, diff)
					}
				}
				// A restarted kubelet keeps the status.
				in.Previous, in.Failure, in.Now = want, nil, now.Add(time.Hour)
				if diff := cmp.Diff(want, Compute(in)); diff != "" {
					t.Errorf("after a restart: %s", diff)
				}
			})
		}
	}
}

// A running pod that a restarted kubelet rejects shows its containers and their exits.
func TestRejectedWhileRunning(t *testing.T) {
	failure := &pod.Failure{Reason: "NodeAffinity", Message: "Pod was rejected: why"}
	in := Input{Pod: newPod("Always", "a"), Failure: failure, Runtime: "model", Now: now}
	var got []string
	for _, line := range []string{"ready a:run", "notready a:143"} {
		in.Observed = observe(line)
		in.Previous = Compute(in)
		got = append(got, show(in.Previous))
	}
	if diff := cmp.Diff([]string{"Failed a:run!", "Failed a:Error(143)"}, got); diff != "" {
		t.Error(diff)
	}
}
