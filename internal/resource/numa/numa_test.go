package numa

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

func nodes(ids ...int) Nodes {
	n, err := NewNodes(ids...)
	if err != nil {
		panic(err)
	}
	return n
}

func TestNodes(t *testing.T) {
	if _, err := NewNodes(3, 64); err == nil {
		t.Error("node 64 was accepted")
	}
	n := nodes(0, 5, 63)
	if n.Count() != 3 || !n.Has(63) || n.Has(1) || n.Has(-1) || n.Has(64) || n.String() != "0,5,63" {
		t.Errorf("0,5,63 is %s with %d", n, n.Count())
	}
	var seen []Nodes
	nodes(1, 2, 4).Subsets(func(s Nodes) { seen = append(seen, s) })
	want := []Nodes{nodes(1), nodes(2), nodes(4), nodes(1, 2), nodes(1, 4), nodes(2, 4), nodes(1, 2, 4)}
	if !slices.Equal(seen, want) {
		t.Errorf("subsets: %v, want %v", seen, want)
	}
}

func TestMergeByPolicy(t *testing.T) {
	two := Layout{All: nodes(0, 1)}
	far := Layout{All: nodes(0, 1, 2, 3), Distances: map[int][]uint64{
		0: {10, 31, 21, 11}, 1: {31, 10, 11, 21}, 2: {21, 11, 10, 31}, 3: {11, 21, 31, 10}}}
	near, other, both := Hint{nodes(0), true}, Hint{nodes(1), true}, Hint{nodes(0, 1), false}
	for _, c := range []struct {
		name, policy string
		layout       Layout
		hints        []Hints
		want         Hint
		rejected     bool
	}{
		{"no preference", BestEffort, two, []Hints{{}, nil}, Hint{nodes(0, 1), true}, false},
		{"no preference, single node", SingleNode, two, []Hints{{"a": nil}}, Hint{0, true}, false},
		{"lower id of two equal hints", Restricted, two, []Hints{{"a": {near, other, both}}}, near, false},
		{"node in common", Restricted, two, []Hints{{"a": {near, other, both}}, {"b": {other, both}}}, other, false},
		{"no node in common, best effort", BestEffort, two, []Hints{{"a": {near}}, {"b": {other}}}, Hint{nodes(0, 1), false}, false},
		{"no node in common, restricted", Restricted, two, []Hints{{"a": {near}}, {"b": {other}}}, Hint{nodes(0, 1), false}, true},
		{"unsatisfiable, restricted", Restricted, two, []Hints{{"a": {}}}, Hint{nodes(0, 1), false}, true},
		{"unsatisfiable, best effort", BestEffort, two, []Hints{{"a": {}}}, Hint{nodes(0, 1), false}, false},
		{"two nodes needed and preferred", Restricted, two, []Hints{{"a": {{nodes(0, 1), true}}}}, Hint{nodes(0, 1), true}, false},
		{"two nodes needed, one allowed", SingleNode, two, []Hints{{"a": {{nodes(0, 1), true}}}}, Hint{0, false}, true},
		{"single node for two resources", SingleNode, two, []Hints{{"a": {near, other}, "b": {other, both}}}, other, false},
		{"lowest pair", BestEffort, Layout{All: far.All}, []Hints{{"a": {{nodes(0, 3), true}, {nodes(0, 1), true}}}}, Hint{nodes(0, 1), true}, false},
		{"closest pair", BestEffort, far, []Hints{{"a": {{nodes(0, 3), true}, {nodes(0, 1), true}}}}, Hint{nodes(0, 3), true}, false},
		{"as many nodes as the largest minimum", BestEffort, Layout{All: far.All},
			[]Hints{{"a": {{nodes(0, 1), true}}, "b": {{nodes(0), false}, {nodes(0, 1), false}}}}, Hint{nodes(0, 1), false}, false},
		{"no policy", None, two, []Hints{{"a": {}}}, Hint{}, false},
	} {
		got, ok := mergeByPolicy(c.policy, c.layout, c.hints)
		if got != c.want || ok == c.rejected {
			t.Errorf("%s: %v %v, want %v and rejected %v", c.name, got, ok, c.want, c.rejected)
		}
	}
}

// TestMergeEqualsExhaustiveMerge compares merge with the best of all combinations of one hint per
// resource.
func TestMergeEqualsExhaustiveMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		layout := Layout{All: 1<<(1+random.IntN(4)) - 1}
		if random.IntN(2) == 0 {
			layout.Distances = map[int][]uint64{}
			for _, a := range layout.All.List() {
				for range layout.All.List() {
					layout.Distances[a] = append(layout.Distances[a], uint64(10+random.IntN(20)))
				}
			}
		}
		resources := make([][]Hint, 1+random.IntN(3))
		for i := range resources {
			for range 1 + random.IntN(5) {
				resources[i] = append(resources[i], Hint{Nodes(random.Uint64()) & layout.All, random.IntN(2) == 0})
			}
		}
		if got, want := merge(layout, resources), mergeExhaustively(layout, resources); got != want {
			t.Fatalf("%+v %v: %v, exhaustive merge is %v", layout, resources, got, want)
		}
	}
}

