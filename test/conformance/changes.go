package conformance

import (
	"cmp"
	"slices"
)

// Change is a test whose outcome differs from the recorded one.
type Change struct{ Test, Before, Now string }

// Changes lists the tests whose outcome differs from the recorded one, by name, and counts those
// with the same outcome. It ignores tests without a record.
func (p *Programs) Changes(side Side, outcomes []Outcome) (changes []Change, same int, err error) {
	results, err := p.recorded(side)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range outcomes {
		switch before, recorded := results[o.Test]; {
		case !recorded:
		case before.state == o.State:
			same++
		default:
			changes = append(changes, Change{Test: o.Test, Before: before.state, Now: o.State})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Test, b.Test) })
	return changes, same, nil
}
