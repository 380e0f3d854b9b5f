package stats

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Storage returns the usage of the node's disk by the given pods, and no other stats of them.
// It measures volumes whose last result is older than fresh again, as Summary does.
func (s *Stats) Storage(ctx context.Context, pods []types.UID, fresh time.Duration) ([]statsapi.PodStats, error) {
	requested := map[types.UID]bool{}
	for _, uid := range pods {
		requested[uid] = true
	}
	d := &disks{layers: map[string]*runtimeapi.FilesystemUsage{}, byMount: map[string]*fsInfo{}}
	var err error
	if d.node, err = statfs(s.cfg.RootDir); err != nil {
		return nil, err
	}
	observed := slices.DeleteFunc(slices.Clone(s.deps.Pods()), func(o pod.Observed) bool { return !requested[o.UID] || o.Sandbox() == nil })
	var volumes []pod.MeasurableVolume
	for _, o := range observed {
		for _, v := range s.deps.Volumes(o.UID) {
			if v.Measure == nil { // a driver's volume is not on the node's disk
				volumes = append(volumes, v)
			}
		}
	}
	s.measureVolumes(ctx, volumes, fresh)
	if err := s.readLayers(ctx, d, observed); err != nil {
		return nil, err
	}
	var all []statsapi.PodStats
	for _, o := range observed {
		p := podUsage{Ref: o.Ref}
		out := statsapi.PodStats{PodRef: statsapi.PodReference{Name: o.Name, Namespace: o.Namespace, UID: string(o.UID)}}
		for i := range o.Containers {
			if c := &o.Containers[i]; c.State == pod.Running {
				p.containers = append(p.containers, containerUsage{id: c.ID, name: c.Name})
				out.Containers = append(out.Containers, statsapi.ContainerStats{Name: c.Name})
			}
		}
		s.addPodStorage(&out, &p, d)
		all = append(all, out)
	}
	return all, nil
}

const (
	// maxLayerCalls bounds the calls of the runtime at the same time, and layersTimeout each of them.
	maxLayerCalls = 8
	layersTimeout = 3 * time.Second
)

// readLayers reads the usage of the writable layers of the pods. A pod that the runtime does not answer for lacks
// them, and harms no other: limits on storage are enforced by this. It fails if there is an answer for none.
func (s *Stats) readLayers(ctx context.Context, d *disks, pods []pod.Observed) error {
	lists, errs := make([][]*runtimeapi.ContainerStats, len(pods)), make([]error, len(pods))
	var calls errgroup.Group
	calls.SetLimit(maxLayerCalls)
	for i, o := range pods {
		calls.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, layersTimeout)
			defer cancel()
			lists[i], errs[i] = s.deps.Runtime.ListContainerStats(limited, &runtimeapi.ContainerStatsFilter{PodSandboxId: o.Sandbox().ID})
			return nil
		})
	}
	_ = calls.Wait() // errs has the failures
	if len(pods) > 0 && !slices.Contains(errs, nil) {
		return fmt.Errorf("list container stats: %w", errs[0])
	}
	for i, o := range pods {
		if errs[i] != nil {
			s.deps.Log.Warn("stats: read usage of writable layers failed", o.Attr(), "err", errs[i])
		}
		d.addLayers(lists[i])
	}
	return nil
}
