package pod

import (
	"cmp"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Resources are the allocated or actual resources of a pod and its containers. The JSON names are the
// reference kubelet's.
type Resources struct {
	Containers map[string]v1.ResourceRequirements `json:"ContainerResources"`
	Pod        *v1.ResourceRequirements           `json:"PodLevelResources"`
	// Volumes are the sizes of in-memory volumes, which are not resized.
	Volumes map[string]*resource.Quantity `json:"EmptyDirVolumeLimits"`
}

// ResourcesOf returns the resources of the pod's spec. Both share their amounts, which no one may change.
func ResourcesOf(p *v1.Pod) Resources {
	r := Resources{Containers: map[string]v1.ResourceRequirements{}, Pod: p.Spec.Resources}
	for c, kind := range Containers(p) {
		if kind != Ephemeral {
			r.Containers[c.Name] = c.Resources
		}
	}
	return r
}

// Apply returns the pod with these resources in place of those of its spec, and whether they differ. It
// does not change p. Containers that r does not have keep their resources.
func (r Resources) Apply(p *v1.Pod) (applied *v1.Pod, differ bool) {
	for c, kind := range Containers(p) {
		have, known := r.Containers[c.Name]
		differ = differ || kind != Ephemeral && known && !equality.Semantic.DeepEqual(have, c.Resources)
	}
	differ = differ || !equality.Semantic.DeepEqual(r.Pod, p.Spec.Resources)
	if !differ {
		return p, false
	}
	p = p.DeepCopy()
	p.Spec.Resources = r.Pod.DeepCopy()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if have, known := r.Containers[list[i].Name]; known {
				list[i].Resources = *have.DeepCopy()
			}
		}
	}
	return p, true
}

// Clone returns a deep enough copy: it shares nothing that callers may write.
func (r Resources) Clone() Resources {
	r.Containers, r.Volumes, r.Pod = maps.Clone(r.Containers), maps.Clone(r.Volumes), r.Pod.DeepCopy()
	return r
}

// Amounts are the resources of a container or pod that can be resized: CPU in thousandths, memory in
// bytes. No limit is zero.
type Amounts struct {
	CPURequest, CPULimit, MemoryRequest, MemoryLimit int64
}

// AmountsOf returns the Amounts of requirements.
func AmountsOf(r *v1.ResourceRequirements) Amounts {
	if r == nil {
		return Amounts{}
	}
	return Amounts{
		CPURequest: r.Requests.Cpu().MilliValue(), CPULimit: r.Limits.Cpu().MilliValue(),
		MemoryRequest: r.Requests.Memory().Value(), MemoryLimit: r.Limits.Memory().Value(),
	}
}

// EffectiveRequirements returns a container's resources, with the pod-level limits where it has none. They may share
// their amounts with the spec, so no one may change them.
func EffectiveRequirements(p *v1.Pod, c *v1.Container) v1.ResourceRequirements {
	if !resourcehelper.IsPodLevelResourcesSet(p) {
		return c.Resources
	}
	r := *c.Resources.DeepCopy()
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if own := r.Limits[name]; !own.IsZero() {
			continue
		}
		if limit, ok := p.Spec.Resources.Limits[name]; ok {
			if r.Limits == nil {
				r.Limits = v1.ResourceList{}
			}
			r.Limits[name] = limit.DeepCopy()
		}
	}
	return r
}

// ContainerAmounts returns a container's amounts in r, with the pod-level limits where it has none.
func (r Resources) ContainerAmounts(name string) Amounts {
	own := r.Containers[name]
	amounts, whole := AmountsOf(&own), AmountsOf(r.Pod)
	amounts.CPULimit = cmp.Or(amounts.CPULimit, whole.CPULimit)
	amounts.MemoryLimit = cmp.Or(amounts.MemoryLimit, whole.MemoryLimit)
	return amounts
}

// ResizeInProgress reports whether the amounts of a running container, or the pod-level ones, differ
// from those of the spec.
func (r Resources) ResizeInProgress(p *v1.Pod, o *Observed) bool {
	if AmountsOf(r.Pod) != AmountsOf(p.Spec.Resources) {
		return true
	}
	for c, kind := range Containers(p) {
		if latest := o.Latest(c.Name); latest == nil || latest.State != Running || !RestartableForResize(c, kind) {
			continue
		}
		if want := EffectiveRequirements(p, c); r.ContainerAmounts(c.Name) != AmountsOf(&want) {
			return true
		}
	}
	return false
}

// Differs reports whether any amount differs from that of the spec.
func (r Resources) Differs(p *v1.Pod) bool {
	differ := AmountsOf(r.Pod) != AmountsOf(p.Spec.Resources)
	for c, kind := range Containers(p) {
		want := EffectiveRequirements(p, c)
		differ = differ || kind != Ephemeral && r.ContainerAmounts(c.Name) != AmountsOf(&want)
	}
	return differ
}

// RestartableForResize reports whether a container may restart for a resize. Init containers that are
// no sidecars are updated in place.
func RestartableForResize(c *v1.Container, kind ContainerKind) bool {
	return kind == Main || kind == Init && IsSidecar(c)
}

// EffectiveResources returns the resources of the pod's spec, with the pod-level limits for containers
// that have none.
func EffectiveResources(p *v1.Pod) Resources {
	r := ResourcesOf(p)
	for c, kind := range Containers(p) {
		if kind != Ephemeral {
			r.Containers[c.Name] = EffectiveRequirements(p, c)
		}
	}
	return r
}

// Resize is the state of a pod's resize.
type Resize struct {
	// Pending is why the resources of the spec are not allocated, nil if they are.
	Pending *PendingResize
	// Granted is the generation of the last spec whose resize was granted, 0 if there was none, or
	// if it was granted before a restart of the kubelet.
	Granted int64
}

// PendingResize is why a resize is not granted.
type PendingResize struct {
	Reason, Message string
	Generation      int64
}
