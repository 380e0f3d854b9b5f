package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"swiftlet/test/bed"
)

// Kubelets are those that are compared.
var Kubelets = []bed.KubeletKind{bed.Ours, bed.Reference}

// runBoth runs the suite once on both kubelets. An error of one run ends the other: there
// would be nothing to compare it with.
func runBoth(ctx context.Context, p *Programs, options Options) (map[bed.KubeletKind][]Outcome, error) {
	var (
		mu       sync.Mutex
		group    sync.WaitGroup
		failures error
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := map[bed.KubeletKind][]Outcome{}
	for _, kubelet := range Kubelets {
		group.Go(func() {
			mine := options
			mine.Kubelet, mine.Out = kubelet, filepath.Join(options.Out, string(kubelet))
			outcomes, err := Run(ctx, p, mine)
			mu.Lock()
			defer mu.Unlock()
			all[kubelet] = outcomes
			if err != nil {
				failures = errors.Join(failures, fmt.Errorf("run on %s: %w", kubelet, err))
				stop()
			}
		})
	}
	group.Wait()
	return all, failures
}

// Difference is a test of which not the same came on both kubelets. A state is empty where
// the test was not run.
type Difference struct {
	Test            string
	Ours, Reference string
	Message         string // why it failed on one
	Output          string
}

// Defect tells whether ours does worse.
func (d Difference) Defect() bool { return d.Ours != passed }

// Compare lists what differs, by name.
func Compare(ours, reference []Outcome) []Difference {
	all := map[string]*Difference{}
	of := func(o Outcome) *Difference {
		d, ok := all[o.Test]
		if !ok {
			d = &Difference{Test: o.Test}
			all[o.Test] = d
		}
		if o.State != passed {
			d.Message, d.Output = o.Message, o.Output
		}
		return d
	}
	for _, o := range reference {
		of(o).Reference = o.State
	}
	for _, o := range ours {
		of(o).Ours = o.State
	}
	var differences []Difference
	for _, d := range all {
		if d.Ours != d.Reference {
			differences = append(differences, *d)
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Test, b.Test) })
	return differences
}
