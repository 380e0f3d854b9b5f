package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// claimStat is a metric of the volume of a PersistentVolumeClaim.
type claimStat struct {
	desc *prometheus.Desc
	of   func(*statsapi.FsStats) *uint64
}

func describeClaimStat(name, help string, of func(*statsapi.FsStats) *uint64) claimStat {
	return claimStat{describe(kubelet+"volume_stats_"+name, help, "namespace", "persistentvolumeclaim"), of}
}

var claimStats = []claimStat{
	describeClaimStat("capacity_bytes", "How many bytes the claim's volume holds.", func(s *statsapi.FsStats) *uint64 { return s.CapacityBytes }),
	describeClaimStat("available_bytes", "How many bytes of it are free.", func(s *statsapi.FsStats) *uint64 { return s.AvailableBytes }),
	describeClaimStat("used_bytes", "How many bytes of it are used.", func(s *statsapi.FsStats) *uint64 { return s.UsedBytes }),
	describeClaimStat("inodes", "How many inodes the claim's volume holds.", func(s *statsapi.FsStats) *uint64 { return s.Inodes }),
	describeClaimStat("inodes_free", "How many inodes of it are free.", func(s *statsapi.FsStats) *uint64 { return s.InodesFree }),
	describeClaimStat("inodes_used", "How many inodes of it are used.", func(s *statsapi.FsStats) *uint64 { return s.InodesUsed }),
}

func collectClaims(claims []statsapi.VolumeStats, emit func(*prometheus.Desc, float64, ...string)) {
	for i := range claims {
		v := &claims[i]
		for _, f := range claimStats {
			if n := f.of(&v.FsStats); n != nil {
				emit(f.desc, float64(*n), v.PVCRef.Namespace, v.PVCRef.Name)
			}
		}
	}
}
