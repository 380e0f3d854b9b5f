package scale

import (
	"slices"
	"testing"
)

func TestParseRollup(t *testing.T) {
	got, err := parseRollup("00400000-7ffd [rollup]\nRss:   3000 kB\nPss:   2000 kB\nPss_Anon: 1 kB\nAnonymous:   1000 kB\n")
	if want := (memory{pss: 2000 << 10, anonymous: 1000 << 10}); err != nil || got != want {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
	if _, err := parseRollup("Pss: 1 kB\n"); err == nil {
		t.Error("no error without Anonymous")
	}
}

func TestCountWatches(t *testing.T) {
	got, err := countWatches(`# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{group="",resource="pods",verb="WATCH"} 3
apiserver_longrunning_requests{group="",resource="pods/exec",verb="CONNECT"} 7
apiserver_longrunning_requests{group="",resource="nodes",verb="WATCH"} 2
apiserver_request_total{verb="WATCH"} 100
`)
	if err != nil || got != 5 {
		t.Errorf("got %d and %v, want 5", got, err)
	}
}

func TestParseNumbers(t *testing.T) {
	if got, err := ParseNumbers("5,100"); err != nil || !slices.Equal(got, []int{5, 100}) {
		t.Errorf("got %v and %v", got, err)
	}
	if got, err := ParseNumbers(""); err != nil || got != nil {
		t.Errorf("got %v and %v for an empty text", got, err)
	}
	for _, bad := range []string{"x", "0", "-1"} {
		if _, err := ParseNumbers(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestPlanRunsStormsOnceOnOurLastCluster(t *testing.T) {
	specs := Plan(Sizes{Together: []int{100, 300}, Compared: []int{50}, Pods: 30, ComparedPods: 10, Storms: true})
	want := []Spec{
		{Kind: Kubemark, Nodes: 50, PodsPerNode: 10}, {Kind: Separate, Nodes: 50, PodsPerNode: 10},
		{Kind: Together, Nodes: 100, PodsPerNode: 30}, {Kind: Together, Nodes: 300, PodsPerNode: 30, Storms: true},
	}
	if !slices.Equal(specs, want) {
		t.Errorf("got %v, want %v", specs, want)
	}
}
