package eviction

import (
	"math"
	"testing"
	"time"

	"swiftlet/internal/stats"
)

// File systems that count no free inodes, such as CephFS, report the largest number.
func TestLargestLevelMeetsNoThreshold(t *testing.T) {
	free := stats.Level{Available: math.MaxUint64, Capacity: 1000}
	levels := levelsFrom(stats.Signals{Node: &stats.Disk{Space: free, Inodes: free}})
	thresholds := []Threshold{{Signal: NodeFsAvailable, Value: Amount{Percentage: 0.1}}, {Signal: NodeFsInodesFree, Value: Amount{Percentage: 0.05}}}
	if got := evaluate(evaluation{}, thresholds, levels, time.Minute, time.Now()); len(got.due) > 0 || len(got.conditions) > 0 {
		t.Errorf("due %v, conditions %v with levels %v, want none", got.due, got.conditions, levels)
	}
}
