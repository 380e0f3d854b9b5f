package page

import (
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// podUse is the last known usage of a pod.
type podUse struct {
	cpu    *float64
	memory *int64
}

// podSamples has the usage of pods while a page is open.
type podSamples struct {
	pods map[types.UID]*podSeries
}

type podSeries struct {
	use        podUse
	containers map[string]*ring // CPU and memory
}

// add adds a reading and returns the pods whose usage has changed. Pods that are not in it are dropped.
func (s *podSamples) add(all []statsapi.PodStats, slot int64) (changed []types.UID) {
	seen := make(map[types.UID]bool, len(all))
	if s.pods == nil {
		s.pods = map[types.UID]*podSeries{}
	}
	for i := range all {
		p := &all[i]
		uid := types.UID(p.PodRef.UID)
		seen[uid] = true
		series := s.pods[uid]
		if series == nil {
			series = &podSeries{containers: map[string]*ring{}}
			s.pods[uid] = series
		}
		if use := (podUse{coresOf(p.CPU), workingSetOf(p.Memory)}); !use.equal(series.use) {
			series.use, changed = use, append(changed, uid)
		}
		series.add(p.Containers, slot)
	}
	maps.DeleteFunc(s.pods, func(uid types.UID, _ *podSeries) bool { return !seen[uid] })
	return changed
}

func (s *podSeries) add(containers []statsapi.ContainerStats, slot int64) {
	for i := range containers {
		c := &containers[i]
		if s.containers[c.Name] == nil {
			s.containers[c.Name] = &ring{series: 2, points: podPoints}
		}
		cpu, memory := unknown, unknown
		if cores := coresOf(c.CPU); cores != nil {
			cpu = float32(*cores)
		}
		if bytes := workingSetOf(c.Memory); bytes != nil {
			memory = float32(*bytes)
		}
		s.containers[c.Name].add(slot, 1, cpu, memory)
	}
}

// use returns the last known usage of a pod.
func (s *podSamples) use(uid types.UID) podUse {
	if series := s.pods[uid]; series != nil {
		return series.use
	}
	return podUse{}
}

func (s *podSamples) history(uid types.UID, axis axis, now time.Time) *PodHistory {
	until := axis.slot(now)
	h := &PodHistory{T: axis.times(podPoints, until, now), Containers: map[string]ContainerSeries{}}
	if series := s.pods[uid]; series != nil {
		for name, r := range series.containers {
			h.Containers[name] = ContainerSeries{r.list(0, until), r.list(1, until)}
		}
	}
	return h
}

// newest is the newest point of the pod's history.
func (s *podSamples) newest(uid types.UID, axis axis, now time.Time) PodSample {
	at := axis.slot(now)
	sample := PodSample{T: axis.wall(at, now), Containers: map[string]ContainerSample{}}
	if series := s.pods[uid]; series != nil {
		for name, r := range series.containers {
			sample.Containers[name] = ContainerSample{r.get(0, at), r.get(1, at)}
		}
	}
	return sample
}

func (u podUse) equal(other podUse) bool {
	return same(u.cpu, other.cpu) && same(u.memory, other.memory)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// coresOf rounds to thousandths of a core.
func coresOf(s *statsapi.CPUStats) *float64 {
	if s == nil || s.UsageNanoCores == nil {
		return nil
	}
	cores := math.Round(float64(*s.UsageNanoCores)/1e6) / 1e3
	return &cores
}

func workingSetOf(s *statsapi.MemoryStats) *int64 {
	if s == nil || s.WorkingSetBytes == nil {
		return nil
	}
	n := int64(min(*s.WorkingSetBytes, math.MaxInt64))
	return &n
}
