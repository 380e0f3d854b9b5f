package conformance

import (
	_ "embed"
	"fmt"
	"sync"

	"swiftlet/test/bed"
)

// Side is one of the two nodes that a suite compares.
type Side string

const (
	Ours      = Side(bed.Ours)
	Reference = Side(bed.Reference)
	Lone      = Side("lone")    // `swiftlet up --api`
	Cluster   = Side("cluster") // our kubelet with a real control plane
)

// inText is how the report's sentences call a side.
func (s Side) inText() string {
	if s == Ours {
		return string(s)
	}
	return "the " + map[Side]string{Reference: "reference", Lone: "lone node", Cluster: "cluster"}[s]
}

// Suite is a selection of upstream's tests, and the sides that they are run on.
type Suite struct {
	Name            string
	Ours, Reference Side
	Procs           int                        // parallel tests, unless the user says how many
	Selected        func() (*Selection, error) // its rules are the same values in every call

	report string // file in docs
	title  string // of the report
	intro  string // with a %s for the release
}

// Suites are all suites. The first is the default.
var Suites = []*Suite{Kubelets, LoneNode}

// Kubelets compares our kubelet with the reference kubelet, with a real control plane.
var Kubelets = &Suite{
	Name: "kubelets", Ours: Ours, Reference: Reference, Procs: 14,
	Selected: selectedIn("selection.yaml", kubeletSelection),
	report:   "conformance.md", title: "Conformance",
	intro: "Kubernetes' own end-to-end tests, %s, on one node of the test bed. Made by\n" +
		"`make conformance RECORD=1` (`KUBELET=` for one column only); each cell is the last\n" +
		"recorded run of that test. A test that has not been run on a kubelet has an empty cell. Tests\n" +
		"that differ in a run are tried a second time on both. `MACHINE=1` runs the tests that need a machine.\n",
}

// LoneNode compares `swiftlet up --api` with the same kubelet on a real control plane.
var LoneNode = &Suite{
	Name: "lone", Ours: Lone, Reference: Cluster, Procs: 4,
	Selected: selectedIn("selection-lone.yaml", loneSelection),
	report:   "conformance-lone.md", title: "Conformance of a lone node",
	intro: "Kubernetes' own end-to-end tests, %s, on a node of `swiftlet up --api` (lone), and on a node with the same\n" +
		"kubelet, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy and CoreDNS (cluster). Made by\n" +
		"`make conformance SUITE=lone RECORD=1` (`SIDE=` for one column only); each cell is the last recorded run of\n" +
		"that test. Where the cluster has none, it is that of our kubelet in [conformance.md](conformance.md), with the\n" +
		"same control plane. Tests that differ in a run of both are tried a second time.\n",
}

//go:embed selection.yaml
var kubeletSelection []byte

//go:embed selection-lone.yaml
var loneSelection []byte

func selectedIn(file string, data []byte) func() (*Selection, error) {
	return sync.OnceValues(func() (*Selection, error) { return parseSelection(file, data) })
}

// Sides are the sides of a suite, ours first.
func (s *Suite) Sides() []Side { return []Side{s.Ours, s.Reference} }

// FindSuite finds a suite by its name.
func FindSuite(name string) (*Suite, error) {
	for _, suite := range Suites {
		if suite.Name == name {
			return suite, nil
		}
	}
	return nil, fmt.Errorf("find suite: no suite %q", name)
}
