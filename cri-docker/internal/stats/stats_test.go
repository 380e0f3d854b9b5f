package stats

import (
	"testing"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
)

func TestMemory(t *testing.T) {
	for name, test := range map[string]struct {
		stats              map[string]uint64
		limit, want, avail uint64
	}{
		"cgroup_v1":       {map[string]uint64{"total_inactive_file": 30, "inactive_file": 5, "total_rss": 7}, 1000, 70, 930},
		"cgroup_v2":       {map[string]uint64{"inactive_file": 40, "anon": 7}, 80, 60, 20},
		"more_than_usage": {map[string]uint64{"inactive_file": 400, "anon": 7}, 1000, 0, 1000},
		"no_limit":        {map[string]uint64{"inactive_file": 40, "anon": 7}, 1<<63 - 4096, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := memory(dockercontainer.StatsResponse{MemoryStats: dockercontainer.MemoryStats{Usage: 100, Limit: test.limit, Stats: test.stats}}, 1)
			if got.GetWorkingSetBytes().GetValue() != test.want || got.GetAvailableBytes().GetValue() != test.avail || got.GetRssBytes().GetValue() != 7 {
				t.Errorf("%v; want working set %d, available %d, rss 7", got, test.want, test.avail)
			}
		})
	}
}

func TestNetworkLines(t *testing.T) {
	i, ok := parseInterface("  eth0: 100 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16")
	if !ok || i.GetName() != "eth0" || i.GetRxBytes().GetValue() != 100 || i.GetRxErrors().GetValue() != 3 ||
		i.GetTxBytes().GetValue() != 900 || i.GetTxErrors().GetValue() != 11 {
		t.Errorf("%v, %v", i, ok)
	}
	for _, line := range []string{"Inter-|   Receive", "", "eth0: 1 2", "eth0: x 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16"} {
		if _, ok := parseInterface(line); ok {
			t.Errorf("%q was accepted", line)
		}
	}
	if usage, err := network(1, time.Now().UnixNano()); err != nil {
		t.Errorf("network of process 1: %v, %v", usage, err)
	}
}
