package dra

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// allocateToGroup creates a claim that is owned by, and reserved for, a PodGroup.
func (n *node) allocateToGroup(name, group string) {
	n.allocate(name)
	c := n.claims[name]
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: group, UID: "group-uid", Controller: ptr.To(true)}}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: group, UID: "group-uid"}}
}

// memberPod is a pod of a group with a claim from a template, which the group shares.
func memberPod(uid, group, claim string) *v1.Pod {
	p := claimingPod(uid, "", "")
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
	p.Spec.ResourceClaims[0] = v1.PodResourceClaim{Name: "mine", ResourceClaimTemplateName: ptr.To("template")}
	p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mine", ResourceClaimName: &claim}}
	return p
}

// The pods of a group share its claim, which is reserved for the group and not for them.
func TestClaimOfPodGroup(t *testing.T) {
	n := newNode(t)
	n.cfg.PodGroupClaims = true
	n.register()
	n.allocateToGroup("shared", "team")
	for _, uid := range []string{"one", "two"} {
		if err := n.prepare(memberPod(uid, "team", "shared")); err != nil {
			t.Fatal(err)
		}
	}
	n.expectCalls("prepare shared")
	const stranger = "prepare dynamic resources: ResourceClaim ns/shared was not created for Pod ns/three (neither Pod nor PodGroup others is the owner)"
	if err := n.prepare(memberPod("three", "others", "shared")); err == nil || err.Error() != stranger {
		t.Errorf("pod of another group: %v, want %s", err, stranger)
	}
	named := claimingPod("four", "shared", "")
	if err := n.prepare(named); err == nil {
		t.Error("a pod without a group may use the claim")
	}
	named.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("team")}
	if err := n.prepare(named); err != nil {
		t.Errorf("claim by its name: %v", err)
	}
	for _, uid := range []string{"one", "two", "four"} {
		if err := n.Release(t.Context(), types.UID(uid)); err != nil {
			t.Fatal(err)
		}
	}
	n.expectCalls("unprepare shared")
}

func TestClaimOfPodGroupWithoutGate(t *testing.T) {
	n := newNode(t)
	n.register()
	n.allocateToGroup("shared", "team")
	const want = "prepare dynamic resources: ResourceClaim ns/shared was not created for Pod ns/one (Pod is not owner)"
	if err := n.prepare(memberPod("one", "team", "shared")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	n.expectCalls()
}
