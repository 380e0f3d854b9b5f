package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// claimFigure is one figure of the volume behind a claim.
type claimFigure struct {
	desc *prometheus.Desc
	of   func(*statsapi.FsStats) *uint64
}

func describeClaim(name, help string, of func(*statsapi.FsStats) *uint64) claimFigure {
	return claimFigure{describe(kubelet+"volume_stats_"+name, help, "namespace", "persistentvolumeclaim"), of}
}

var claimFigures = []claimFigure{
	describeClaim("capacity_bytes", "How many bytes the claim's volume holds.", func(s *statsapi.FsStats) *uint64 { return s.CapacityBytes }),
	describeClaim("available_bytes", "How many bytes of it are free.", func(s *statsapi.FsStats) *uint64 { return s.AvailableBytes }),
	describeClaim("used_bytes", "How many bytes of it are used.", func(s *statsapi.FsStats) *uint64 { return s.UsedBytes }),
	describeClaim("inodes", "How many inodes the claim's volume holds.", func(s *statsapi.FsStats) *uint64 { return s.Inodes }),
	describeClaim("inodes_free", "How many inodes of it are free.", func(s *statsapi.FsStats) *uint64 { return s.InodesFree }),
	describeClaim("inodes_used", "How many inodes of it are used.", func(s *statsapi.FsStats) *uint64 { return s.InodesUsed }),
}

func collectClaims(claims []statsapi.VolumeStats, show func(*prometheus.Desc, float64, ...string)) {
	for i := range claims {
		v := &claims[i]
		for _, f := range claimFigures {
			if n := f.of(&v.FsStats); n != nil {
				show(f.desc, float64(*n), v.PVCRef.Namespace, v.PVCRef.Name)
			}
		}
	}
}
