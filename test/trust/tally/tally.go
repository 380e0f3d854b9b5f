// Package tally counts what a test of reliability injected and what became of it. `make trust` reads
// the line that Report prints and makes its table of these lines.
package tally

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Prefix starts the line that Report prints.
const Prefix = "trust: "

// Counts are the result of one class of faults.
type Counts struct {
	Class    string `json:"class"`
	Faults   int    `json:"faults"`   // injected
	Survived int    `json:"survived"` // of the faults: the node converged to the desired state
	PodsLost int    `json:"podsLost"` // pods that should run at the end and do not
	Restarts int    `json:"restarts"` // of containers, without a cause in the test
	Leaks    int    `json:"leaks"`    // processes, mounts, cgroups, files, containers, descriptors left
}

// Tally collects the counts of one class. Its methods may be called concurrently.
type Tally struct {
	mu     sync.Mutex
	counts Counts
}

// New returns an empty tally for a class and prints it when the test ends.
func New(tb testing.TB, class string) *Tally {
	t := &Tally{counts: Counts{Class: class}}
	tb.Cleanup(t.report)
	return t
}

// Fault counts an injected fault and whether the node survived it.
func (t *Tally) Fault(survived bool) {
	t.add(func(c *Counts) {
		c.Faults++
		if survived {
			c.Survived++
		}
	})
}

// Add counts several faults at once, all of which were survived or not.
func (t *Tally) Add(faults int, survived bool) {
	t.add(func(c *Counts) {
		c.Faults += faults
		if survived {
			c.Survived += faults
		}
	})
}

// PodsLost counts pods that should run and do not.
func (t *Tally) PodsLost(n int) { t.add(func(c *Counts) { c.PodsLost += n }) }

// Restarts counts restarts of containers that nothing in the test asked for.
func (t *Tally) Restarts(n int) { t.add(func(c *Counts) { c.Restarts += n }) }

// Leaks counts what is left at the end and should not be.
func (t *Tally) Leaks(n int) { t.add(func(c *Counts) { c.Leaks += n }) }

func (t *Tally) add(change func(*Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}

func (t *Tally) report() {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, err := json.Marshal(t.counts)
	if err != nil {
		panic(err) // Counts has only strings and numbers
	}
	fmt.Fprintf(os.Stdout, "%s%s\n", Prefix, line)
}
