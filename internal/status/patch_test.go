package status

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

func parseStatus(t *testing.T, text string) v1.PodStatus {
	t.Helper()
	var s v1.PodStatus
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// apply applies a patch as the API server does.
func apply(t *testing.T, before v1.PodStatus, patch []byte) v1.PodStatus {
	t.Helper()
	original, err := json.Marshal(v1.Pod{Status: before})
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, v1.Pod{})
	if err != nil {
		t.Fatalf("%v in %s", err, patch)
	}
	var p v1.Pod
	if err := json.Unmarshal(merged, &p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// Whatever the API server has, after the patch it has the kubelet's status and the fields of other
// components.
func TestPatch(t *testing.T) {
	full := `
phase: Running
reason: R
message: M
hostIP: 192.0.2.1
hostIPs: [{ip: 192.0.2.1}]
podIP: 10.0.0.1
podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]
startTime: "2026-11-15T01:55:30Z"
qosClass: Burstable
observedGeneration: 2
resources: {limits: {cpu: 1}, requests: {cpu: 500m}}
allocatedResources: {cpu: 1, memory: 1Gi}
conditions:
- {type: PodReadyToStartContainers, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: Ready, status: "False", reason: ContainersNotReady, message: "no [c]", observedGeneration: 1, lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
- {type: PodResizePending, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
containerStatuses: [{name: c, image: x, imageID: z, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}]
initContainerStatuses: [{name: i, image: x, imageID: z, ready: true, restartCount: 0, state: {terminated: {exitCode: 0}}}]`
	small := `
phase: Succeeded
podIP: "fd00::1"
podIPs: [{ip: "fd00::1"}]
startTime: "2026-11-15T01:55:30Z"
qosClass: Burstable
observedGeneration: 3
resources: {}
conditions:
- {type: PodReadyToStartContainers, status: "False", lastTransitionTime: "2026-11-15T01:55:31Z"}
- {type: Ready, status: "True", lastTransitionTime: "2026-11-15T01:55:31Z"}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}
containerStatuses: [{name: c, image: x, imageID: z, ready: true, restartCount: 2, state: {running: {startedAt: "2026-11-15T01:55:30Z"}}}]`
	fresh := `
phase: Pending
qosClass: Burstable
conditions: [{type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}]`

	rejected := `
phase: Failed
reason: OutOfcpu
message: "Pod was rejected: why"
observedGeneration: 3
conditions: []
qosClass: Burstable
startTime: "2026-11-15T01:55:30Z"`

	resized := strings.Replace(strings.Replace(full, "limits: {cpu: 1}, requests", "limits: {memory: 1Gi}, requests", 1), "{cpu: 1, memory: 1Gi}", "{memory: 1Gi}", 1)

	for name, tc := range map[string]struct{ before, ours string }{
		"amounts are removed":     {full, resized},
		"new pod":                 {fresh, full},
		"all fields are removed":  {full, small},
		"all fields are added":    {small, full},
		"no change":               {full, full},
		"empty status":            {"{}", full},
		"new pod is rejected":     {fresh, rejected},
		"running pod is rejected": {full, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			ours := parseStatus(t, tc.ours)
			patch, err := patchFor("uid", &ours)
			if err != nil {
				t.Fatal(err)
			}
			got := apply(t, parseStatus(t, tc.before), patch)
			if diff := cmp.Diff(ours, got); diff != "" {
				t.Errorf("%s\n%s", diff, patch)
			}
		})
	}
}

func TestPatchKeepsFieldsOfOtherComponents(t *testing.T) {
	before := parseStatus(t, `
phase: Pending
nominatedNodeName: other
resourceClaimStatuses: [{name: claim, resourceClaimName: x}]
conditions:
- {type: example.com/gate, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z", reason: Theirs}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}`)
	ours := parseStatus(t, `
phase: Running
conditions:
- {type: example.com/gate, status: "False", lastTransitionTime: "2026-11-15T01:55:30Z", reason: Stale}
- {type: Ready, status: "True", lastTransitionTime: "2026-11-15T01:55:31Z"}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}`)
	patch, err := patchFor("uid", &ours)
	if err != nil {
		t.Fatal(err)
	}
	want := parseStatus(t, `
phase: Running
nominatedNodeName: other
resourceClaimStatuses: [{name: claim, resourceClaimName: x}]
conditions:
- {type: example.com/gate, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z", reason: Theirs}
- {type: Ready, status: "True", lastTransitionTime: "2026-11-15T01:55:31Z"}
- {type: PodScheduled, status: "True", lastTransitionTime: "2026-11-15T01:55:30Z"}`)
	if diff := cmp.Diff(want, apply(t, before, patch)); diff != "" {
		t.Error(diff)
	}
}

func TestPatchHasUIDPrecondition(t *testing.T) {
	patch, err := patchFor("the-uid", &v1.PodStatus{})
	if err != nil {
		t.Fatal(err)
	}
	var p v1.Pod
	if err := json.Unmarshal(patch, &p); err != nil {
		t.Fatal(err)
	}
	if p.UID != "the-uid" || p.ResourceVersion != "" {
		t.Errorf("precondition: uid %q, resource version %q", p.UID, p.ResourceVersion)
	}
}
