package bench

import "fmt"

// Goal is what Swiftlet is to reach in a row.
type Goal struct {
	Most float64 // in the row's unit or, with Of, as a multiple of that subject's median
	Of   string  // a subject; empty: the goal is absolute
	Keep bool    // it was reached before and is to stay so
}

func atMost(value float64) *Goal                      { return &Goal{Most: value} }
func atMostTimes(value float64, subject string) *Goal { return &Goal{Most: value, Of: subject} }
func keep(value float64, subject string) *Goal        { return &Goal{Most: value, Of: subject, Keep: true} }

// text describes the goal, such as "≤ 1.1 × bare".
func (g *Goal) text(unit string) string {
	if g == nil {
		return ""
	}
	text := "≤ " + format(g.Most, unit)
	if g.Of != "" {
		text = fmt.Sprintf("≤ %.4g × %s", g.Most, g.Of)
	}
	if g.Keep {
		return "keep " + text
	}
	return text
}

// Outcomes of a goal.
const (
	Reached    = "reached"
	NotReached = "not reached"
	NotKnown   = "not measured"
)

// outcome compares the medians of one run with the goal.
func (g *Goal) outcome(by map[string]Summary) string {
	if g == nil {
		return ""
	}
	ours, measured := by[Ours]
	limit := g.Most
	if g.Of != "" {
		other, both := by[g.Of]
		measured = measured && both
		limit *= other.Median
	}
	switch {
	case !measured:
		return NotKnown
	case ours.Median <= limit:
		return Reached
	default:
		return NotReached
	}
}
