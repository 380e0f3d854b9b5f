package page

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// topPods is how many pods are listed that use most CPU, and how many that use most memory.
const topPods = 5

// nodeView describes the node. It is called with the lock held.
func (p *Page) nodeView(node *v1.Node, sentence string, now time.Time) NodeView {
	info := &node.Status.NodeInfo
	view := NodeView{
		Name: node.Name, Conditions: []Condition{}, Sentence: sentence, Use: p.samples.use(), Top: p.top(),
		Capacity: amountsOf(node.Status.Capacity), Allocatable: amountsOf(node.Status.Allocatable), Requests: p.requests(),
		Version: info.KubeletVersion, Kernel: info.KernelVersion, Runtime: info.ContainerRuntimeVersion, OS: info.OSImage,
		// In minutes, as the page counts on: an unchanged node is not sent again.
		Uptime: uptime(p.samples.boot, now), Pods: PodsSummary{Total: len(p.rows)},
	}
	for _, c := range node.Status.Conditions {
		view.Conditions = append(view.Conditions, Condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time})
		if c.Type == v1.NodeReady {
			view.Ready = c.Status == v1.ConditionTrue
		}
	}
	for _, r := range p.rows {
		if r.view.Up {
			view.Pods.Up++
		}
	}
	return view
}

// requests is the sum of what the pods request that have not ended.
func (p *Page) requests() Amounts {
	var cpu float64
	var memory int64
	for _, r := range p.rows {
		if r.ended {
			continue
		}
		of := resourcehelper.PodRequests(r.desired, resourcehelper.PodResourcesOptions{})
		cpu += float64(of.Cpu().MilliValue()) / 1000
		memory += of.Memory().Value()
	}
	return Amounts{CPU: &cpu, Memory: &memory}
}

// top lists the pods that use most CPU or most memory.
func (p *Page) top() []TopPod {
	all := make([]*PodRow, 0, len(p.rows))
	for _, r := range p.rows {
		if r.view.CPU != nil || r.view.Memory != nil {
			all = append(all, &r.view)
		}
	}
	chosen := map[*PodRow]bool{}
	for _, by := range []func(a, b *PodRow) int{
		func(a, b *PodRow) int { return cmp.Compare(valueOf(b.CPU), valueOf(a.CPU)) },
		func(a, b *PodRow) int { return cmp.Compare(valueOf(b.Memory), valueOf(a.Memory)) },
	} {
		slices.SortFunc(all, func(a, b *PodRow) int { return cmp.Or(by(a, b), cmp.Compare(a.UID, b.UID)) })
		for _, r := range all[:min(len(all), topPods)] {
			chosen[r] = true
		}
	}
	top := make([]TopPod, 0, len(chosen))
	for r := range maps.Keys(chosen) {
		top = append(top, TopPod{r.Namespace, r.Name, valueOf(r.CPU), valueOf(r.Memory)})
	}
	slices.SortFunc(top, func(a, b TopPod) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return top
}

func valueOf[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}
