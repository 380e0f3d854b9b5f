package pod

import (
	"cmp"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Resources are what a pod's containers, and the pod as a whole, were given, or have. The
// names in JSON are the reference kubelet's.
type Resources struct {
	Containers map[string]v1.ResourceRequirements `json:"ContainerResources"`
	Pod        *v1.ResourceRequirements           `json:"PodLevelResources"`
	// Volumes are sizes of volumes in memory. They are not resized here, only kept.
	Volumes map[string]*resource.Quantity `json:"EmptyDirVolumeLimits"`
}

// ResourcesOf is what the pod's spec asks for.
func ResourcesOf(p *v1.Pod) Resources {
	r := Resources{Containers: map[string]v1.ResourceRequirements{}, Pod: p.Spec.Resources.DeepCopy()}
	for c, kind := range Containers(p) {
		if kind != Ephemeral {
			r.Containers[c.Name] = *c.Resources.DeepCopy()
		}
	}
	return r
}

// Apply gives the pod with these resources in place of its own, and whether they differ.
// The pod itself is not changed. What r does not know of stays as it is.
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

// Clone is a copy that shares nothing that is written to.
func (r Resources) Clone() Resources {
	r.Containers, r.Volumes, r.Pod = maps.Clone(r.Containers), maps.Clone(r.Volumes), r.Pod.DeepCopy()
	return r
}

// Amounts are the resources of a running container or pod that can be changed: cpu in
// thousandths, memory in bytes. No limit is zero.
type Amounts struct {
	CPURequest, CPULimit, MemoryRequest, MemoryLimit int64
}

// AmountsOf reads them from requirements.
func AmountsOf(r *v1.ResourceRequirements) Amounts {
	if r == nil {
		return Amounts{}
	}
	return Amounts{
		CPURequest: r.Requests.Cpu().MilliValue(), CPULimit: r.Limits.Cpu().MilliValue(),
		MemoryRequest: r.Requests.Memory().Value(), MemoryLimit: r.Limits.Memory().Value(),
	}
}

// Bounded are a container's own resources, with the pod's limits where it has none.
func Bounded(p *v1.Pod, c *v1.Container) v1.ResourceRequirements {
	r := *c.Resources.DeepCopy()
	if !resourcehelper.IsPodLevelResourcesSet(p) {
		return r
	}
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

// Have are a container's amounts as r tells, with the pod's limits where it has none.
func (r Resources) Have(name string) Amounts {
	own := r.Containers[name]
	amounts, whole := AmountsOf(&own), AmountsOf(r.Pod)
	amounts.CPULimit = cmp.Or(amounts.CPULimit, whole.CPULimit)
	amounts.MemoryLimit = cmp.Or(amounts.MemoryLimit, whole.MemoryLimit)
	return amounts
}

// Behind reports whether a container that runs, or the pod as a whole, has other amounts
// than the spec says.
func (r Resources) Behind(p *v1.Pod, o *Observed) bool {
	if AmountsOf(r.Pod) != AmountsOf(p.Spec.Resources) {
		return true
	}
	for c, kind := range Containers(p) {
		if latest := o.Latest(c.Name); latest == nil || latest.State != Running || !Restartable(c, kind) {
			continue
		}
		if want := Bounded(p, c); r.Have(c.Name) != AmountsOf(&want) {
			return true
		}
	}
	return false
}

// Differ reports whether anything of the pod has other amounts than the spec says.
func (r Resources) Differ(p *v1.Pod) bool {
	differ := AmountsOf(r.Pod) != AmountsOf(p.Spec.Resources)
	for c, kind := range Containers(p) {
		want := Bounded(p, c)
		differ = differ || kind != Ephemeral && r.Have(c.Name) != AmountsOf(&want)
	}
	return differ
}

// Restartable reports whether a container may be run anew for a change of its resources. An
// init container that runs to its end takes it as it runs.
func Restartable(c *v1.Container, kind ContainerKind) bool {
	return kind == Main || kind == Init && IsSidecar(c)
}

// InForce are the pod's resources as a container runs with them: those that have no limit
// have the pod's.
func InForce(p *v1.Pod) Resources {
	r := ResourcesOf(p)
	for c, kind := range Containers(p) {
		if kind != Ephemeral {
			r.Containers[c.Name] = Bounded(p, c)
		}
	}
	return r
}

// Resize is how far a change of a pod's resources has come.
type Resize struct {
	// Pending is what stands against what the spec asks for now, nil where nothing does.
	Pending *PendingResize
	// Granted is the generation of the spec that was granted last, 0 where the first still
	// holds, or where that is not known any more.
	Granted int64
}

// PendingResize says why a resize is not granted.
type PendingResize struct {
	Reason, Message string
	Generation      int64
}
