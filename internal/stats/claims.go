package stats

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Claims tells how full the volumes behind claims are, each once though several pods may use
// it. Those that cannot be measured are left out.
func (s *Stats) Claims(ctx context.Context) []statsapi.VolumeStats {
	type claimed struct {
		namespace string
		Volume
	}
	var claims []claimed
	var asked []Volume
	present := map[string]bool{}
	for _, o := range s.deps.Pods() {
		for _, v := range s.deps.Volumes(o.UID) {
			present[v.Dir] = true
			if v.Claim != "" {
				claims, asked = append(claims, claimed{o.Namespace, v}), append(asked, v)
			}
		}
	}
	s.lookAt(ctx, asked, s.cfg.VolumePeriod)
	var out []statsapi.VolumeStats
	known := map[statsapi.PVCReference]bool{}
	for _, c := range claims {
		if known[statsapi.PVCReference{Name: c.Claim, Namespace: c.namespace}] {
			continue
		}
		stats, _, err := s.volumeStats(c.namespace, c.Volume)
		if err != nil {
			s.deps.Log.Debug("usage of a claim is not known", "namespace", c.namespace, "claim", c.Claim, "err", err)
			continue
		}
		known[*stats.PVCRef] = true
		out = append(out, stats)
	}
	s.looks.keep(present)
	return out
}
