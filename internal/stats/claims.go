package stats

import (
	"context"
	"swiftlet/internal/pod"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ClaimStats returns the usage of the volumes behind PersistentVolumeClaims, once for each claim
// even if several pods use it. It omits claims that cannot be measured.
func (s *Stats) ClaimStats(ctx context.Context) []statsapi.VolumeStats {
	type claimed struct {
		namespace string
		pod.MeasurableVolume
	}
	var claims []claimed
	var volumes []pod.MeasurableVolume
	present := map[string]bool{}
	for _, o := range s.deps.Pods() {
		for _, v := range s.deps.Volumes(o.UID) {
			present[v.Dir] = true
			if v.Claim != "" {
				claims, volumes = append(claims, claimed{o.Namespace, v}), append(volumes, v)
			}
		}
	}
	s.measureVolumes(ctx, volumes, s.cfg.VolumePeriod)
	var out []statsapi.VolumeStats
	seen := map[statsapi.PVCReference]bool{}
	for _, c := range claims {
		if seen[statsapi.PVCReference{Name: c.Claim, Namespace: c.namespace}] {
			continue
		}
		stats, _, err := s.volumeStats(c.namespace, c.MeasurableVolume)
		if err != nil {
			s.deps.Log.Debug("stats: measure volume of claim failed", "namespace", c.namespace, "claim", c.Claim, "err", err)
			continue
		}
		seen[*stats.PVCRef] = true
		out = append(out, stats)
	}
	s.measurements.retain(present)
	return out
}