func mergeExhaustively(layout Layout, resources [][]Hint) Hint {
	best, found := Hint{Nodes: layout.All}, false
	var try func(i int, taken []Hint)
	try = func(i int, taken []Hint) {
		if i < len(resources) {
			for _, h := range resources[i] {
				try(i+1, append(slices.Clone(taken), h))
			}
			return
		}
		merged := Hint{layout.All, true}
		var first Nodes
		for _, h := range taken {
			merged.Preferred = merged.Preferred && h.Preferred
			if h.Nodes != 0 {
				if first == 0 {
					first = h.Nodes
				}
				merged.Preferred = merged.Preferred && h.Nodes == first
				merged.Nodes &= h.Nodes
			}
		}
		if merged.Nodes != 0 && (!found || layout.isBetter(merged, best, minNodes(resources))) {
			best, found = merged, true
		}
	}
	try(0, nil)
	return best
}

// fakeProvider is a provider with fixed hints.
type fakeProvider struct {
	hints     Hints
	err       error
	allocated []Hint
	freed     []types.UID
}

func (s *fakeProvider) Hints(*v1.Pod, *v1.Container) Hints { return s.hints }
func (s *fakeProvider) PodHints(*v1.Pod) Hints             { return s.hints }
func (s *fakeProvider) Release(uid types.UID)              { s.freed = append(s.freed, uid) }
func (s *fakeProvider) Allocate(_ context.Context, _ *v1.Pod, _ *v1.Container, hint Hint) error {
	s.allocated = append(s.allocated, hint)
	return s.err
}

func TestAdmit(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "i"}}, Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
	p.UID = "u"
	near := Hint{nodes(1), true}
	for _, c := range []struct {
		name, policy, scope string
		hints               Hints
		err                 error
		reason, message     string
		given               int
	}{
		{"all containers allocated", Restricted, ByContainer, Hints{"x": {near}}, nil, "", "", 3},
		{"pod scope allocated", SingleNode, ByPod, Hints{"x": {near}}, nil, "", "", 3},
		{"no single node", SingleNode, ByPod, Hints{"x": {}}, nil, "TopologyAffinityError", "Resources cannot be allocated with Topology locality", 0},
		{"provider rejects", BestEffort, ByContainer, Hints{"x": {near}}, pod.Reject("SMTAlignmentError", "odd"), "SMTAlignmentError", "odd", 1},
		{"provider fails", None, ByContainer, Hints{"x": {}}, errors.New("no disk"), "UnexpectedAdmissionError", "Allocate failed due to no disk, which is unexpected", 1},
	} {
		s := &fakeProvider{hints: c.hints, err: c.err}
		a, err := New(Config{Policy: c.policy, Scope: c.scope, Options: Options{MaxNodes: 8}, Layout: Layout{All: nodes(0, 1)}},
			Deps{Providers: []Provider{s}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		got := a.Admit(context.Background(), p)
		if (got != nil) != (c.reason != "") || got != nil && (got.Reason != c.reason || got.Message != c.message) {
			t.Errorf("%s: %#v", c.name, got)
		}
		if len(s.allocated) != c.given || c.reason == "" && s.allocated[0] != near {
			t.Errorf("%s: given %v", c.name, s.allocated)
		}
		if a.Release("u"); len(s.freed) != 1 {
			t.Errorf("%s: not released", c.name)
		}
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	deps := Deps{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
	for name, cfg := range map[string]Config{
		"unknown policy": {Policy: "some", Scope: ByPod, Layout: Layout{All: 1}, Options: Options{MaxNodes: 8}},
		"unknown scope":  {Policy: Restricted, Scope: "some", Layout: Layout{All: 1}, Options: Options{MaxNodes: 8}},
		"too many nodes": {Policy: Restricted, Scope: ByPod, Layout: Layout{All: 1<<9 - 1}, Options: Options{MaxNodes: 8}},
	} {
		if _, err := New(cfg, deps); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for _, bad := range []map[string]string{{"x": "1"}, {"prefer-closest-numa-nodes": "x"}, {"max-allowable-numa-nodes": "7"}} {
		if _, err := ParseOptions(bad); err == nil {
			t.Errorf("options %v were accepted", bad)
		}
	}
}
