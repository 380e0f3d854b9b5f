package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
)

// runBoth runs the suite once on both sides. If one run fails, it cancels the other.
func runBoth(ctx context.Context, p *Programs, options Options) (map[Side][]Outcome, error) {
	var (
		mu       sync.Mutex
		group    sync.WaitGroup
		failures error
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := map[Side][]Outcome{}
	for _, side := range options.Suite.Sides() {
		group.Go(func() {
			sideOptions := options
			sideOptions.Side, sideOptions.Out = side, filepath.Join(options.Out, string(side))
			outcomes, err := Run(ctx, p, sideOptions)
			mu.Lock()
			defer mu.Unlock()
			all[side] = outcomes
			if err != nil {
				failures = errors.Join(failures, fmt.Errorf("run on %s: %w", side, err))
				stop()
			}
		})
	}
	group.Wait()
	return all, failures
}

// Difference is a test with different outcomes on the two sides. A state is empty if the test was
// not run.
type Difference struct {
	Test            string
	Ours, Reference string
	Message         string // of the run that did not pass
	Output          string
}

// Defect reports whether the test does not pass on ours.
func (d Difference) Defect() bool { return d.Ours != passed }

// Compare lists the tests with different outcomes, by name.
func Compare(ours, reference []Outcome) []Difference {
	all := map[string]*Difference{}
	differenceOf := func(o Outcome) *Difference {
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
		differenceOf(o).Reference = o.State
	}
	for _, o := range ours {
		differenceOf(o).Ours = o.State
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
