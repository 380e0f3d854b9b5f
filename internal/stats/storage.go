package stats

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// Storage is what the given pods have written to the node's disk, and nothing else of them.
// Volumes that were walked longer than fresh ago are walked again, as for the Summary.
func (s *Stats) Storage(ctx context.Context, pods []types.UID, fresh time.Duration) ([]statsapi.PodStats, error) {
	wanted := map[types.UID]bool{}
	for _, uid := range pods {
		wanted[uid] = true
	}
	d := &disks{layers: map[string]*runtimeapi.FilesystemUsage{}, spaces: map[string]*space{}}
	var err error
	if d.node, err = spaceOf(s.cfg.RootDir); err != nil {
		return nil, err
	}
	observed := slices.DeleteFunc(slices.Clone(s.deps.Pods()), func(o pod.Observed) bool { return !wanted[o.UID] || o.Sandbox() == nil })
	var written []Volume
	for _, o := range observed {
		for _, v := range s.deps.Volumes(o.UID) {
			if v.Measure == nil { // a driver's is not on the node's disk
				written = append(written, v)
			}
		}
	}
	s.lookAt(ctx, written, fresh)
	var all []statsapi.PodStats
	for _, o := range observed {
		if err := s.readLayers(ctx, d, o.Sandbox().ID); err != nil {
			return nil, err
		}
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

// readLayers asks the runtime what the containers of one sandbox have written.
func (s *Stats) readLayers(ctx context.Context, d *disks, sandbox string) error {
	list, err := s.deps.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox})
	if err != nil {
		return fmt.Errorf("ask what containers have written: %w", err)
	}
	for _, c := range list {
		if c.WritableLayer != nil {
			d.layers[c.GetAttributes().GetId()] = c.WritableLayer
		}
	}
	return nil
}
