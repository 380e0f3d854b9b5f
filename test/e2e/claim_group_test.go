package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPodGroupClaim checks that the pods of a PodGroup share its claims, which are reserved for the
// group and not for the pods.
func TestPodGroupClaim(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "groups", `{featureGates: {GenericWorkload: true, DRAWorkloadResourceClaims: true}}`)
	driver := startClaimDriver(t, node, "groups.swiftlet.dev")
	driver.awaitSlices(true)
	space := namespace(t)
	claims := []schedulingapi.PodGroupResourceClaim{
		{Name: "generated", ResourceClaimTemplateName: ptr.To("template")},
		{Name: "named", ResourceClaimName: ptr.To("shared")},
	}
	createPodGroup(t, driver, space, claims)
	var generated string
	for _, name := range []string{"first", "second"} {
		p := startPod(t, space, memberPod(name, node.Name(), claims))
		generated = *p.Status.ResourceClaimStatuses[0].ResourceClaimName
		inPod(t, node, space, name, `echo "$SAMPLE_CLAIM_DEVICE" | grep -qx "[ab]"`)
	}
	for _, name := range []string{generated, "shared"} {
		claim, err := client().ResourceV1().ResourceClaims(space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r := claim.Status.ReservedFor; len(r) != 1 || r[0].Resource != "podgroups" || r[0].Name != "team" {
			t.Errorf("claim %s is reserved for %v, want the PodGroup", name, r)
		}
		if driver.device(name) == "" {
			t.Errorf("claim %s is not prepared", name)
		}
	}
	deletePod(t, space, "first")
	for _, name := range []string{generated, "shared"} {
		driver.awaitCalls(name, "prepare")
	}
	deletePod(t, space, "second")
	for _, name := range []string{generated, "shared"} {
		driver.awaitCalls(name, "prepare", "unprepare")
	}
}

// createPodGroup creates the PodGroup team with claims, and what they refer to.
func createPodGroup(t *testing.T, driver *claimDriver, space string, claims []schedulingapi.PodGroupResourceClaim) {
	t.Helper()
	driver.claim(space, "shared")
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: driver.claimSpec()}}
	if _, err := client().ResourceV1().ResourceClaimTemplates(space).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: schedulingapi.PodGroupSpec{
		SchedulingPolicy: schedulingapi.PodGroupSchedulingPolicy{Basic: &schedulingapi.BasicSchedulingPolicy{}},
		ResourceClaims:   claims,
	}}
	if _, err := client().SchedulingV1beta1().PodGroups(space).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// memberPod is a pod of the PodGroup team that uses all of its claims.
func memberPod(name, node string, claims []schedulingapi.PodGroupResourceClaim) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("team")}
	for _, c := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c.Name, ResourceClaimName: c.ResourceClaimName, ResourceClaimTemplateName: c.ResourceClaimTemplateName})
		p.Spec.Containers[0].Resources.Claims = append(p.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: c.Name})
	}
	return p
}
