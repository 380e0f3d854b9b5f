package eviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// reason is the status and event reason of an evicted pod.
const reason = "Evicted"

// explanation is why a pod is evicted, as a message and as annotations of the event.
type explanation struct {
	message     string
	annotations map[string]string
}

// explain says which threshold was met, by how much, and which of the pod's containers use
// more of the resource than they request.
func explain(p *v1.Pod, used *statsapi.PodStats, t Threshold, at Level) explanation {
	starved := signalInfos[t.Signal].resource
	b := explanation{
		message: fmt.Sprintf("The node was low on resource: %v. Threshold quantity: %v, available: %v. ",
			starved, t.Value.text(at.Capacity), at.text(t.Signal)),
		annotations: map[string]string{},
	}
	if used == nil {
		return b
	}
	b.addPod(p, used, starved)
	var names, amounts []string
	for i := range used.Containers {
		c := &used.Containers[i]
		spec := pod.FindContainer(p, c.Name)
		amount := containerUsage(c, starved)
		if kind, ok := pod.KindOf(p, c.Name); !ok || kind == pod.Ephemeral || amount == nil {
			continue
		}
		request := spec.Resources.Requests[starved]
		if amount.Cmp(request) <= 0 {
			continue
		}
		b.message += fmt.Sprintf("Container %s was using %s, request is %s, has larger consumption of %v. ",
			c.Name, amount, request.String(), starved)
		names, amounts = append(names, c.Name), append(amounts, amount.String())
	}
	b.annotations["offending_containers"] = strings.Join(names, ",")
	b.annotations["offending_containers_usage"] = strings.Join(amounts, ",")
	b.annotations["starved_resource"] = string(starved)
	return b
}

// addPod adds the usage of a pod with a pod-level memory request.
func (b *explanation) addPod(p *v1.Pod, used *statsapi.PodStats, starved v1.ResourceName) {
	if starved != v1.ResourceMemory || !resourcehelper.IsPodLevelResourcesSet(p) || used.Memory == nil {
		return
	}
	request, ok := p.Spec.Resources.Requests[starved]
	if !ok {
		return
	}
	amount := resource.NewQuantity(workingSet(used.Memory), resource.BinarySI).String()
	b.message += fmt.Sprintf("Pod %s was using %s, request is %s, has larger consumption of %v. ", p.Name, amount, request.String(), starved)
	b.annotations["offending_pod"], b.annotations["offending_pod_usage"] = p.Name, amount
}

// containerUsage is how much of a resource the container uses, nil if unknown.
func containerUsage(c *statsapi.ContainerStats, of v1.ResourceName) *resource.Quantity {
	switch {
	case of == v1.ResourceMemory && c.Memory != nil && c.Memory.WorkingSetBytes != nil:
		return resource.NewQuantity(workingSet(c.Memory), resource.BinarySI)
	case of == v1.ResourceEphemeralStorage && c.Rootfs != nil && c.Rootfs.UsedBytes != nil && c.Logs != nil && c.Logs.UsedBytes != nil:
		return resource.NewQuantity(value(c.Rootfs.UsedBytes)+value(c.Logs.UsedBytes), resource.BinarySI)
	}
	return nil
}

// disruption is the pod condition that makes controllers treat the failure as a disruption.
func (b explanation) disruption() *v1.PodCondition {
	return &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: b.message}
}
